// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// keepLastVariables returns the variables of a container with one entry for each of the names. The container gets the
// same values: the kubelet reads the list from the front, a later entry replaces an earlier one of its name, and
// $(NAME) is the value that NAME has at that point (source: makeEnvironment in pkg/kubelet/kubelet_pods.go of
// Kubernetes 1.36). So the last entry of a name stays at its own place, or at that of an earlier entry where another
// variable refers to it in between. Where no place is right, the reference is replaced by the value.
func keepLastVariables(list []any, names []string) ([]any, error) {
	for _, name := range names {
		next, err := keepLastVariable(list, name)
		if err != nil {
			return nil, err
		}
		list = next
	}
	return list, nil
}

func keepLastVariable(list []any, name string) ([]any, error) {
	want := resolveVariables(list)
	var places []int
	for i, e := range list {
		if nameOf(e) == name {
			places = append(places, i)
		}
	}
	for _, at := range slices.Backward(places) {
		next := withOneAt(list, places, at)
		if sameValues(want, resolveVariables(next)) {
			return next, nil
		}
	}
	last := places[len(places)-1]
	inlined := slices.Concat(withValueOf(list[:last+1], name), list[last+1:])
	next := withOneAt(inlined, places, last)
	if sameValues(want, resolveVariables(next)) {
		return next, nil
	}
	return nil, fmt.Errorf("the variable %s is there %d times, and another variable reads it with $(%s) in between: "+
		"no list with one entry of this name leads to the same values in the container, and server-side apply rejects one with several; "+
		"set the variable to one value where the injection is configured", name, len(places), name)
}

// withOneAt returns the list with the last of the places moved to one of them, and without the others.
func withOneAt(list []any, places []int, at int) []any {
	out := make([]any, 0, len(list))
	for i, e := range list {
		if i == at {
			e = list[places[len(places)-1]]
		} else if slices.Contains(places, i) {
			continue
		}
		out = append(out, e)
	}
	return out
}

// withValueOf returns the list with the references to a variable that has a later entry replaced by its value at
// that point.
func withValueOf(list []any, name string) []any {
	out := slices.Clone(list)
	value, known := "", false
	for i, e := range out {
		m, _ := e.(map[string]any)
		text, _ := m["value"].(string)
		if known && nameOf(out[i]) != "" {
			next := expandReferences(text, func(other string) (string, bool) {
				return value, other == name
			}, true)
			if next != text {
				m = CopyMap(m)
				m["value"] = next
				out[i] = m
			}
			text = next
		}
		if nameOf(e) == name {
			value, known = text, m["valueFrom"] == nil
		}
	}
	return out
}

func nameOf(e any) string {
	m, _ := e.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// resolveVariables returns the values that a container gets, by name. What only the cluster knows has a placeholder.
func resolveVariables(list []any) map[string]string {
	out := make(map[string]string, len(list))
	for _, e := range list {
		m, _ := e.(map[string]any)
		name := nameOf(e)
		text, _ := m["value"].(string)
		from, _ := m["valueFrom"].(map[string]any)
		if text != "" || len(from) == 0 {
			out[name] = expandReferences(text, func(other string) (string, bool) {
				value, ok := out[other]
				if !ok {
					value = "\x00(" + other + ")" // from envFrom or a Service, or unset
				}
				return value, true
			}, false)
			continue
		}
		source, _ := json.Marshal(from) // decoded YAML can be written
		value := "\x00" + string(source)
		if isOptional(from) {
			value += "\x00" + out[name] // without the key the variable keeps its value
		}
		out[name] = value
	}
	return out
}

// isOptional reports whether the source of a variable may be absent.
func isOptional(from map[string]any) bool {
	for _, source := range from {
		if m, _ := source.(map[string]any); m["optional"] == true {
			return true
		}
	}
	return false
}

func sameValues(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, value := range a {
		if other, ok := b[name]; !ok || other != value {
			return false
		}
	}
	return true
}

// expandReferences replaces $(NAME) in a value by what value returns for it; a reference for which it returns false
// stays. $$ is one $, and with raw it stays as it is. Source: third_party/forked/golang/expansion/expand.go of
// Kubernetes 1.36.
func expandReferences(text string, value func(name string) (string, bool), raw bool) string {
	if !strings.Contains(text, "$") {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		rest := text[i+1:]
		end := strings.IndexByte(rest, ')')
		switch {
		case rest[0] == '$':
			if raw {
				out.WriteByte('$')
			}
			out.WriteByte('$')
			i++
		case rest[0] == '(' && end > 0:
			name := rest[1:end]
			if v, ok := value(name); ok {
				out.WriteString(v)
			} else {
				out.WriteString(text[i : i+1+end+1])
			}
			i += end + 1
		default:
			out.WriteByte('$')
		}
	}
	return out.String()
}
