// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/istio/mesh"
)

const printedMesh = `
localityLbSetting: {enabled: true}
outboundTrafficPolicy: {mode: REGISTRY_ONLY}
caCertificates: [{pem: one}, {pem: two}]
defaultConfig: {concurrency: 2, drainDuration: 45s, terminationDrainDuration: 1.5s, tracing: {customTags: {a: {literal: {value: x}}}}}
`

// printedBy renders the second line of a template with an injector of a version.
func printedBy(t *testing.T, version, text string) (string, error) {
	t.Helper()
	config := "policy: enabled\ntemplates:\n  sidecar: |\n    first\n    " + text + "\n"
	in, err := New(Options{Version: version, Config: config, Values: "global: {a: {b: c}}", Mesh: printedMesh, Native: NativeDisabled})
	if err != nil {
		t.Fatal(err)
	}
	pc, _, err := in.EffectiveProxyConfig("shop", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	data := &TemplateData{ProxyConfig: pc, MeshConfig: in.Mesh()}
	grace, no := int64(30), false
	data.Spec.TerminationGracePeriodSeconds, data.Spec.AutomountServiceAccountToken = &grace, &no
	always := corev1.ContainerRestartPolicyAlways
	data.Spec.InitContainers = []corev1.Container{{Name: "native", RestartPolicy: &always}}
	templates, err := in.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := in.Render(templates[0], data)
	if err != nil {
		return "", err
	}
	defer in.Release(rendered)
	return strings.TrimSpace(strings.TrimPrefix(string(rendered.Bytes()), "first\n")), nil
}

// TestMessagesPrintAsIstioPrintsThem compares with what an istiod of 1.31 prints for messages that have one text.
func TestMessagesPrintAsIstioPrintsThem(t *testing.T) {
	for text, want := range map[string]string{
		`{{ .ProxyConfig.Concurrency }}`:                                                                            "value:2",
		`{{ .ProxyConfig.DrainDuration }}`:                                                                          "seconds:45",
		`{{ .MeshConfig.LocalityLbSetting }}`:                                                                       "enabled:{value:true}",
		`{{ .MeshConfig.LocalityLbSetting.Enabled }}`:                                                               "value:true",
		`{{ with .MeshConfig }}{{ .LocalityLbSetting }}{{ end }}`:                                                   "enabled:{value:true}",
		`{{ $m := .MeshConfig.LocalityLbSetting }}{{ $m }}`:                                                         "enabled:{value:true}",
		`{{ print .ProxyConfig.Concurrency }} {{ .ProxyConfig.Concurrency | quote }}`:                               `value:2 "value:2"`,
		`{{ printf "%s|%v|%q" .ProxyConfig.Concurrency .MeshConfig.LocalityLbSetting .ProxyConfig.DrainDuration }}`: `value:2|enabled:{value:true}|"seconds:45"`,
		`{{ toString .ProxyConfig.DrainDuration }}{{ list .ProxyConfig.Concurrency 1 }}`:                            "seconds:45[value:2 1]",
		`{{ dict "a" .ProxyConfig.Concurrency }}`:                                                                   "map[a:value:2]",
		`{{ .MeshConfig.CaCertificates }}`:                                                                          `[pem:"one" pem:"two"]`,
		`{{ .MeshConfig.OutboundTrafficPolicy }}`:                                                                   "",
		`{{ annotation .ObjectMeta "none" .ProxyConfig.Concurrency }}`:                                              "value:2",
		`{{ default "x" .ProxyConfig.Concurrency }}`:                                                                "value:2",
		`{{ .MeshConfig.ConnectTimeout }}`:                                                                          "seconds:10",
		`{{ .MeshConfig.TcpKeepalive }}{{ .ProxyConfig.Sds }}`:                                                      "<nil><nil>",
		`{{ toJson .ProxyConfig.Concurrency }} {{ toJson .ProxyConfig.DrainDuration }}`:                             `{"value":2} {"seconds":45}`,
		`{{ protoToJSON .ProxyConfig.DrainDuration }}`:                                                              `"45s"`,
		`{{ toJson .MeshConfig.LocalityLbSetting }}`:                                                                `{"enabled":true}`,
		`{{ .Values.global.a }} {{ .Values.none }}`:                                                                 "map[b:c] <no value>",
		`{{ .Spec.TerminationGracePeriodSeconds }} {{ .Spec.AutomountServiceAccountToken }}`:                        "30 false",
		`{{ formatDuration .ProxyConfig.DrainDuration }} {{ .ProxyConfig.Concurrency.GetValue }}`:                   "45s 2",
	} {
		got, err := printedBy(t, "1.31.1", text)
		if err != nil || got != want {
			t.Errorf("%s\nhave %q, %v\nwant %q", text, got, err, want)
		}
	}
}

// TestTextsThatDifferEachTimeAreRefused checks that a template fails at its line where it prints a message whose text depends
// on the build of istiod, or an address.
func TestTextsThatDifferEachTimeAreRefused(t *testing.T) {
	tests := []struct{ version, template, want string }{
		{"1.31.1", `{{ .ProxyConfig }}`, "differs between builds"},
		{"1.31.1", `{{ .MeshConfig }}`, "differs between builds"},
		{"1.31.1", `{{ .ProxyConfig.TerminationDrainDuration }}`, "Duration"},
		{"1.31.1", `{{ .ProxyConfig.Tracing }}`, "Tracing"},
		{"1.31.1", `{{ .ProxyConfig.Tracing.CustomTags | toString }}{{ .ProxyConfig | quote }}`, "ProxyConfig"},
		{"1.31.1", `{{ list 1 (dict "a" .ProxyConfig) }}`, "differs between builds"},
		{"1.31.1", `{{ print "a" .ProxyConfig }}`, "differs between builds"},
		{"1.31.1", `{{ $m := .MeshConfig }}{{ with $m }}{{ range list 1 }}{{ $m }}{{ end }}{{ end }}`, "differs between builds"},
		{"1.31.1", `{{ join "," (list .ProxyConfig) }}`, "differs between builds"},
		{"1.31.1", `{{ define "x" }}{{ . }}{{ end }}{{ template "x" .ProxyConfig }}`, "differs between builds"},
		{"1.31.1", `{{ printf "%d" .ProxyConfig.Concurrency }}`, "%v"},
		{"1.31.1", `{{ printf "%s %#v" "a" .ProxyConfig.Concurrency }}`, "%v"},
		{"1.31.1", `{{ printf "%T" .ProxyConfig.Concurrency }}`, "%v"},
		{"1.31.1", `{{ typeOf .ProxyConfig.Concurrency }}`, "Go type"},
		{"1.31.1", `{{ . }}`, "all the data"},
		{"1.31.1", `{{ toJson . }}`, "all the data"},
		{"1.31.1", `{{ .Spec.InitContainers }}`, "address"},
		{"1.31.1", `{{ print .Spec.TerminationGracePeriodSeconds }}`, "address"},
		{"1.13.9", `{{ .ProxyConfig.Concurrency }}`, "up to 1.13"},
		{"1.13.9", `{{ print .ProxyConfig.DrainDuration }}`, "up to 1.13"},
	}
	for _, test := range tests {
		got, err := printedBy(t, test.version, test.template)
		var at *gotemplate.Error
		if !errors.As(err, &at) || at.Line != 2 || at.Template != "sidecar" && at.Template != "x" || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %s\nhave %q, %v\nwant an error at line 2 with %q", test.version, test.template, got, err, test.want)
		}
	}
	if _, err := printedBy(t, "1.13.9", `{{ .ProxyConfig.Concurrency.GetValue }} {{ .MeshConfig.TcpKeepalive }}`); err != nil {
		t.Errorf("what is no message, or none: %v", err)
	}
	var _ mesh.Message = (*mesh.ProxyConfig)(nil)
}
