// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// application is what one small application keeps in Git, beside its kustomization. %[1]s is its name, %[2]s the tag of
// its image.
const application = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  replicas: 3
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      labels: {app: %[1]s}
    spec:
      containers:
      - name: app
        image: registry.example.com/shop/%[1]s:%[2]s
        ports:
        - {name: http, containerPort: 8080}
        env:
        - name: DATABASE_URL
          valueFrom: {secretKeyRef: {name: %[1]s-database, key: url}}
        readinessProbe:
          httpGet: {path: /ready, port: http}
        resources:
          requests: {cpu: 250m, memory: 256Mi}
---
apiVersion: v1
kind: Service
metadata:
  name: %[1]s
spec:
  selector: {app: %[1]s}
  ports:
  - {name: http, port: 80, targetPort: http}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: %[1]s
data:
  config.yaml: |
    cache: {size: 128, ttl: 5m}
`

// kustomization names the policy that all applications share, as one does for kustomize on a laptop.
const kustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: shop
resources: [app.yaml]
transformers: [../../policy]
`

// policyFiles returns the mesh's policy with Istio's version.
func policyFiles(version string) map[string]string {
	return map[string]string{
		"policy/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [policy.yaml]\n",
		"policy/policy.yaml": `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: mesh
  annotations:
    config.kubernetes.io/function: |
      exec: {path: prerig-fn}
spec:
  istio:
    injector:
      builtIn: istio
      overrides: {global: {tag: ` + version + `}}
  namespaces:
  - {name: shop, labels: {istio-injection: enabled}}
`,
	}
}

func appName(i int) string { return fmt.Sprintf("app-%04d", i) }

// appFiles returns the files of one application.
func appFiles(name, tag string) map[string]string {
	return map[string]string{
		"apps/" + name + "/app.yaml":           fmt.Sprintf(application, name, tag),
		"apps/" + name + "/kustomization.yaml": kustomization,
	}
}

// pipelineFiles returns a RenderPipeline for each of n applications, in one file.
func pipelineFiles(n int, url string) map[string]string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `---
apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %[1]s}
spec:
  source: {git: {url: %[2]s, ref: {branch: main}}}
  build: {path: apps/%[1]s}
  publish: [{git: {branch: rendered}}]
`, appName(i), url)
	}
	return map[string]string{"apps.yaml": b.String()}
}
