// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"
	"testing"
)

func TestDetection(t *testing.T) {
	one := func(template string) string {
		return "policy: enabled\ntemplate: |\n  " + strings.ReplaceAll(template, "\n", "\n  ")
	}
	tests := []struct {
		name, explicit, config, values, wantVersion, wantFrom string
		wantGeneration                                        Generation
		wantWarning                                           string
	}{
		{"explicit wins", "1.20.3", config("x"), `{"global": {"tag": "1.24.6"}}`, "1.20.3", "the policy", GenerationC, ""},
		{"tag", "", config("x"), `{"global": {"tag": "1.24.6-distroless"}}`, "1.24.6-distroless", `values.global.tag "1.24.6-distroless"`, GenerationC, ""},
		{"release tag", "", config("x"), `{"global": {"tag": "release-1.10-latest-daily"}}`, "1.10-latest-daily", `values.global.tag "release-1.10-latest-daily"`, GenerationC, ""},
		{"proxy image", "", config("x"), `{"global": {"tag": "", "proxy": {"image": "example.com/istio/proxyv2:1.22.1"}}}`, "1.22.1",
			`values.global.proxy.image "example.com/istio/proxyv2:1.22.1"`, GenerationC, ""},
		{"generation A by image", "", one(`- image: [[ "docker.io/istio/proxyv2:1.1.7" ]]`), "", "1.1.7", `the image "proxyv2:1.1.7" in the template`, GenerationA, ""},
		{"generation A by shape", "", one("[[ .ObjectMeta.Name ]]"), "", "1.1", "the functions and fields that the templates use", GenerationA, "not certain"},
		{"generation B by tag", "", one("{{ .Values.x }}"), `{"global": {"tag": "1.5.0"}}`, "1.5.0", `values.global.tag "1.5.0"`, GenerationB, ""},
		{"generation B by use", "", one("{{ structToJSON .Values }} {{ protoToJSON .ProxyConfig }}"), `{}`, "1.8", "the functions and fields that the templates use", GenerationB, "fit Istio 1.4 to 1.8"},
		{"latest by newest function", "", config("{{ otelResourceAttributes .MeshConfig nil nil \"\" nil }}"), `{"global": {"tag": "latest"}}`, "1.31",
			"the functions and fields that the templates use", GenerationC, `values.global.tag "latest" is not a version; the templates fit Istio 1.30 to 1.31`},
		{"latest by removed field", "", config("{{ .EstimatedConcurrency }}"), `{"global": {"tag": "master"}}`, "1.17",
			"the functions and fields that the templates use", GenerationC, "the templates fit Istio 1.10 to 1.17"},
		{"latest by the environment asked for", "", config(`{{ env "ENABLE_NATIVE_SIDECARS" "false" }} {{ .CompliancePolicy }}`), `{"global": {"tag": "latest"}}`, "1.26",
			"the functions and fields that the templates use", GenerationC, "fit Istio 1.19 to 1.26"},
		{"newer than known", "", config("x"), `{"global": {"tag": "1.47.2"}}`, "1.47.2", `values.global.tag "1.47.2"`, GenerationC, "newer than 1.31"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in, err := New(Options{Version: tt.explicit, Config: tt.config, Values: tt.values, Native: NativeDisabled})
			if err != nil {
				t.Fatal(err)
			}
			d := in.Detection()
			if d.Version.String() != tt.wantVersion || d.From != tt.wantFrom || d.Generation != tt.wantGeneration {
				t.Errorf("got %s from %s, generation %s; want %s from %s, generation %s", d.Version, d.From, d.Generation, tt.wantVersion, tt.wantFrom, tt.wantGeneration)
			}
			warnings := strings.Join(d.Warnings, "; ")
			if tt.wantWarning == "" && warnings != "" || !strings.Contains(warnings, tt.wantWarning) {
				t.Errorf("got the warnings %q, want %q", warnings, tt.wantWarning)
			}
		})
	}
}
