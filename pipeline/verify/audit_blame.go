// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// findCreation returns the log's record of the creation of a pod: by its uid, otherwise the last one of its name.
func (a *Audit) findCreation(pod map[string]any) (creation, bool) {
	ref, uid := refOf(pod), podmap.TextAt(pod, "metadata", "uid")
	for _, c := range slices.Backward(a.pods[ref.Namespace+"/"+ref.Name]) {
		if c.uid == "" || uid == "" || c.uid == uid {
			return c, true
		}
	}
	return creation{}, false
}

// webhooksThatChanged returns the webhooks that have changed a field of a pod on its creation according to the log. It
// returns false if the log does not have the pod, or not this information.
func (a *Audit) webhooksThatChanged(pod map[string]any, c change) ([]string, bool) {
	if a == nil {
		return nil, false
	}
	its, ok := a.findCreation(pod)
	if !ok {
		return nil, false
	}
	var all, touching []string
	silent := false // without a patch, the change is unknown
	for _, m := range its.mutations {
		all = append(all, m.webhook)
		silent = silent || len(m.patch) == 0
		if slices.ContainsFunc(m.patch, func(p patched) bool { return p.patchTouchesField(pod, c) }) {
			touching = append(touching, m.webhook)
		}
	}
	all, touching = slices.Compact(all), slices.Compact(touching)
	switch {
	case len(touching) > 0:
		return touching, true
	case len(all) == 1 && silent:
		return all, true
	}
	return nil, false
}

// patchTouchesField reports whether a patch is about a field: its keys and elements are the same as far as both go.
func (p patched) patchTouchesField(pod map[string]any, c change) bool {
	parts := strings.Split(strings.TrimPrefix(p.pointer, "/"), "/")
	if c.order && len(parts) > len(c.path)+1 {
		return false // it changes an element, not where it is
	}
	var at any = pod
	list := ""
	for i, s := range c.path {
		if i >= len(parts) {
			return p.patchWritesValue(c.path[i:], c.found)
		}
		part := strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[i])
		switch {
		case !s.element && part != s.key:
			return false
		case !s.element:
			m, _ := at.(map[string]any)
			at, list = m[s.key], s.key
		case i == len(parts)-1 && p.value != nil: // a whole element, by its identity
			if identityOfElement(p.value, elementKeys[list]).key != strings.SplitN(s.key, "#", 2)[0] {
				return false
			}
		default:
			var same bool
			if at, same = elementByIdentity(at, list, s.key, part); !same {
				return false
			}
		}
	}
	return true
}

// elementByIdentity returns the element of a list by its identity, and whether a part of a JSON pointer may be its
// index. A removed element can have any index.
func elementByIdentity(at any, list, key, part string) (any, bool) {
	elements, _ := at.([]any)
	steps, by := elementsByIdentity(elements, elementKeys[list])
	for i, s := range steps {
		if s.key == key {
			return by[key], part == strconv.Itoa(i)
		}
	}
	return nil, true
}

// patchWritesValue reports whether the value that a patch writes has, below a path, the value that was found. This
// cannot be determined for removals by the patch and for removed values.
func (p patched) patchWritesValue(path []step, found any) bool {
	if p.value == nil || found == nil {
		return true
	}
	at := p.value
	list := ""
	for _, s := range path {
		switch v := at.(type) {
		case map[string]any:
			at, list = v[s.key], s.key
		case []any:
			_, by := elementsByIdentity(v, elementKeys[list])
			at = by[s.key]
		default:
			return false
		}
	}
	if _, isMap := found.(map[string]any); isMap {
		return at != nil // the API server may have added defaults
	}
	return at != nil && (reflect.DeepEqual(at, found) || sameJSON(at, found))
}
