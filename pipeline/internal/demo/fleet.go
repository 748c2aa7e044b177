// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package demo

import (
	"fmt"
	"slices"
	"strings"
)

// The releases of Istio before and after the upgrade. The built-in policy has the sidecar of both.
const (
	oldIstio = "1.30.3"
	newIstio = "1.31.1"
)

// Branches of the repository of rendered manifests.
const (
	stagingBranch    = "staging"
	productionBranch = "production"
)

// cluster is one of the clusters, and the branch that is applied to it.
type cluster struct {
	name, branch string
	replicas     int
	apps         []string
}

var productionApps = []string{"basket", "catalog", "checkout", "payment", "search", "shipping"}

// clusters have twenty applications between them. Those of production are waves.
var clusters = []cluster{
	{"staging", stagingBranch, 1, append([]string{"mail", "stock"}, productionApps...)},
	{"eu", productionBranch, 3, productionApps},
	{"us", productionBranch, 2, productionApps},
}

// waves are the clusters to which an upgrade of production goes, one after the other.
func waves() []string {
	var out []string
	for _, c := range clusters {
		if c.branch == productionBranch {
			out = append(out, c.name)
		}
	}
	return out
}

// appCount is the number of applications on all clusters.
func appCount() int {
	n := 0
	for _, c := range clusters {
		n += len(c.apps)
	}
	return n
}

// sourceFiles returns the source repository: the applications, what each cluster has of them, the policy and the
// pipelines.
func sourceFiles(sourceURL, targetURL string) map[string]string {
	files := policyFile(oldIstio)
	for _, c := range clusters {
		var pipelines strings.Builder
		for _, app := range c.apps {
			files["apps/"+app+"/app.yaml"] = manifests(app, "1.0")
			files["apps/"+app+"/kustomization.yaml"] = "resources:\n- app.yaml\n"
			files["clusters/"+c.name+"/"+app+"/kustomization.yaml"] = overlay(app, c.replicas)
			pipelines.WriteString(pipeline(c, app, sourceURL, targetURL))
		}
		files["pipelines/"+c.name+".yaml"] = pipelines.String()
	}
	return files
}

// policyFile returns the mesh's policy for a release of Istio.
func policyFile(istio string) map[string]string {
	return map[string]string{"policy/mesh.yaml": `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: mesh
spec:
  istio:
    injector:
      builtIn: istio
      overrides:
        global:
          tag: ` + istio + `
  namespaces:
  - name: shop
    labels: {istio-injection: enabled}
`}
}

func overlay(app string, replicas int) string {
	return fmt.Sprintf("namespace: shop\nresources:\n- ../../../apps/%s\nreplicas:\n- {name: %s, count: %d}\n", app,
		app, replicas)
}

// manifests returns the Deployment and the Service of an application. The one that sends mail declines a sidecar.
func manifests(app, version string) string {
	labels := "{app: " + app + "}"
	if app == "mail" {
		labels = `{app: mail, sidecar.istio.io/inject: "false"}`
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  replicas: 1
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      labels: %[3]s
    spec:
      containers:
      - name: %[1]s
        image: registry.example.com/shop/%[1]s:%[2]s
        ports:
        - {name: http, containerPort: 8080}
        readinessProbe:
          httpGet: {path: /ready, port: http}
        resources:
          requests: {cpu: 100m, memory: 128Mi}
          limits: {memory: 256Mi}
---
apiVersion: v1
kind: Service
metadata:
  name: %[1]s
spec:
  selector: {app: %[1]s}
  ports:
  - {name: http, port: 80, targetPort: http}
`, app, version, labels)
}

// pipeline returns the RenderPipeline of an application on a cluster. Staging gets results at once; in production a
// pull request for each cluster has them, one after the other.
func pipeline(c cluster, app, sourceURL, targetURL string) string {
	publish := ""
	if slices.Contains(waves(), c.name) {
		publish = fmt.Sprintf(`
      pullRequest:
        provider: Gitea
        groupBy: Label
        label: cluster
        labels: [rendered]
        waves: {order: [%s], statuses: ["deployed/*"], greenFor: 1s}`, strings.Join(waves(), ", "))
	}
	return fmt.Sprintf(`---
apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %[1]s-%[2]s, namespace: shop, labels: {cluster: %[2]s}}
spec:
  source:
    git: {url: %[3]s, ref: {branch: main}}
  build: {path: clusters/%[2]s/%[1]s}
  policies:
  - path: policy/mesh.yaml
  publish:
  - git:
      url: %[4]s
      branch: %[5]s
      path: %[2]s/%[1]s
      secretRef: {name: host}%[6]s
  interval: 10s
`, app, c.name, sourceURL, targetURL, c.branch, publish)
}
