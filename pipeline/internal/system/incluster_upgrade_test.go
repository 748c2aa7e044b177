// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/prerig/prerig/internal/testprograms"
)

var upgradedKinds = map[string]schema.GroupVersionResource{
	"Deployment":  deploymentGVR,
	"StatefulSet": {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"Job":         {Group: "batch", Version: "v1", Resource: "jobs"},
	"Pod":         {Version: "v1", Resource: "pods"},
}

// upgradedApp is an application with a workload of each kind, in which kustomize-controller substitutes a variable.
func upgradedApp(name string) string {
	template := `    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: app, image: "app:1", env: [{name: CLUSTER, value: "${cluster}"}]}]`
	return strings.ReplaceAll(`apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: shop}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
`+template+`}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME, namespace: shop}
spec:
  serviceName: NAME
  selector: {matchLabels: {app: NAME}}
  template:
`+template+`}
---
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, namespace: shop}
spec:
  template:
`+template+`, restartPolicy: Never}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: shop, labels: {app: NAME}}
spec: {containers: [{name: app, image: "app:1", command: [run]}]}
`, "NAME", name)
}

// A rejectedUpdate edits the object of a kind.
type rejectedUpdate struct {
	kind string
	edit func(o map[string]any) error
}

// rejectedUpdates are what the API server must refuse to do to the objects of an application, in the order of the owners' edits.
var rejectedUpdates = []rejectedUpdate{
	{"Job", func(o map[string]any) error {
		return setContainerField(o, "app:2", "image", "spec", "template", "spec")
	}},
	{"StatefulSet", func(o map[string]any) error {
		return unstructured.SetNestedField(o, "other", "spec", "serviceName")
	}},
	{"Pod", func(o map[string]any) error { return setContainerField(o, []any{"walk"}, "command", "spec") }},
	{"Deployment", func(o map[string]any) error {
		if err := unstructured.SetNestedField(o, "web", "spec", "template", "metadata", "labels", "tier"); err != nil {
			return err
		}
		return unstructured.SetNestedField(o, "web", "spec", "selector", "matchLabels", "tier")
	}},
}

// setContainerField sets a field of the container app.
func setContainerField(o map[string]any, value any, field string, spec ...string) error {
	path := append(spec, "containers")
	containers, _, err := unstructured.NestedSlice(o, path...)
	if err != nil {
		return err
	}
	for _, container := range containers {
		if c := container.(map[string]any); c["name"] == "app" {
			c[field] = value
		}
	}
	return unstructured.SetNestedSlice(o, containers, path...)
}

// refuses expects that the API server refuses an update, so that keeping what is published was right.
func (c *inCluster) refuses(objects map[string]*unstructured.Unstructured, update rejectedUpdate) {
	c.t.Helper()
	o := objects[update.kind].DeepCopy()
	if err := update.edit(o.Object); err != nil {
		c.t.Fatal(err)
	}
	o.SetResourceVersion("")
	_, err := c.dynamic.Resource(upgradedKinds[update.kind]).Namespace("shop").Update(c.t.Context(), o,
		metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsInvalid(err) {
		c.t.Errorf("the API server takes the change of the %s %s that Prerig rejects: %v", update.kind, o.GetName(), err)
	}
}

// TestInClusterFluxUpgradesTheMesh has the real kustomize-controller apply twenty applications with Jobs, bare Pods and StatefulSets, and
// then apply them again after the mesh was upgraded. Owners edit every fifth one so that the API server rejects the update: those keep
// what is published, and all others are upgraded without a rejection.
func TestInClusterFluxUpgradesTheMesh(t *testing.T) {
	if os.Getenv("PRERIG_UPGRADE") == "" {
		t.Skip("PRERIG_UPGRADE is not set; make e2e-upgrade runs this")
	}
	if err := testprograms.PlaceValidator(); err != nil {
		t.Fatal(err)
	}
	const apps = 20
	c := newInCluster(t, "flux", "shop")
	c.startFlux()
	f := prepareAlone(t, nil)
	files := meshPolicy("1.31.0")
	for i := range apps {
		files[fmt.Sprintf("apps/up-%d/all.yaml", i)] = upgradedApp(fmt.Sprintf("up-%d", i))
	}
	f.repository.Commit("first", files)
	c.use(f)
	c.serveArtifacts(f, "flux")
	f.start()
	for i := range apps {
		name := fmt.Sprintf("up-%d", i)
		pipeline := artifactPipeline("flux", name, f.repository.URL)
		c.apply(renderPipelines, c.parse(strings.Replace(pipeline, "{builtIn: istio}", "{path: policy.yaml}", 1)))
		c.apply(kustomizations, c.parse(fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux}
spec:
  interval: 10m
  retryInterval: 5s
  prune: true
  sourceRef: {kind: ExternalArtifact, name: %[1]s}
  postBuild: {substitute: {cluster: production}}
`, name)))
	}
	before := map[string]map[string]*unstructured.Unstructured{}
	for i := range apps {
		name := fmt.Sprintf("up-%d", i)
		c.reads(kustomizations, "flux", name, kstatus.CurrentStatus, "Applied revision")
		before[name] = c.applied(name, "1.31.0")
	}

	edits := []func(text string) string{
		func(text string) string { // the Job's image
			return edited(text, "kind: Job", `"app:1"`, `"app:2"`)
		},
		func(text string) string { return strings.Replace(text, "serviceName: ", "serviceName: other-", 1) },
		func(text string) string { return strings.Replace(text, "command: [run]", "command: [walk]", 1) },
		func(text string) string {
			text = edited(text, "kind: Deployment", "matchLabels: {app: ", "matchLabels: {tier: web, app: ")
			return edited(text, "kind: Deployment", "labels: {app: ", "labels: {tier: web, app: ")
		},
	}
	files = meshPolicy("1.31.1")
	rejected := map[string]bool{}
	for i := range apps {
		name := fmt.Sprintf("up-%d", i)
		text := upgradedApp(name)
		if i%5 == 0 {
			rejected[name] = true
			text = edits[i/5%len(edits)](text)
		} else {
			text = edited(text, "kind: Deployment", `"app:1"`, `"app:2"`)
		}
		files["apps/"+name+"/all.yaml"] = text
	}
	f.push(f.repository.Commit("upgrade", files))
	for i := range apps {
		name := fmt.Sprintf("up-%d", i)
		if rejected[name] {
			c.reads(renderPipelines, "flux", name, kstatus.FailedStatus, "update-rejected")
			c.refuses(before[name], rejectedUpdates[i/5%len(rejectedUpdates)])
			c.keeps(name, before[name], "1.31.0")
			continue
		}
		c.await(name+" to be upgraded", func(ctx context.Context) error {
			o, err := c.dynamic.Resource(deploymentGVR).Namespace("shop").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if text := fmt.Sprint(o.Object["spec"]); !strings.Contains(text, "1.31.1") || !strings.Contains(text, "app:2") {
				return fmt.Errorf("it has %s", text)
			}
			return nil
		})
		c.reads(kustomizations, "flux", name, kstatus.CurrentStatus, "Applied revision")
		after := c.applied(name, "")
		for _, kind := range []string{"Job", "Pod"} {
			if after[kind].GetUID() != before[name][kind].GetUID() || !strings.Contains(fmt.Sprint(after[kind].Object["spec"]), "1.31.0") {
				t.Errorf("the %s of %s is another one", kind, name)
			}
		}
		if text := fmt.Sprint(after["StatefulSet"].Object["spec"]); !strings.Contains(text, "1.31.1") || !strings.Contains(text, "production") {
			t.Errorf("the StatefulSet of %s has %s", name, text)
		}
	}
}

// edited replaces a text once, in the document of a kind.
func edited(text, kind, old, replacement string) string {
	at := strings.Index(text, kind)
	return text[:at] + strings.Replace(text[at:], old, replacement, 1)
}

// applied returns the objects of an application by their kinds, with a text in the Deployment.
func (c *inCluster) applied(name, text string) map[string]*unstructured.Unstructured {
	c.t.Helper()
	out := map[string]*unstructured.Unstructured{}
	for kind, gvr := range upgradedKinds {
		o, err := c.dynamic.Resource(gvr).Namespace("shop").Get(c.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		out[kind] = o
	}
	if !strings.Contains(fmt.Sprint(out["Deployment"].Object["spec"]), text) {
		c.t.Errorf("the Deployment of %s lacks %q: %v", name, text, out["Deployment"].Object["spec"])
	}
	return out
}

// keeps expects that no object of an application has changed.
func (c *inCluster) keeps(name string, before map[string]*unstructured.Unstructured, tag string) {
	c.t.Helper()
	for kind, o := range c.applied(name, tag) {
		if o.GetUID() != before[kind].GetUID() || o.GetGeneration() != before[kind].GetGeneration() {
			c.t.Errorf("the %s of %s was changed", kind, name)
		}
	}
}
