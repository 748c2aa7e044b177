// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"
)

// TestBrokenVolumeAnnotation checks that an annotation which a template cannot read is named, with the form that it wants.
func TestBrokenVolumeAnnotation(t *testing.T) {
	const template = "spec:\n  containers: [{name: istio-proxy, image: proxy}]\n  volumes:\n" +
		"  {{- range $name, $v := fromJSON (annotation .ObjectMeta \"sidecar.istio.io/userVolume\" \"{}\") }}\n  - {{ merge (dict \"name\" $name) $v | toJson }}\n  {{- end }}\n"
	in := smallInjector(t, "1.31", template)
	for value, want := range map[string]string{
		`[{"name":"filters","configMap":{"name":"filters"}`: "it is not valid JSON: unexpected end of JSON input; write an object such as",
		`"filters"`:                     "it is not a JSON object by name",
		`{"filters": "emptyDir"}`:       `"filters" in it is not an object`,
		`{"filters": {"emptyDir": {}}}`: "",
	} {
		_, err := Istio(in, Request{Pod: map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"sidecar.istio.io/userVolume": value}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
		}})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", value, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), "metadata.annotations[sidecar.istio.io/userVolume]: "+want)):
			t.Errorf("%s: got %v, want %s", value, err, want)
		}
	}
}
