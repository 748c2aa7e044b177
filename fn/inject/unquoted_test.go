// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/podmap"
)

const unquotedTemplate = `spec:
  containers:
  - name: istio-proxy
    image: "{{ annotation .ObjectMeta "sidecar.istio.io/proxyImage" "proxy" }}"
    args:
    - --log={{ annotation .ObjectMeta "sidecar.istio.io/logLevel" "info" }}
    - {{ annotation .ObjectMeta "sidecar.istio.io/agentLogLevel" "info" | quote }}
    - --config={{ .ProxyConfig.DiscoveryAddress }}
  volumes:
  - name: v
    configMap: {name: {{ annotation .ObjectMeta "sidecar.istio.io/bootstrapOverride" "x" }}}
  {{- if isset .ObjectMeta.Annotations "own/json" }}
  {{- range $k, $v := fromJSON (index .ObjectMeta.Annotations "own/json") }}
  - name: {{ $k | quote }}
  {{- end }}
  {{- end }}
`

// TestAnnotationsThatWriteYAML checks which annotations are noted: those whose values change more of the pod than a value.
func TestAnnotationsThatWriteYAML(t *testing.T) {
	tests := []struct {
		name, value string
		want        []string
	}{
		{"sidecar.istio.io/proxyImage", "a/b\"\n    stdin: true\n    tty: !!bool \"true", []string{"spec.containers[0].stdin", "spec.containers[0].tty"}},
		{"sidecar.istio.io/proxyImage", "registry.example:5000/proxy@sha256:0123", nil},
		{"sidecar.istio.io/logLevel", "info\n    - --more=x", []string{"spec.containers[0].args[3]"}},
		{"sidecar.istio.io/logLevel", "misc:error,http:debug", nil},
		{"sidecar.istio.io/agentLogLevel", "info\"\n    tty: true", nil}, // the template quotes it
		{"sidecar.istio.io/bootstrapOverride", "x, optional: true", []string{"spec.volumes[0].configMap.optional"}},
		{"own/json", `{"a": {"b": "c: d"}}`, nil},
		{"proxy.istio.io/config", "discoveryAddress: \"x:1\"\nconcurrency: 1\n", nil},
		{"note", "a: \"b\"\n", nil}, // no template prints it
	}
	in := smallInjector(t, "1.31", unquotedTemplate)
	for _, test := range tests {
		t.Run(test.name+" "+test.value, func(t *testing.T) {
			pod := podOf(t, `{spec: {containers: [{name: web, image: web}]}}`)
			pod["metadata"] = map[string]any{"annotations": map[string]any{test.name: test.value}}
			res, err := Istio(in, Request{Pod: pod})
			if err != nil {
				t.Fatal(err)
			}
			if res.Unquoted == nil {
				t.Error("nothing says that the injection was looked at")
			}
			if diff := cmp.Diff(test.want, res.Unquoted[test.name]); diff != "" {
				t.Errorf("the fields (-want +got):\n%s", diff)
			}
			if got := len(res.Unquoted); len(test.want) == 0 && got > 0 {
				t.Errorf("%d annotations are noted: %s", got, strings.Join(podmap.SortedKeys(res.Unquoted), ", "))
			}
		})
	}
}
