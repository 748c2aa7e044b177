// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/lint"
)

// TestPodResourcesByVersion sees that the resources of a pod as a whole count unless the version of Kubernetes is known to be one that
// does not read them.
func TestPodResourcesByVersion(t *testing.T) {
	const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  template:
    metadata:
      annotations:
        sidecar.istio.io/status: '{"containers":["istio-proxy"]}'
    spec:
      resources: {requests: {cpu: 1, memory: 1Gi}}
      containers:
      - name: app
        image: registry.example/app:1
        resources: {requests: {cpu: 1, memory: 1Gi}}
      - name: istio-proxy
        image: docker.io/istio/proxyv2:1.31.0
        args: [proxy, sidecar]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: budget, namespace: shop}
spec:
  hard: {requests.cpu: 5}
`
	for _, c := range []struct{ version, want string }{
		{"1.33", "PR404 PR406 PR408"},
		{"v1.33.7", "PR404 PR406 PR408"},
		{"1.34", ""},
		{"1.40", ""},
		{"", ""},
	} {
		for _, code := range []string{"PR404", "PR406", "PR408"} {
			got := caseFindings(t, header{Kubernetes: c.version}, code, []byte(objects), nil, nil)
			if found := strings.Contains(got, code); found != strings.Contains(c.want, code) {
				t.Errorf("%s on Kubernetes %q: %q", code, c.version, got)
			}
		}
	}
	in := input(t, strings.Replace(strings.Split(objects, "---\n")[0], "{cpu: 1, memory: 1Gi}}\n      containers", "{hugepages-2Mi: 2Mi}}\n      containers", 1))
	if got := codes(found(in, lint.Severities{})); !strings.Contains(got, "PR404") {
		t.Errorf("the pod requests huge pages alone: %q", got)
	}
}
