// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/fn/internal/oracle"
)

// places matches the indices and names in paths that identify the list element a field belongs to.
var places = regexp.MustCompile(`\[[^]]*\]`)

// differenceClass returns the place of a difference without which element of a list it is, but for Istio's own.
func differenceClass(d oracle.Difference) string {
	return places.ReplaceAllStringFunc(d.Place, func(place string) string {
		if strings.HasPrefix(place, "[istio-") || strings.HasPrefix(place, "[ISTIO_") {
			return place
		}
		return "[]"
	})
}

// Compare returns the fields in which two pods of a workload differ, and counts the rules that excluded further
// differences.
func Compare(webhook, prerig *unstructured.Unstructured, used map[string]int) []oracle.Difference {
	a, b := copyOf(webhook), copyOf(prerig)
	for _, r := range rules {
		before := reflect.DeepEqual(a, b)
		more := len(oracle.Differences(a, b))
		r.apply(a)
		r.apply(b)
		if !before && len(oracle.Differences(a, b)) < more {
			used[r.Name]++
		}
	}
	return oracle.Differences(a, b)
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
