// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// TestMergeErrorsShowNoValues: whole containers stood in some, with the passwords in their variables.
func TestMergeErrorsShowNoValues(t *testing.T) {
	t.Parallel()
	const secret = "env: [{name: A, value: hunter2}]"
	for _, tc := range []struct{ name, pod, patch, want, field string }{
		{"container", "containers: [{name: a}, {" + secret + "}]", "containers: [{name: b}]", "is missing", "spec.containers[1].name"},
		{"volume", "volumes: [{hostPath: {path: hunter2}}]", "volumes: [{name: b}]", "is missing", "spec.volumes[0].name"},
		{"mount", "containers: [{name: a, volumeMounts: [{name: hunter2}]}]", "containers: [{name: a, volumeMounts: [{mountPath: /b}]}]", "is missing",
			"spec.containers[0].volumeMounts[0].mountPath"},
		{"the first of two", "volumes: [{a: hunter2}]\n  containers: [{image: hunter2}]", "volumes: [{name: b}]\n  containers: [{name: b}]", "is missing", "spec.containers[0].name"},
		{"the template's", "containers: [{name: a}]", "containers: [{" + secret + "}]", "merging: ", ""},
		{"an instruction", "containers: [{name: a}]", "containers: [{name: a, $patch: other, " + secret + "}]", "merging: ", ""},
		{"an order", "containers: [{name: a}]", "$setElementOrder/containers: [{image: hunter2}]\n  containers: [{name: a}, {name: b}]", "merging: ", ""},
	} {
		read := func(spec string) map[string]any {
			v, err := manifest.Decode([]byte("spec:\n  " + spec + "\n"))
			if err != nil {
				t.Fatal(tc.name, err)
			}
			return v.(map[string]any)
		}
		_, err := podmap.Merge(read(tc.pod), read(tc.patch))
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", tc.name, err)
		}
		var at *podmap.FieldError
		if found := errors.As(err, &at); found != (tc.field != "") || found && at.Field != tc.field {
			t.Errorf("%s: the error is about %+v", tc.name, at)
		}
	}
}
