// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"
	"testing"
)

// TestPatchIsAssumed tells of an unknown patch only where something depends on it.
func TestPatchIsAssumed(t *testing.T) {
	multus := config(`{{ appendMultusNetwork "[]" "default/istio-cni" }}`)
	tests := []struct{ version, config, want string }{
		{"1.23", multus, "the patch release of Istio 1.23 is not known, and 1.23.6 was assumed; the releases of 1.23 differ in: a runAsUser that the proxy shares with the application is dropped; the function appendMultusNetwork; set istio.version"},
		{"1.24", multus, "the patch release of Istio 1.24 is not known, and 1.24.6 was assumed; the releases of 1.24 differ in: the function appendMultusNetwork; set istio.version"},
		{"1.24", config("x"), ""},
		{"1.23.4", multus, ""},
		{"1.26", multus, ""},
		{"1.31", config("x"), ""},
		{"1.30.9", config("x"), "Istio 1.30.9 is newer than 1.30.8, the newest 1.30 whose injector is known: it is taken to behave the same"},
		{"1.10", config("x"), "the patch release of Istio 1.10 is not known, and 1.10.6 was assumed; the releases of 1.10 differ in: a Job whose name ends in eight or nine digits is a CronJob's; how proxyMetadata merges; set istio.version"},
	}
	for _, tt := range tests {
		in, err := New(Options{Version: tt.version, Config: tt.config, Values: "{}", Native: NativeDisabled})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(in.Detection().Notes, "; "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.version, got, tt.want)
		}
	}
}

// TestVendors takes templates that no version of Istio could render for a vendor's, and knows those of OpenShift Service
// Mesh by their label (source: resources/helm/v2.3 to v2.5 of maistra/istio-operator).
func TestVendors(t *testing.T) {
	const maistra = `{maistra-version: "2.3.11", a: "{{ .EstimatedConcurrency }} {{ .ProxyGID }} {{ omitNil .Values }}"}`
	tests := []struct{ name, explicit, template, wantVersion, want string }{
		{"label", "", maistra, "1.14", "the templates are those of OpenShift Service Mesh 2.3; its injector is taken to behave like that of Istio 1.14, and what that does not have like the versions that have it: the field .ProxyGID (1.20 and later), the function omitNil (1.28.6 to 1.28.x, 1.29.1 and later)"},
		{"label and version", "1.14.6", maistra, "1.14.6", "is taken to behave like that of Istio 1.14.6"},
		{"mixed", "1.16.7", "a: '{{ .EstimatedConcurrency }} {{ .InboundTrafficPolicyMode }}'", "1.16.7", "the templates are those of a vendor; its injector is taken to behave like that of Istio 1.16.7, and what that does not have like the versions that have it: the field .InboundTrafficPolicyMode (1.22 and later)"},
		{"stock", "1.19.10", "a: '{{ .CompliancePolicy }} {{ .ProxyGID }}'", "1.19.10", ""},
	}
	for _, tt := range tests {
		in, err := New(Options{Version: tt.explicit, Config: config(tt.template), Values: "{}", Native: NativeDisabled})
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Detection().Version.String(); got != tt.wantVersion {
			t.Errorf("%s: got the version %s, want %s", tt.name, got, tt.wantVersion)
		}
		warnings := strings.Join(in.Warnings(), "; ")
		if tt.want == "" && warnings != "" || !strings.Contains(warnings, tt.want) {
			t.Errorf("%s: got the warnings %q, want %q", tt.name, warnings, tt.want)
		}
		if _, err := in.Render(in.templates["sidecar"], &TemplateData{}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestMultusByPatch writes a network into Multus' annotation as each release does (source: the golden
// hello-existing-cncf-networks-json of 1.22 and 1.27, and appendMultusNetwork at the tags).
func TestMultusByPatch(t *testing.T) {
	const named, split = `[{"name": "a"}, {"name": "default/istio-cni"}]`, `[{"name": "a"}, {"name": "istio-cni", "namespace": "default"}]`
	for version, want := range map[string]string{
		"1.9.9": named, "1.22.8": named, "1.23.5": named, "1.23.6": split, "1.24.3": named, "1.24.4": split, "1.25.0": named, "1.25.1": split, "1.26.0": split,
	} {
		got, err := render(t, Options{Version: version, Config: config(`{{ appendMultusNetwork "[{\"name\": \"a\"}]" "default/istio-cni" }}`), Native: NativeDisabled}, nil)
		if err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s: got %s, %v; want %s", version, got, err, want)
		}
	}
	other, err := render(t, Options{Version: "1.26.8", Config: config(`{{ appendMultusNetwork "[{\"name\":\"n\",\"namespace\":\"x\"}]" "n" }}`), Native: NativeDisabled}, nil)
	if want := `[{"name":"n","namespace":"x"}, {"name": "n"}]`; err != nil || strings.TrimSpace(other) != want {
		t.Errorf("a network of another namespace: got %s, %v; want %s", other, err, want)
	}
}

// TestDurationOfNothing is 1s up to 1.13.
func TestDurationOfNothing(t *testing.T) {
	for version, want := range map[string]string{"1.9.9": "1s", "1.13.9": "1s", "1.14.0": "0s"} {
		got, err := render(t, Options{Version: version, Config: config(`{{ formatDuration .ProxyConfig.ConnectTimeout }}`)}, nil)
		if err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s: got %s, %v; want %s", version, got, err, want)
		}
	}
}

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
		{"latest by newest function", "", config("{{ otelResourceAttributes .MeshConfig nil nil \"\" nil }}"), `{"global": {"tag": "latest"}}`, "1.32",
			"the functions and fields that the templates use", GenerationC, `values.global.tag "latest" is not a version; the templates fit Istio 1.30 to 1.32`},
		{"latest by removed field", "", config("{{ .EstimatedConcurrency }}"), `{"global": {"tag": "master"}}`, "1.17",
			"the functions and fields that the templates use", GenerationC, "the templates fit Istio 1.10.1 to 1.17"},
		{"latest by the environment asked for", "", config(`{{ env "ENABLE_NATIVE_SIDECARS" "false" }} {{ .CompliancePolicy }}`), `{"global": {"tag": "latest"}}`, "1.26",
			"the functions and fields that the templates use", GenerationC, "fit Istio 1.19.8 to 1.26"},
		{"newer than known", "", config("x"), `{"global": {"tag": "1.47.2"}}`, "1.47.2", `values.global.tag "1.47.2"`, GenerationC, "newer than 1.32"},
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
