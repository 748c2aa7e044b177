// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference is a field in which two pods differ.
type Difference struct {
	// Path is the field's path, with names of list elements where they have any: spec.containers[app].image.
	Path string
	// Webhook and Prerig are the values, "" where there is none.
	Webhook, Prerig string
}

// String returns the difference in lines.
func (d Difference) String() string {
	return fmt.Sprintf("%s\n    webhook: %s\n    prerig:  %s", d.Path, d.Webhook, d.Prerig)
}

// places are the indices and names in paths that say which element of a list a field belongs to.
var places = regexp.MustCompile(`\[[^]]*\]`)

// Class returns the path without which element of a list it is, but for Istio's own.
func (d Difference) Class() string {
	return places.ReplaceAllStringFunc(d.Path, func(place string) string {
		if strings.HasPrefix(place, "[istio-") || strings.HasPrefix(place, "[ISTIO_") {
			return place
		}
		return "[]"
	})
}

// Compare returns the fields in which two pods of a workload differ, and counts the rules without which there were more.
func Compare(webhook, prerig *unstructured.Unstructured, used map[string]int) []Difference {
	a, b := copyOf(webhook), copyOf(prerig)
	for _, r := range rules {
		before := reflect.DeepEqual(a, b)
		more := len(differences("", a, b))
		r.apply(a)
		r.apply(b)
		if !before && len(differences("", a, b)) < more {
			used[r.Name]++
		}
	}
	return differences("", a, b)
}

// copyOf returns an object's content with the numbers as JSON has them.
func copyOf(obj *unstructured.Unstructured) map[string]any {
	text, err := json.Marshal(obj.Object)
	if err != nil {
		panic(err) // it was JSON
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

// differences returns where two values differ.
func differences(path string, a, b any) []Difference {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return inMaps(path, x, y)
		}
	case []any:
		if y, ok := b.([]any); ok {
			return inLists(path, x, y)
		}
	}
	return []Difference{{path, show(a), show(b)}}
}

func inMaps(path string, a, b map[string]any) []Difference {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	var out []Difference
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		out = append(out, differences(at, a[key], b[key])...)
	}
	return out
}

// inLists compares lists by their elements' keys where they have some, and then also the order.
func inLists(path string, a, b []any) []Difference {
	x, xs := byKey(a)
	y, ys := byKey(b)
	if x == nil || y == nil {
		if len(a) != len(b) {
			return []Difference{{path, show(a), show(b)}}
		}
		var out []Difference
		for i := range a {
			out = append(out, differences(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])...)
		}
		return out
	}
	keys := maps.Clone(x)
	maps.Copy(keys, y)
	var out []Difference
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, differences(path+"["+key+"]", x[key], y[key])...)
	}
	if len(out) == 0 {
		out = append(out, Difference{path + " (order)", strings.Join(xs, " "), strings.Join(ys, " ")})
	}
	return out
}

// byKey returns the elements of a list of objects by their key, and the keys in order, or nil where there is none.
func byKey(list []any) (map[string]any, []string) {
	out := map[string]any{}
	var order []string
	for _, e := range list {
		m, _ := e.(map[string]any)
		key, ok := m["mountPath"].(string)
		if !ok {
			key, ok = m["name"].(string)
		}
		if _, twice := out[key]; !ok || twice {
			return nil, nil
		}
		out[key] = e
		order = append(order, key)
	}
	return out, order
}

// show returns a value as text.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
