// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
)

// Undo reverts a change of a pod: a strategic merge patch from the changed pod to the one before, or, if such a
// patch does not restore it exactly, the pod before itself. The patch identifies elements by name, so that later
// edits of the changed pod stay. Both are empty if the pod did not change.
type Undo struct {
	Patch map[string]any `json:"patch,omitempty"`
	// Tidy reports whether lists and maps that the patch empties are removed.
	Tidy bool `json:"tidy,omitempty"`
	// Empty holds labels, annotations and fields of the spec that are present but empty, by path, with their value:
	// a map, a list or null. A patch cannot express that.
	Empty    map[string]any `json:"empty,omitempty"`
	Original map[string]any `json:"original,omitempty"`
	// Exact reports whether what differs from the record can be the change itself, whereas a difference usually
	// indicates a later edit: the record is to be applied as it is.
	Exact bool `json:"exact,omitempty"`
}

// NewUndo returns what reverts the change from before to after. It modifies neither.
func NewUndo(before, after map[string]any) (Undo, error) {
	from, to := PodPart(after), PodPart(before)
	if Equal(from, to) {
		return Undo{}, nil
	}
	empty := setEmptyAside(from, to)
	wanted := PodPart(before)
	// A list that the pod did not have is emptied by name rather than dropped, so that later additions to it stay.
	filled := CopyMap(to)
	mergeMissing(PodSchema(), from, filled)
	for _, try := range []struct {
		to             map[string]any
		tidy, unsorted bool
	}{{filled, true, true}, {filled, true, false}, {to, false, false}} {
		patch, err := diffMaps(PodSchema(), from, CopyMap(try.to), false)
		if err != nil {
			continue
		}
		if try.unsorted {
			dropOrder(patch)
		}
		undo := Undo{Patch: patch, Tidy: try.tidy, Empty: empty}
		// What is kept is text, so the check is made with what is read from it.
		text, err := json.Marshal(undo)
		if err != nil {
			return Undo{}, err
		}
		read, err := ReadUndo(text)
		if err != nil {
			continue
		}
		if back, err := read.Apply(from); err == nil && Equal(back, wanted) {
			return undo, nil
		}
	}
	return Undo{Original: wanted}, nil
}

// setEmptyAside removes from to the empty fields that from does not have in the same way, and returns them by path.
func setEmptyAside(from, to map[string]any) map[string]any {
	var out map[string]any
	for _, key := range []string{"metadata", "spec"} {
		have, _ := from[key].(map[string]any)
		want, _ := to[key].(map[string]any)
		for name, v := range want {
			if was, there := have[name]; !isEmpty(v) || there && Equal(was, v) {
				continue
			}
			if out == nil {
				out = map[string]any{}
			}
			out[key+"."+name] = v
			delete(want, name)
		}
	}
	return out
}

// isEmpty reports whether a value is null, or a map or list without elements.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// putEmptyBack restores the empty fields that have not been filled since.
func putEmptyBack(obj, empty map[string]any) {
	for field, v := range empty {
		key, name, _ := strings.Cut(field, ".")
		m, ok := obj[key].(map[string]any)
		if !ok {
			continue
		}
		if isEmpty(m[name]) {
			m[name] = CopyValue(v)
		}
	}
}

// dropOrder removes the order of lists, which names all of their elements, from a patch. A patch that only removes
// needs none.
func dropOrder(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if strings.HasPrefix(key, "$setElementOrder/") {
				delete(v, key)
			} else {
				dropOrder(e)
			}
		}
	case []any:
		for _, e := range v {
			dropOrder(e)
		}
	}
}

// mergeMissing returns to the lists that merge by name and the maps that only from has, empty.
func mergeMissing(s *Schema, from, to map[string]any) {
	for key, v := range from {
		f := s.Field(key)
		if f == nil {
			continue
		}
		_, had := to[key]
		switch v := v.(type) {
		case map[string]any:
			if !had {
				to[key] = map[string]any{}
			}
			if sub, ok := to[key].(map[string]any); ok && f.Schema.Kind == StructKind {
				mergeMissing(f.Schema, v, sub)
			}
		case []any:
			if !f.Merges || f.MergeKey == "" {
				continue
			}
			if !had {
				to[key] = []any{}
			}
			list, _ := to[key].([]any)
			for _, e := range list {
				m, _ := e.(map[string]any)
				if was := FindBy(v, f.MergeKey, m[f.MergeKey]); m != nil && was != nil {
					mergeMissing(f.Schema.Elem, was, m)
				}
			}
		}
	}
}

