// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/kubernetes"
)

// inClusterPipeline is pipelineYAML with a policy that is an object and a secret, both of the namespace.
func inClusterPipeline(namespace, name, url, more string) string {
	text := strings.Replace(pipelineYAML(name, url, more), "namespace: team", "namespace: "+namespace, 1)
	text = strings.Replace(text, "[{builtIn: istio}]", "[{name: mesh}]", 1)
	return strings.Replace(text, "ref: {branch: main}", "ref: {branch: main}, secretRef: {name: git}", 1)
}

const shopPolicy = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: mesh, namespace: shop}
spec:
  istio: {injector: {builtIn: istio-1.31}}
  lint: {}
`

// TestInClusterPipelines takes a pipeline through its life as an object, with the ServiceAccount of the manifests: published, read by
// kstatus, asked for by both annotations, mended, changed by its policy, refused another namespace's secret, and deleted.
func TestInClusterPipelines(t *testing.T) {
	c := newInCluster(t, "shop", "other")
	f := prepareAlone(t, nil)
	f.git.Username, f.git.Password = "shop", "password-of-shop"
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1"), "apps/odd/web.yaml": deployment("odd", "web:1")})
	c.use(f)
	f.start()
	c.apply(policyObjects, c.parse(strings.Replace(shopPolicy, "istio-1.31", "istio", 1)))
	c.apply(renderPipelines, c.parse(inClusterPipeline("shop", "web", f.repository.URL, "  deletionPolicy: Delete\n")))

	// The daemon may not read the secret before somebody lets it.
	c.apply(secretGVR, object("v1", "Secret", "shop", "git", map[string]any{"stringData": map[string]any{
		"username": "shop", "password": "password-of-shop", ".hosts": f.git.URL,
	}}))
	c.reads(renderPipelines, "shop", "web", kstatus.InProgressStatus, "RoleBinding in shop")
	c.bindSecrets("shop")
	c.annotate("shop", "web", v1alpha1.RequestAnnotation, "one")
	o := c.reads(renderPipelines, "shop", "web", kstatus.CurrentStatus, "1 object")
	const file = "web/shop/deployment-web.yaml"
	if got := f.rendered(file); !strings.Contains(got, "istio-proxy") {
		t.Errorf("nothing was injected:\n%s", got)
	}
	status := statusOf(t, o)
	if status.ObservedGeneration != o.GetGeneration() || status.LastHandledReconcileAt != "one" || len(status.Published) != 1 {
		t.Errorf("its status is %+v", status)
	}
	if got := o.GetFinalizers(); len(got) != 1 || got[0] != kubernetes.Finalizer {
		t.Errorf("its finalizers are %q", got)
	}
	c.reads(policyObjects, "shop", "mesh", kstatus.CurrentStatus, "can be used")
	c.hasEvent("shop", "web", "Normal", "Published")

	c.annotate("shop", "web", meta.ReconcileRequestAnnotation, "two")
	c.await("the second request", func(context.Context) error {
		if got := statusOf(t, c.pipeline("shop", "web")).LastHandledReconcileAt; got != "two" {
			return fmt.Errorf("the last request handled is %q", got)
		}
		return nil
	})

	second := f.repository.Commit("second", map[string]string{"apps/web/web.yaml": deployment("web", "web:2")})
	if code := f.push(second); code != http.StatusAccepted {
		t.Fatalf("the webhook was answered with %d", code)
	}
	f.shows(file, "image: web:2")

	// A policy that is another one is a reason to render.
	c.apply(policyObjects, c.parse(strings.Replace(shopPolicy, "istio: {injector: {builtIn: istio-1.31}}", "mode: Remove", 1)))
	f.eventually("waiting for the new policy", func() string {
		if strings.Contains(f.rendered(file), "istio-proxy") {
			return "it is still injected"
		}
		return ""
	})

	testInvalidObjects(t, c, f)

	// Nobody reads a secret of another namespace.
	c.apply(renderPipelines, c.parse(strings.Replace(inClusterPipeline("other", "thief", f.repository.URL, ""), "name: mesh", "builtIn: istio", 1)))
	c.reads(renderPipelines, "other", "thief", kstatus.InProgressStatus, "secret other/git")

	if err := c.dynamic.Resource(renderPipelines).Namespace("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.await("the deleted pipeline to go", func(context.Context) error {
		if o := c.pipeline("shop", "web"); o != nil {
			return fmt.Errorf("it is there: %v", o.Object["status"])
		}
		return nil
	})
	if got := f.rendered(file); got != "" {
		t.Errorf("what it had published is left:\n%s", got)
	}
	c.hasEvent("shop", "web", "Normal", "Removed")
}

// testInvalidObjects has a pipeline that only the daemon finds to be wrong, and is mended.
func testInvalidObjects(t *testing.T, c *inCluster, f *fixture) {
	t.Helper()
	wrong := inClusterPipeline("shop", "odd", f.repository.URL, "  build: {path: apps/odd, limits: {memory: lots}}\n")
	wrong = strings.Replace(wrong, "  build: {path: apps/odd}\n", "", 1)
	c.apply(renderPipelines, c.parse(wrong))
	o := c.reads(renderPipelines, "shop", "odd", kstatus.FailedStatus, "spec.build.limits.memory: must be a quantity")
	if ready := condition(o, "Ready"); ready["reason"] != v1alpha1.ReasonInvalid || strings.Contains(fmt.Sprint(ready["message"]), "line 1") {
		t.Errorf("its condition is %v", ready)
	}
	c.hasEvent("shop", "odd", "Warning", "Invalid")
	c.apply(renderPipelines, c.parse(strings.Replace(wrong, "lots", "1Gi", 1)))
	c.reads(renderPipelines, "shop", "odd", kstatus.CurrentStatus, "1 object")

	c.apply(policyObjects, c.parse("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: wrong, namespace: shop}\nspec:\n  istio: {injector: {config: 'a: [', values: '{}'}}\n  namespaces: [{name: a}, {name: a}]\n"))
	o = c.reads(policyObjects, "shop", "wrong", kstatus.FailedStatus, `spec.namespaces[1].name: "a" is already given`)
	if ready := condition(o, "Ready"); ready["status"] != string(metav1.ConditionFalse) || ready["reason"] != v1alpha1.ReasonInvalid {
		t.Errorf("the condition of a wrong policy is %v", ready)
	}
}

// statusOf reads the status of an object.
func statusOf(t *testing.T, o *unstructured.Unstructured) v1alpha1.RenderPipelineStatus {
	t.Helper()
	all, err := v1alpha1.StatusOf(o.Object["status"])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// hasEvent waits for an event about a pipeline, and fails where it was made twice: of two runs the message differs in the revision.
func (c *inCluster) hasEvent(namespace, name, kind, reason string) {
	c.t.Helper()
	c.await("an event "+reason, func(ctx context.Context) error {
		all, err := c.dynamic.Resource(eventGVR).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		found := map[string]int{}
		for _, e := range all.Items {
			about, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
			if about == name && e.Object["type"] == kind && e.Object["reason"] == reason {
				found[fmt.Sprint(e.Object["message"], e.Object["firstTimestamp"])]++
			}
		}
		for message, n := range found {
			if n > 1 {
				c.t.Errorf("%d events say %q", n, message)
			}
		}
		if len(found) == 0 {
			return fmt.Errorf("there is none")
		}
		return nil
	})
}
