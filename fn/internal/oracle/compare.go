// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Difference is one place at which two pods differ.
type Difference struct {
	// Place is the path of the field, with names in the place of numbers where a list's elements have them.
	Place string
	// Cluster and Prerig are the values, as JSON, or empty if the field is missing.
	Cluster, Prerig string
}

// String returns the difference in lines.
func (d Difference) String() string {
	return fmt.Sprintf("%s\n    cluster: %s\n    Prerig:  %s", d.Place, d.Cluster, d.Prerig)
}

// comparePods returns the differences between the pods: none if they are equal to Kubernetes, which knows that 1 CPU is
// 1000m.
func comparePods(want, got map[string]any) ([]Difference, error) {
	w, err := decodeTypedPod(want)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's pod: %w", err)
	}
	g, err := decodeTypedPod(got)
	if err != nil {
		return nil, fmt.Errorf("reading Prerig's pod: %w", err)
	}
	if equality.Semantic.DeepEqual(w, g) {
		return nil, nil
	}
	out := Differences(toPlainJSON(w), toPlainJSON(g))
	if len(out) == 0 {
		out = append(out, Difference{Place: "(empty or missing)"})
	}
	return out, nil
}

// decodeTypedPod reads a pod; quantities get their canonical form when they are written again.
func decodeTypedPod(pod map[string]any) (*corev1.Pod, error) {
	text, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	var p corev1.Pod
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, err
	}
	canonical, err := json.Marshal(&p)
	if err != nil {
		return nil, err
	}
	var again corev1.Pod
	return &again, json.Unmarshal(canonical, &again)
}

func toPlainJSON(pod *corev1.Pod) any {
	var out any
	if err := json.Unmarshal(toJSON(pod), &out); err != nil {
		panic(err) // what was just written can be read
	}
	return out
}

// Differences returns the places at which two JSON values differ, in order.
func Differences(cluster, prerig any) []Difference {
	var out []Difference
	collectJSONDifferences(&out, "", cluster, prerig)
	sort.Slice(out, func(i, j int) bool { return out[i].Place < out[j].Place })
	return out
}

// collectJSONDifferences collects the places at which two JSON values differ.
func collectJSONDifferences(out *[]Difference, at string, want, got any) {
	if reflect.DeepEqual(want, got) {
		return
	}
	w, wok := partsByKey(want)
	g, gok := partsByKey(got)
	if !wok || !gok {
		*out = append(*out, Difference{Place: at, Cluster: jsonOrEmpty(want), Prerig: jsonOrEmpty(got)})
		return
	}
	before := len(*out)
	for _, key := range unionOfKeys(w, g) {
		collectJSONDifferences(out, strings.TrimPrefix(at+"."+key, "."), w[key], g[key])
	}
	if len(*out) == before {
		*out = append(*out, Difference{Place: at + " (order)", Cluster: jsonOrEmpty(want), Prerig: jsonOrEmpty(got)})
	}
}

// partsByKey returns the parts of a map, or of a list by their names or numbers.
func partsByKey(v any) (map[string]any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case []any:
		out := map[string]any{}
		for i, e := range v {
			key := fmt.Sprint(i)
			if m, ok := e.(map[string]any); ok {
				if name, ok := m["name"].(string); ok {
					key = name
				}
			}
			if _, twice := out["["+key+"]"]; twice {
				key += fmt.Sprintf("#%d", i)
			}
			out["["+key+"]"] = e
		}
		return out, true
	}
	return nil, false
}

func unionOfKeys(a, b map[string]any) []string {
	seen := map[string]bool{}
	for k := range a {
		seen[k] = true
	}
	for k := range b {
		seen[k] = true
	}
	out := make([]string, 0, len(seen))
	for k := range seen {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func jsonOrEmpty(v any) string {
	if v == nil {
		return ""
	}
	return string(toJSON(v))
}
