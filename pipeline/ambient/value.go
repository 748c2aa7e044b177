// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"maps"
	"slices"
)

func text(v any) string { s, _ := v.(string); return s }

// mapAt returns the mapping at a path of fields, or nil if none exists.
func mapAt(m map[string]any, path ...string) map[string]any {
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// mapsIn returns the mappings of a list, each with its index in the list.
func mapsIn(list any) (out []map[string]any) {
	items, _ := list.([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		out = append(out, m)
	}
	return out
}

func texts(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := map[string]string{}
	for k, v := range m {
		out[k] = text(v)
	}
	return out
}

func textList(v any) (out []string) {
	items, _ := v.([]any)
	for _, item := range items {
		out = append(out, text(item))
	}
	return out
}

// clone returns a copy of a decoded value that shares nothing with it.
func clone[T any](v T) T {
	out, _ := cloneAny(v).(T)
	return out
}

func cloneAny(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = cloneAny(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cloneAny(e)
		}
		return out
	}
	return v
}

// child returns the mapping of a key, which it makes if none exists.
func child(m map[string]any, key string) map[string]any {
	have, ok := m[key].(map[string]any)
	if !ok {
		have = map[string]any{}
		m[key] = have
	}
	return have
}

// number returns a whole number as manifests hold it.
func number(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}

func hasLabels(labels, selector map[string]string) bool {
	for k, v := range selector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
