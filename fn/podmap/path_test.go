// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPathsOfProblems are the paths of fields in structs, lists and maps.
func TestPathsOfProblems(t *testing.T) {
	t.Parallel()
	limits := map[string]any{"cpu": "1", "memory": "1e-999999999"}
	container := map[string]any{"name": "a", "resources": map[string]any{"limits": limits}}
	for want, object := range map[string]map[string]any{
		"spec.containers[1].resources.limits[memory]": {"spec": map[string]any{"containers": []any{map[string]any{"name": "b"}, container}}},
		"spec.overhead[memory]":                       {"spec": map[string]any{"overhead": limits}},
	} {
		err := CheckQuantities(object, &corev1.Pod{})
		var got *FieldError
		if !errors.As(err, &got) || got.Field != want {
			t.Errorf("got %v, want the field %s", err, want)
		}
	}
}
