// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// stringMapAt is the map of strings at the path; nil where it is empty.
func stringMapAt(m map[string]any, path ...string) map[string]string {
	raw, _ := podmap.ValueAt(m, path...).(map[string]any)
	out := make(map[string]string, len(raw))
	for k, v := range raw {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// objectsOf is a list's elements that are objects.
func objectsOf(v any) []map[string]any {
	list, _ := v.([]any)
	var out []map[string]any
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func sortedNames(set map[string]bool) []string {
	if len(set) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(set))
}
