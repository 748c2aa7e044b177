// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package content

import "strings"

// notResources returns the files that a kustomization reads for another purpose than to put them out.
func notResources(k map[string]any) []string {
	var names []string
	add := func(v any) {
		if s, ok := v.(string); ok && !strings.Contains(s, "\n") { // the fields take inline text as well
			names = append(names, s)
		}
	}
	each := func(field string, do func(map[string]any)) {
		list, _ := k[field].([]any)
		for _, v := range list {
			if m, ok := v.(map[string]any); ok {
				do(m)
			}
		}
	}
	for _, field := range []string{"patches", "patchesStrategicMerge", "transformers", "generators", "validators", "configurations"} {
		list, _ := k[field].([]any)
		for _, v := range list {
			add(v)
		}
	}
	for _, field := range []string{"patches", "patchesJson6902", "replacements"} {
		each(field, func(m map[string]any) { add(m["path"]) })
	}
	for _, field := range []string{"configMapGenerator", "secretGenerator"} {
		each(field, func(m map[string]any) {
			list, _ := m["files"].([]any)
			for _, v := range list {
				if s, ok := v.(string); ok {
					add(s[strings.Index(s, "=")+1:]) // it may be written as KEY=FILE
				}
			}
		})
	}
	for _, field := range []string{"helmCharts", "helmChartInflationGenerator"} {
		each(field, func(m map[string]any) { add(m["valuesFile"]) })
	}
	return names
}
