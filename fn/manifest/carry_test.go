// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
)

// TestCommentsOfAContainerThatComesBack moves a container with many fields from one list into another where it has few, as
// removing a native sidecar does with what the user wrote of the proxy: its comments stay.
func TestCommentsOfAContainerThatComesBack(t *testing.T) {
	const injected = `spec:
  initContainers:
  # our own proxy
  - name: istio-proxy
    image: example.com/proxy:1 # filled in by Istio
    args: [proxy]
    env: []
    ports: []
    restartPolicy: Always
    securityContext: {}
    volumeMounts: []
    resources:
      requests: {cpu: 10m} # small
  containers:
  - name: web
`
	file, err := manifest.Parse("", []byte(injected))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := file.Docs[0].With(map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "web"},
		map[string]any{"name": "istio-proxy", "image": "auto", "resources": map[string]any{"requests": map[string]any{"cpu": "10m"}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# our own proxy\n  - name: istio-proxy\n    image: auto # filled in by Istio\n", "requests: {cpu: 10m} # small"} {
		if !strings.Contains(string(doc.Raw()), want) {
			t.Errorf("got\n%s\nwithout %q", doc.Raw(), want)
		}
	}
}
