// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestImportedTemplateThatDoesNotFitNativeSidecars imports custom templates: a warning names one that leaves a second proxy among the
// containers, and none that fits or with ordinary proxies.
func TestImportedTemplateThatDoesNotFitNativeSidecars(t *testing.T) {
	const operator = `apiVersion: install.istio.io/v1alpha1
kind: IstioOperator
metadata: {name: istio}
spec:
  values:
    pilot: {env: {ENABLE_NATIVE_SIDECARS: "SETTING"}}
    sidecarInjectorWebhook:
      templates:
        greeting: |
          TEMPLATE
`
	const atContainers = "spec: {containers: [{name: istio-proxy, env: [{name: GREETING, value: hello}]}]}"
	for _, test := range []struct {
		name, template, native string
		warns                  bool
	}{
		{"an ordinary proxy's place", atContainers, "true", true},
		{"ordinary proxies", atContainers, "false", false},
		{"a native proxy's place", "spec: {initContainers: [{name: istio-proxy, env: [{name: GREETING, value: hello}]}]}", "true", false},
		{"either place", "spec: { {{ if .NativeSidecars }}initContainers{{ else }}containers{{ end }}: [{name: istio-proxy, env: [{name: GREETING, value: hello}]}]}", "true", false},
		{"labels only", "metadata: {labels: {greeting: hello}}", "true", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var value map[string]any
			text := strings.NewReplacer("TEMPLATE", test.template, "SETTING", test.native).Replace(operator)
			if err := yaml.Unmarshal([]byte(text), &value); err != nil {
				t.Fatal(err)
			}
			imported, err := Policy([]Object{{Value: value}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(imported.Warnings, "\n")
			if warns := strings.Contains(got, "template greeting does not fit native sidecars"); warns != test.warns {
				t.Errorf("warns: %t, want %t:\n%s", warns, test.warns, got)
			}
			if test.warns && !strings.Contains(got, "container istio-proxy is there twice") {
				t.Errorf("the warning has no reason:\n%s", got)
			}
		})
	}
}
