// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// stylePolicy injects into the namespace shop, and into none that is not known.
const stylePolicy = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: p}
spec:
  istio: {injector: {builtIn: istio}}
  namespaces: [{name: shop, labels: {istio-injection: enabled}}]
  unknownNamespace: Skip
`

// TestInjectWithBlanksBeforeColons: YAML lets blanks stand there, so what is injected must not depend on them.
func TestInjectWithBlanksBeforeColons(t *testing.T) {
	const list = `apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web
    namespace: shop
  spec:
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec: {containers: [{name: web, image: web}]}
`
	single := strings.ReplaceAll(strings.TrimPrefix(list[strings.Index(list, "- "):], "- "), "\n  ", "\n")
	for _, key := range []string{"apiVersion", "kind", "metadata", "name", "namespace", "items"} {
		for form, text := range map[string]string{"list": list, "object": single} {
			t.Run(form+"/"+key, func(t *testing.T) {
				arrange(t)
				writeFiles(t, map[string]string{"prerig.yaml": stylePolicy, "k/web.yaml": strings.ReplaceAll(text, key+":", key+" :")})
				if out, _ := ok(t, "", "inject", "-p", "prerig.yaml", "k"); !strings.Contains(out, "istio-proxy") {
					t.Errorf("not injected:\n%s", out)
				}
			})
		}
	}
}
