// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// step is a part of a path: a key of a map, or a list element by its identity.
type step struct {
	key     string
	element bool
	// of holds the fields that identify the element, as in managedFields, or nil if its content does.
	of map[string]any
}

// change is a field in which a pod is not as expected. One of both values is nil where a field was added or is missing.
type change struct {
	path        []step
	want, found any
	// order reports whether the elements of a list are the same but in another order.
	order bool
}

// fieldPathWithIdentities writes the path: spec.containers[app].env[LEVEL].value.
func (c change) fieldPathWithIdentities() string {
	var b strings.Builder
	for _, s := range c.path {
		switch {
		case s.element:
			fmt.Fprintf(&b, "[%s]", s.key)
		case strings.ContainsAny(s.key, "./[]"):
			fmt.Fprintf(&b, "[%q]", s.key)
		case b.Len() > 0:
			b.WriteString("." + s.key)
		default:
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// placeWithoutIdentities returns the keys of a path without the identities of elements, as in spec.containers.env.
func (c change) placeWithoutIdentities() string {
	var parts []string
	for _, s := range c.path {
		if !s.element {
			parts = append(parts, s.key)
		}
	}
	return strings.Join(parts, ".")
}

// lastPathKey returns the last part of the path.
func (c change) lastPathKey() string { return c.path[len(c.path)-1].key }

// elementKeys are the fields that identify list elements, by the list's name; no fields means the whole element.
var elementKeys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "ephemeralContainers": {"name"}, "volumes": {"name"}, "env": {"name"},
	"volumeMounts": {"mountPath"}, "volumeDevices": {"devicePath"}, "ports": {"containerPort", "protocol"}, "imagePullSecrets": {"name"},
	"hostAliases": {"ip"}, "topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"}, "readinessGates": {"conditionType"},
	"schedulingGates": {"name"}, "resourceClaims": {"name"}, "sysctls": {"name"}, "resizePolicy": {"resourceName"},
	"tolerations": {}, "finalizers": {},
}

// ordered are lists in which the order of the elements matters.
var ordered = []string{"containers", "initContainers", "env"}

// differencesBetweenPods returns the fields in which two pods differ, in the order of their names.
func differencesBetweenPods(want, found map[string]any) []change {
	var d differ
	d.compareMaps(nil, want, found)
	return d.changes
}

type differ struct{ changes []change }

func (d *differ) addDifference(path []step, want, found any, order bool) {
	d.changes = append(d.changes, change{slices.Clone(path), want, found, order})
}

func (d *differ) compareMaps(path []step, want, found map[string]any) {
	names := slices.Sorted(maps.Keys(want))
	for name := range found {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		d.compareValues(append(path, step{key: name}), want[name], found[name])
	}
}

func (d *differ) compareValues(path []step, want, found any) {
	if isUnsetForServer(want) && isUnsetForServer(found) {
		return
	}
	// Values that are added or missing as a whole are reported by their parts if these have names of their own.
	wantMap, isMap := want.(map[string]any)
	foundMap, alsoMap := found.(map[string]any)
	divisible := isMap && alsoMap || len(path) == 2 && (isMap || alsoMap) && (path[0].key == "metadata" || path[1].key == "nodeSelector")
	if divisible {
		d.compareMaps(path, wantMap, foundMap)
		return
	}
	wantList, isList := want.([]any)
	foundList, alsoList := found.([]any)
	fields, keyed := elementKeys[path[len(path)-1].key]
	if keyed && (isList || want == nil) && (alsoList || found == nil) {
		d.compareKeyedLists(path, fields, wantList, foundList)
		return
	}
	if !reflect.DeepEqual(want, found) {
		d.addDifference(path, want, found, false)
	}
}

// isUnsetForServer reports whether the API server treats a value as unset: it does not distinguish empty lists from
// missing ones. An empty map can have a meaning, as in emptyDir: {}, so only lists count.
func isUnsetForServer(v any) bool {
	l, ok := v.([]any)
	return v == nil || ok && len(l) == 0
}

// compareKeyedLists compares lists whose elements have identities.
func (d *differ) compareKeyedLists(path []step, fields []string, want, found []any) {
	wantSteps, wantBy := elementsByIdentity(want, fields)
	foundSteps, foundBy := elementsByIdentity(found, fields)
	var common []string
	for _, s := range wantSteps {
		at := append(path, s)
		other, ok := foundBy[s.key]
		if !ok {
			d.addDifference(at, wantBy[s.key], nil, false)
			continue
		}
		common = append(common, s.key)
		d.compareValues(at, wantBy[s.key], other)
	}
	var now []string
	for _, s := range foundSteps {
		if _, ok := wantBy[s.key]; ok {
			now = append(now, s.key)
		} else {
			d.addDifference(append(path, s), nil, foundBy[s.key], false)
		}
	}
	if slices.Contains(ordered, path[len(path)-1].key) && !slices.Equal(common, now) {
		d.addDifference(path, strings.Join(common, ", "), strings.Join(now, ", "), true)
	}
}

// elementsByIdentity returns the elements of a list by their identities, and the identities in order. Duplicates are
// distinguished by their number.
func elementsByIdentity(elements []any, fields []string) ([]step, map[string]any) {
	var steps []step
	by := map[string]any{}
	for _, e := range elements {
		s := identityOfElement(e, fields)
		for n := 2; ; n++ {
			if _, taken := by[s.key]; !taken {
				break
			}
			s = step{key: fmt.Sprintf("%s#%d", identityOfElement(e, fields).key, n), element: true}
		}
		by[s.key] = e
		steps = append(steps, s)
	}
	return steps, by
}

// valueAt returns what a pod or template has at a path of a change, or nil.
func valueAt(pod map[string]any, path []step) any {
	var v any = pod
	list := ""
	for _, s := range path {
		if s.element {
			elements, _ := v.([]any)
			_, by := elementsByIdentity(elements, elementKeys[list])
			v = by[s.key]
			continue
		}
		fields, _ := v.(map[string]any)
		v, list = fields[s.key], s.key
	}
	return v
}

func identityOfElement(element any, fields []string) step {
	m, ok := element.(map[string]any)
	if !ok || len(fields) == 0 {
		if s, ok := element.(string); ok {
			return step{key: s, element: true}
		}
		content, _ := json.Marshal(element) // it was JSON
		return step{key: string(content), element: true}
	}
	s := step{element: true, of: map[string]any{}}
	var parts []string
	for _, f := range fields {
		if v, ok := m[f]; ok {
			s.of[f] = v
			parts = append(parts, fmt.Sprint(v))
		}
	}
	s.key = strings.Join(parts, "/")
	return s
}
