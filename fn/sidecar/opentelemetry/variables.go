// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package opentelemetry

import "slices"

// variables are the environment variables of a container, in order.
type variables []map[string]any

// literalEnvVar returns a variable with a text, and fromField one with a field of the pod.
func literalEnvVar(name, value string) map[string]any {
	return map[string]any{"name": name, "value": value}
}

func fromField(name, path string) map[string]any {
	return map[string]any{"name": name, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": path}}}
}

// variablesOf returns those of a list; elements that are no maps are left out.
func variablesOf(value any) variables {
	list, _ := value.([]any)
	var out variables
	for _, e := range list {
		if v, ok := e.(map[string]any); ok {
			out = append(out, v)
		}
	}
	return out
}

func (v variables) indexOfName(name string) int {
	return slices.IndexFunc(v, func(e map[string]any) bool { return e["name"] == name })
}

// textOfVariable returns the value of a variable, whether it exists, and whether it is a text and not a reference.
func (v variables) textOfVariable(name string) (value string, found, isText bool) {
	i := v.indexOfName(name)
	if i < 0 {
		return "", false, true
	}
	value, _ = v[i]["value"].(string)
	return value, true, v[i]["valueFrom"] == nil
}

// appendMissing appends those that do not exist yet.
func (v variables) appendMissing(more ...map[string]any) variables {
	for _, e := range more {
		if name, _ := e["name"].(string); v.indexOfName(name) < 0 {
			v = append(v, e)
		}
	}
	return v
}

// setTextVariable sets a variable in its place, or appends it.
func (v variables) setTextVariable(name, value string) variables {
	if i := v.indexOfName(name); i >= 0 {
		v[i] = literalEnvVar(name, value)
		return v
	}
	return append(v, literalEnvVar(name, value))
}
