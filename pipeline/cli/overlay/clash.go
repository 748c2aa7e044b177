// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// clash is a place where an edit and the injection meet.
type clash struct {
	path []string
	how  string // what the edit does to it
	line int    // where it does so, or 0 for the line of the edit
	// before and after are the values at the path without and with the injection.
	before, after any
}

// field is the path in the object.
func (c clash) field() string { return strings.Join(c.path, ".") }

// why describes what the injection does to the place.
func (c clash) why() string {
	old, isList := c.before.([]any)
	now, alsoList := c.after.([]any)
	if (isList || c.before == nil) && alsoList && !sameOrder(old, now) {
		return fmt.Sprintf("and the injection changes that list from [%s] to [%s]", identities(old), identities(now))
	}
	return "and the injection changes what is in it"
}

// clashes returns where an edit of an object meets the injection, which makes after of before. at is where the pod is.
func (e edit) clashes(before, after any, at []any) []clash {
	if e.merge == nil {
		return e.pathClash(before, after)
	}
	apiVersion, _ := before.(map[string]any)["apiVersion"].(string)
	m := merger{edit: e, pod: at, builtIn: isBuiltIn(apiVersion)}
	m.maps(nil, e.merge, before, after)
	return m.out
}

// pathClash follows the path of an edit until it addresses a list by position that the injection changes, or ends at a
// list or map that it changes.
func (e edit) pathClash(before, after any) []clash {
	for i, part := range e.path {
		_, wasList := before.([]any)
		list, isList := after.([]any)
		if !wasList && !isList {
			before, after = valueOf(before, part), valueOf(after, part)
			continue
		}
		old, _ := before.([]any)
		if part == "-" {
			return nil // an element is added at the end
		}
		key, value, byKey := keyOf(part)
		if !byKey && !sameOrder(old, list) {
			how := "addresses " + strings.Join(e.path[max(0, i-1):i+1], "/") + " by its position"
			return []clash{{path: e.path[:i], how: how, before: before, after: after}}
		}
		if part == "*" {
			return nil
		}
		if byKey {
			before, after = elementBy(old, key, value), elementBy(list, key, value)
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n >= len(list) {
			return nil
		}
		before, after = old[n], list[n]
	}
	if e.reads || !replaced(before, after) {
		return nil
	}
	how := "replaces " + e.path[len(e.path)-1] + " as a whole"
	return []clash{{path: e.path, how: how, before: before, after: after}}
}

// replaced reports whether writing a whole value loses what the injection has made of it, a list or map.
func replaced(before, after any) bool {
	switch after.(type) {
	case map[string]any, []any:
		return !podmap.Equal(before, after)
	}
	return false
}

func valueOf(v any, key string) any {
	m, _ := v.(map[string]any)
	return m[strings.TrimSuffix(strings.TrimPrefix(key, "["), "]")]
}

// keyOf reads a part such as [name=app].
func keyOf(part string) (key, value string, ok bool) {
	inner, ok := strings.CutPrefix(part, "[")
	if !ok {
		return "", "", false
	}
	return strings.Cut(strings.TrimSuffix(inner, "]"), "=")
}

func elementBy(list []any, key, value string) any {
	for _, one := range list {
		if m, ok := one.(map[string]any); ok && fmt.Sprint(m[key]) == value {
			return one
		}
	}
	return nil
}

// identityKeys are the fields by which people know an element of a list.
var identityKeys = []string{"mountPath", "devicePath", "name", "containerPort", "topologyKey", "ip", "conditionType"}

// identity names an element of a list.
func identity(v any) string {
	if m, ok := v.(map[string]any); ok {
		for _, key := range identityKeys {
			if value, ok := m[key]; ok {
				return fmt.Sprint(value)
			}
		}
	}
	if s, ok := v.(string); ok {
		return s
	}
	text, _ := json.Marshal(v) // it was YAML
	return string(text)
}

// identities lists the elements of a list for a message.
func identities(list []any) string {
	var names []string
	for _, one := range list {
		names = append(names, identity(one))
	}
	const most = 6
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(list)-most))
	}
	return strings.Join(names, ", ")
}

