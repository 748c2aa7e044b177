// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"
	"strconv"

	"sigs.k8s.io/yaml"
)

// Values is data.values of the ConfigMap istio-sidecar-injector, as templates see it: numbers are float64.
type Values map[string]any

// ParseValues parses data.values, which is JSON or YAML, and merges overrides over it. Empty text yields empty
// values.
func ParseValues(text string, overrides map[string]any) (Values, error) {
	v := Values{}
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return nil, fmt.Errorf("reading the injector's values (data.values): %w", err)
	}
	if v == nil {
		v = Values{}
	}
	return overlaidValues(v, overrides), nil
}

// overlaidValues is base with the keys of over merged over it. Neither is changed. Numbers become float64 as in data.values.
func overlaidValues(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range over {
		if sub, ok := v.(map[string]any); ok {
			under, _ := out[k].(map[string]any)
			out[k] = overlaidValues(under, sub)
			continue
		}
		out[k] = asJSONNumber(v)
	}
	return out
}

func asJSONNumber(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int32:
		return float64(v)
	case int64:
		return float64(v)
	default:
		return v
	}
}

// valueAtPath returns the value at a path, or nil.
func (v Values) valueAtPath(path ...string) any {
	var cur any = map[string]any(v)
	for _, key := range path {
		m, ok := cur.(map[string]any)
		if !ok {
			return nil
		}
		cur = m[key]
	}
	return cur
}

// String returns the text at a path: a string, or a number or bool as text, or "".
func (v Values) String(path ...string) string {
	switch s := v.valueAtPath(path...).(type) {
	case string:
		return s
	case float64, bool:
		return fmt.Sprint(s)
	default:
		return ""
	}
}

// Bool is the bool at a path; the texts true and false count too.
func (v Values) Bool(path ...string) bool {
	switch b := v.valueAtPath(path...).(type) {
	case bool:
		return b
	case string:
		t, err := strconv.ParseBool(b)
		return err == nil && t
	default:
		return false
	}
}

// clone copies the values for a template that may change them.
func (v Values) clone() map[string]any {
	out, _ := cloneValue(map[string]any(v)).(map[string]any)
	return out
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = cloneValue(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cloneValue(e)
		}
		return out
	default:
		return v
	}
}

// CNI reports whether Istio's CNI plugin redirects the traffic.
func (v Values) CNI() bool {
	return v.Bool("pilot", "cni", "enabled") || v.Bool("istio_cni", "enabled") || v.Bool("global", "istiocni", "enabled")
}