// pruneObsoletePatch removes from the patch what only removes something from elements that the object no longer has, or
// sets something in a container that it does not have: merging would add such an element.
func pruneObsoletePatch(s *Schema, patch, obj map[string]any) {
	for key, v := range patch {
		f := s.Field(key)
		if f == nil {
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			if sub, ok := obj[key].(map[string]any); ok && f.Schema.Kind == StructKind {
				pruneObsoletePatch(f.Schema, v, sub)
			}
		case []any:
			if !f.Merges || f.MergeKey == "" {
				continue
			}
			have, there := obj[key].([]any)
			v = slices.DeleteFunc(v, func(e any) bool {
				m, ok := e.(map[string]any)
				was := FindBy(have, f.MergeKey, m[f.MergeKey])
				if ok && was != nil {
					pruneObsoletePatch(f.Schema.Elem, m, was)
				}
				return ok && was == nil && (onlyRemovesFields(m, f.MergeKey) || f.Schema.Elem == ContainerSchema() && isPart(m, patch))
			})
			patch[key] = v
			if len(v) == 0 && !there {
				delete(patch, key)
			}
		}
	}
}

// isPart reports whether an element of a patch is only a part of a container: it has no image, and the patch of the
// spec that it is in does not move the container from the other list.
func isPart(m, spec map[string]any) bool {
	if m["image"] != nil {
		return false
	}
	for _, key := range []string{Containers, InitContainers} {
		list, _ := spec[key].([]any)
		if other := FindBy(list, "name", m["name"]); other != nil && other[patchDirective] == "delete" {
			return false
		}
	}
	return true
}

// onlyRemovesFields reports whether a patch only removes.
func onlyRemovesFields(patch map[string]any, mergeKey string) bool {
	for key, v := range patch {
		if key == "" || key == mergeKey || key[0] == DirectivePrefix {
			continue
		}
		switch v := v.(type) {
		case nil:
		case map[string]any:
			if !onlyRemovesFields(v, "") {
				return false
			}
		case []any:
			for _, e := range v {
				m, _ := e.(map[string]any)
				if _, directive := m["$patch"]; !directive {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// dropNoOps removes from the object what the patch has emptied.
func dropNoOps(s *Schema, obj, before, patch map[string]any) {
	for key, v := range patch {
		f := s.Field(key)
		if f == nil {
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			sub, ok := obj[key].(map[string]any)
			was, _ := before[key].(map[string]any)
			if ok && f.Schema.Kind == StructKind {
				dropNoOps(f.Schema, sub, was, v)
			}
			if ok && len(sub) == 0 && len(was) > 0 {
				delete(obj, key)
			}
		case []any:
			list, ok := obj[key].([]any)
			was, _ := before[key].([]any)
			if !f.Merges || f.MergeKey == "" {
				continue
			}
			for _, e := range v {
				m, _ := e.(map[string]any)
				now, then := FindBy(list, f.MergeKey, m[f.MergeKey]), FindBy(was, f.MergeKey, m[f.MergeKey])
				if m != nil && now != nil && then != nil && f.Schema.Elem != nil && f.Schema.Elem.Kind == StructKind {
					dropNoOps(f.Schema.Elem, now, then, m)
				}
			}
			if ok && len(list) == 0 && len(was) > 0 {
				delete(obj, key)
			}
		}
	}
}

// ReadUndo reads the JSON of an Undo. Other keys of it are not read.
func ReadUndo(text []byte) (Undo, error) {
	v, err := manifest.Decode(text)
	if err != nil {
		return Undo{}, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return Undo{}, errNotMap
	}
	var u Undo
	for key, to := range map[string]*map[string]any{"patch": &u.Patch, "empty": &u.Empty, "original": &u.Original} {
		if v, there := m[key]; there {
			if *to, ok = v.(map[string]any); !ok {
				return Undo{}, fmt.Errorf("%s: %w", key, errNotMap)
			}
		}
	}
	u.Tidy, _ = m["tidy"].(bool)
	u.Exact, _ = m["exact"].(bool)
	if u.Patch == nil && u.Empty == nil && u.Original == nil {
		return Undo{}, errors.New("it has neither patch nor original")
	}
	return u, nil
}

// Apply returns the pod without the change. Keys beside metadata and spec stay.
func (u Undo) Apply(obj map[string]any) (map[string]any, error) {
	back := CopyMap(u.Original)
	if back == nil {
		var err error
		patch := CopyMap(u.Patch)
		pruneObsoletePatch(PodSchema(), patch, obj)
		back, err = strategicMerge(PodPart(obj), patch, PodSchema())
		if err != nil {
			return nil, fmt.Errorf("taking a change back: %w", err)
		}
		if u.Tidy {
			for _, key := range []string{"metadata", "spec"} {
				now, _ := back[key].(map[string]any)
				was, _ := obj[key].(map[string]any)
				patch, _ := u.Patch[key].(map[string]any)
				dropNoOps(PodSchema().Field(key).Schema, now, was, patch)
			}
		}
		putEmptyBack(back, u.Empty)
	}
	for key, value := range obj {
		if !slices.Contains([]string{"metadata", "spec"}, key) {
			back[key] = CopyValue(value)
		}
	}
	return back, nil
}
