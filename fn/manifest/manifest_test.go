// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const deployment = `# The shop's front.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # the name
  namespace: shop
  labels:
    app: "web"
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      # the application
      - name: app
        image: registry.example/app:1.2
        args: ["--port", "8080"]
        env:
        - name: MODE
          value: 'on' # quoted
        command:
        - sh
        - -c
        - |
          echo "---"
          	tabbed
      # trailing
      volumes: []
`

func one(t *testing.T, src string) *Document {
	t.Helper()
	f, err := Parse("in.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Docs {
		if !d.Empty() {
			return d
		}
	}
	t.Fatal("no document")
	return nil
}

func TestWithInjection(t *testing.T) {
	d := one(t, deployment)
	obj, err := d.Object()
	if err != nil {
		t.Fatal(err)
	}
	tmpl := obj["spec"].(map[string]any)["template"].(map[string]any)
	tmpl["metadata"].(map[string]any)["annotations"] = map[string]any{"sidecar.istio.io/status": `{"a":1}`}
	spec := tmpl["spec"].(map[string]any)
	spec["containers"] = append([]any{map[string]any{"name": "istio-proxy", "image": "proxyv2", "args": []any{"proxy"}}}, spec["containers"].([]any)...)
	spec["volumes"] = []any{map[string]any{"name": "istio-envoy", "emptyDir": map[string]any{}}}
	spec["initContainers"] = []any{map[string]any{"name": "istio-init"}}
	next, err := d.With(obj)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(deployment, "      volumes: []\n", `      volumes:
      - name: istio-envoy
        emptyDir: {}
      initContainers:
      - name: istio-init
`, 1)
	want = strings.Replace(want, "        app: web\n    spec:\n", `        app: web
      annotations:
        sidecar.istio.io/status: '{"a":1}'
    spec:
`, 1)
	want = strings.Replace(want, "      # the application\n", `      - name: istio-proxy
        args:
        - proxy
        image: proxyv2
      # the application
`, 1)
	if diff := cmp.Diff(want, string(next.Raw())); diff != "" {
		t.Error(diff)
	}
	if m, ok := d.Peek(); !ok || m != (Meta{"apps/v1", "Deployment", "web", "shop"}) {
		t.Errorf("Peek gave %v, %v", m, ok)
	}
}
