// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"fmt"
	"slices"
	"strings"
)

// Dropped is a key under which a list had several entries, of which one is left.
type Dropped struct {
	// Field is the path of the list, such as spec.containers[1].env.
	Field string
	// Key is the key, such as the name of a variable. Count is how many entries had it.
	Key   string
	Count int
}

// uniqueLists are the lists of which the API server rejects a pod with two entries of one key, so that none of them can
// be dropped. Source: pkg/apis/core/validation/validation.go of Kubernetes 1.36.
var uniqueLists = []string{
	"Container.volumeDevices", "Container.volumeMounts", "PodSpec.containers", "PodSpec.ephemeralContainers",
	"PodSpec.initContainers",
	"PodSpec.resourceClaims", "PodSpec.schedulingGates", "PodSpec.topologySpreadConstraints", "PodSpec.volumes",
	"ResourceRequirements.claims",
}

// KeepLast drops entries from the lists of a pod until each key is unique. A Pod may have two variables of one
// name, and its container gets the last of them, but server-side apply rejects such a list. So the last entry
// stays, and what the container gets does not change: see keepLastVariables for variables that refer to others.
//
// Lists that the API server rejects with two entries of one key stay as they are, and so do the keys that before
// has twice in the same list. KeepLast modifies after; before is the pod that the user wrote. The error is a
// *FieldError.
func KeepLast(before, after Parts) ([]Dropped, error) {
	var out []Dropped
	for _, part := range []struct {
		name          string
		before, after map[string]any
	}{{"metadata", before.Meta, after.Meta}, {"spec", before.Spec, after.Spec}} {
		schema := PodSchema().Field(part.name).Schema
		dropped, err := keepLastDuplicates(schema, part.name, before.Spec, part.before, part.after)
		if err != nil {
			return nil, err
		}
		out = append(out, dropped...)
	}
	return out, nil
}

// KeepLastRule names the rule by which a pod of the webhook and one of Prerig are equal although the webhook's has more
// entries.
const KeepLastRule = "entries with the key of a later one: a webhook writes all of them, and Prerig only the last, which is what counts"

// WithLast returns a pod without the entries that KeepLast drops, compared with another pod of the same workload,
// and whether it had any. It does not modify the pod. A pod for which KeepLast fails is returned unchanged.
func WithLast(other, pod map[string]any) (map[string]any, bool) {
	parts := PartsOf(pod)
	if !hasRepeatedKeys(PodSchema().Field("metadata").Schema, parts.Meta) &&
		!hasRepeatedKeys(PodSchema().Field("spec").Schema, parts.Spec) {
		return pod, false
	}
	out := CopyMap(pod)
	dropped, err := KeepLast(PartsOf(other), PartsOf(out))
	if err != nil || len(dropped) == 0 {
		return pod, false
	}
	return out, true
}

// hasRepeatedKeys reports whether a list of a map of the schema has a key several times.
func hasRepeatedKeys(s *Schema, m map[string]any) bool {
	for key, value := range m {
		list, ok := value.([]any)
		if !ok {
			continue
		}
		f := s.Field(key)
		if f == nil || f.list == "" {
			continue
		}
		if len(f.repeatedKeys(list)) > 0 {
			return true
		}
		for _, e := range list {
			if c, ok := e.(map[string]any); ok && f.Schema.Elem == ContainerSchema() && hasRepeatedKeys(f.Schema.Elem, c) {
				return true
			}
		}
	}
	return false
}