// sameOrder reports whether two lists have the same elements in the same order, whatever is in these.
func sameOrder(a, b []any) bool {
	return slices.EqualFunc(a, b, func(x, y any) bool { return identity(x) == identity(y) })
}

// isBuiltIn reports whether kustomize knows the lists of a kind, and merges them by their keys.
func isBuiltIn(apiVersion string) bool {
	group, _, found := strings.Cut(apiVersion, "/")
	return !found || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// merger follows a strategic merge patch through an object.
type merger struct {
	edit
	pod     []any
	builtIn bool
	out     []clash
}

// The instructions of strategic merge patches.
const (
	patchInstruction = "$patch"
	orderInstruction = "$setElementOrder/"
)

func (m *merger) add(at []any, how string, before, after any) {
	if !replaced(before, after) {
		return
	}
	var path []string
	for _, part := range at {
		if s, ok := part.(string); ok {
			path = append(path, s)
		}
	}
	m.out = append(m.out, clash{path: path, how: how, line: m.in.line(at...), before: before, after: after})
}

// maps follows the entries of a map in the patch, which is at a place of the object.
func (m *merger) maps(at []any, patch map[string]any, before, after any) {
	if what, ok := patch[patchInstruction]; ok && what != "merge" {
		if what == "delete" && len(at) == 0 {
			return // of the whole object, injected or not
		}
		m.add(at, fmt.Sprintf("has $patch: %v", what), before, after)
		return
	}
	for _, key := range podmap.SortedKeys(patch) {
		place := append(at[:len(at):len(at)], key)
		if name, ok := strings.CutPrefix(key, orderInstruction); ok {
			old, _ := valueOf(before, name).([]any)
			if now, _ := valueOf(after, name).([]any); !sameOrder(old, now) {
				m.add(place, "sets the order of "+name, old, now)
			}
			continue
		}
		if strings.HasPrefix(key, "$") {
			continue
		}
		old, now := valueOf(before, key), valueOf(after, key)
		switch v := patch[key].(type) {
		case nil:
			m.add(place, "removes "+key+" as a whole", old, now)
		case map[string]any:
			m.maps(place, v, old, now)
		case []any:
			m.lists(place, v, old, now)
		}
	}
}

// lists follows the elements of a list in the patch.
func (m *merger) lists(at []any, patch []any, before, after any) {
	for _, one := range patch {
		if element, ok := one.(map[string]any); ok && element[patchInstruction] == "replace" {
			m.add(at, "has $patch: replace", before, after)
			return
		}
	}
	name := fmt.Sprint(at[len(at)-1])
	merges, key := m.mergeKey(at)
	if !merges {
		m.add(at, "replaces "+name+" as a whole", before, after)
		return
	}
	old, _ := before.([]any)
	now, _ := after.([]any)
	for i, one := range patch {
		element, ok := one.(map[string]any)
		if !ok || key == "" || element[key] == nil || element[patchInstruction] != nil {
			continue
		}
		value := fmt.Sprint(element[key])
		m.maps(append(at[:len(at):len(at)], i), element, elementBy(old, key, value), elementBy(now, key, value))
	}
}

// mergeKey reports whether kustomize merges the elements of the list at a place, and by which key.
func (m *merger) mergeKey(at []any) (merges bool, key string) {
	if !m.builtIn {
		return m.knowsKinds, "name" // without a schema a list is replaced
	}
	if len(at) <= len(m.pod) || !slices.Equal(at[:len(m.pod)], m.pod) {
		return true, "" // the injection changes pods only
	}
	schema := podmap.PodSchema()
	var field *podmap.SchemaField
	for _, part := range at[len(m.pod):] {
		name, ok := part.(string)
		if !ok {
			if schema = schema.Elem; schema == nil {
				return false, ""
			}
			continue
		}
		if field = schema.Field(name); field == nil {
			return false, ""
		}
		schema = field.Schema
	}
	return field != nil && field.Merges, field.MergeKey
}
