// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/workload"
)

func TestParseField(t *testing.T) {
	for _, at := range [][]any{
		nil,
		{"spec"},
		{"spec", "template", "spec", "containers", 0, "image"},
		{"metadata", "annotations", "sidecar.istio.io/inject"},
		{"items", 3, "metadata", "labels", `a"b]c`, "x"},
		{"", 0},
	} {
		text := workload.FieldString(at)
		if diff := cmp.Diff(at, workload.ParseField(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for text, want := range map[string][]any{
		"spec[x]": {"spec", "x"}, `spec["a`: {"spec"}, `spec["a"`: {"spec"}, "spec[1": {"spec"}, "a..b": {"a", "b"}, "$.spec": {"$", "spec"},
	} {
		if diff := cmp.Diff(want, workload.ParseField(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