// keepLastDuplicates is KeepLast for a map of the schema. spec is the one of the pod that the user wrote.
func keepLastDuplicates(s *Schema, path string, spec, before, after map[string]any) (out []Dropped, err error) {
	for key, value := range after {
		list, ok := value.([]any)
		if !ok {
			continue
		}
		f := s.Field(key)
		if f == nil || f.list == "" {
			continue
		}
		at := path + "." + key
		if len(list) > 1 && !slices.Contains(uniqueLists, f.list) {
			was, _ := before[key].([]any)
			kept, dropped, err := f.keepLast(at, was, list)
			if err != nil {
				return nil, err
			}
			if len(dropped) > 0 {
				after[key], out = kept, append(out, dropped...)
			}
		}
		if f.Schema.Elem != ContainerSchema() {
			continue
		}
		for i, e := range list {
			c, _ := e.(map[string]any)
			dropped, err := keepLastDuplicates(f.Schema.Elem, fmt.Sprintf("%s[%d]", at, i), spec,
				containerNamed(spec, c["name"]), c)
			if err != nil {
				return nil, err
			}
			out = append(out, dropped...)
		}
	}
	slices.SortFunc(out, func(a, b Dropped) int { return strings.Compare(a.Field+"\x00"+a.Key, b.Field+"\x00"+b.Key) })
	return out, nil
}

// containerNamed returns the container of a name in either list of a spec, or nil: the injection may move a container.
func containerNamed(spec map[string]any, name any) map[string]any {
	for _, key := range []string{Containers, InitContainers} {
		list, _ := spec[key].([]any)
		if c := FindBy(list, "name", name); c != nil {
			return c
		}
	}
	return nil
}

// keepLast drops the entries of the list whose key a later one has, but for keys that the list was has twice.
func (f *SchemaField) keepLast(path string, was, list []any) ([]any, []Dropped, error) {
	twice := f.repeatedKeys(list)
	if len(twice) == 0 {
		return list, nil, nil
	}
	for _, key := range f.repeatedKeys(was) {
		twice = slices.DeleteFunc(twice, func(other string) bool { return other == key })
	}
	if len(twice) == 0 {
		return list, nil, nil
	}
	var out []Dropped
	for _, key := range twice {
		out = append(out, Dropped{Field: path, Key: key, Count: f.countElementsWithKey(list, key)})
	}
	if f.Schema.Elem.TypeName == "EnvVar" {
		kept, err := keepLastVariables(list, twice)
		if err != nil {
			return nil, nil, &FieldError{Field: path, Err: err}
		}
		return kept, out, nil
	}
	var kept []any
	for i, e := range list {
		key, ok := f.keyOf(e)
		if ok && slices.Contains(twice, key) && f.countElementsWithKey(list[i+1:], key) > 0 {
			continue
		}
		kept = append(kept, e)
	}
	return kept, out, nil
}

// repeatedKeys returns the keys that several entries of a list have, in their order.
func (f *SchemaField) repeatedKeys(list []any) (out []string) {
	if len(list) < 2 {
		return nil
	}
	seen := make(map[string]bool, len(list))
	for _, e := range list {
		key, ok := f.keyOf(e)
		if !ok {
			continue
		}
		if seen[key] && !slices.Contains(out, key) {
			out = append(out, key)
		}
		seen[key] = true
	}
	return out
}

func (f *SchemaField) countElementsWithKey(list []any, key string) (n int) {
	for _, e := range list {
		if k, ok := f.keyOf(e); ok && k == key {
			n++
		}
	}
	return n
}

// keyOf returns what identifies an entry, and false for one that has no key.
func (f *SchemaField) keyOf(e any) (string, bool) {
	m, isMap := e.(map[string]any)
	switch {
	case !isMap:
		text, ok := e.(string)
		return text, ok && len(f.keys) == 0
	case len(f.keys) == 1:
		text, ok := m[f.keys[0]].(string)
		return text, ok
	}
	var out strings.Builder
	for i, name := range f.keys {
		v, there := m[name]
		if !there || v == nil {
			fallback, ok := keyDefaults[f.Schema.Elem.TypeName+"."+name]
			if !ok {
				return "", false
			}
			v = fallback
		}
		if i > 0 {
			out.WriteByte('/')
		}
		fmt.Fprint(&out, v)
	}
	return out.String(), len(f.keys) > 0
}
