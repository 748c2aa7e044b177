// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

func text(v any) string { s, _ := v.(string); return s }

func textList(v any) (out []string) {
	items, _ := v.([]any)
	for _, item := range items {
		out = append(out, text(item))
	}
	return out
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
