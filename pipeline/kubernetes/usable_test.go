// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// TestPolicyThatNothingCanUse has policies that the definition takes, and of which no injector can be made.
func TestPolicyThatNothingCanUse(t *testing.T) {
	for name, tc := range map[string]struct{ spec, wrong string }{
		"built in":              {"istio: {injector: {builtIn: istio}}", ""},
		"mesh config":           {"istio: {injector: {builtIn: istio}, meshConfig: 'not: [valid'}", "spec.istio.meshConfig: "},
		"injector's config":     {"istio: {injector: {config: 'a: ['}}", "spec.istio.injector.config: "},
		"template":              {"istio: {injector: {config: \"{policy: enabled, templates: {sidecar: '{{ foo'}}\", values: 'global: {}'}, version: '1.29'}", "foo"},
		"values":                {"istio: {injector: {config: \"{policy: enabled, templates: {sidecar: 'a: b'}}\", values: '{'}, version: '1.29'}", "spec.istio.injector.values: "},
		"no such policy":        {"istio: {injector: {builtIn: istioo}}", "istioo"},
		"sidecar":               {"sidecars: [{name: own, select: {default: Inject}, template: '{{ foo'}]", "spec.sidecars[0]"},
		"sidecar that is right": {"sidecars: [{name: own, select: {default: Inject}, template: 'spec: {containers: [{name: own, image: own}]}'}]", ""},
		"from the cluster":      {"from: Cluster\nistio: {revision: prod}", ""},
		"from a ConfigMap":      {"istio: {injector: {configMap: {name: mine}}}", ""},
		"of the items":          {"istio: {}", ""},
		"with a lock":           {"istio: {injector: {builtIn: istio}}\nimages: {lock: images}", ""},
		"removes":               {"mode: Remove", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var spec map[string]any
			if err := yaml.Unmarshal([]byte(tc.spec), &spec); err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "prerig.dev/v1alpha1", "kind": "InjectionPolicy", "metadata": map[string]any{"name": "mesh", "namespace": "shop", "uid": "a"}, "spec": spec,
			}}
			r, client := newTestReporter(object)
			r.Watcher.storeObject(policies, object)
			for range 2 { // the second time it is remembered
				if err := r.reconcileObject(t.Context(), item{policies, "shop/mesh"}); err != nil {
					t.Fatal(err)
				}
			}
			after, err := client.Resource(policies).Namespace("shop").Get(t.Context(), "mesh", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			c := conditions.FindStatusCondition(statusOf(after).Conditions, meta.ReadyCondition)
			if c == nil || (c.Status == metav1.ConditionTrue) != (tc.wrong == "") || !strings.Contains(c.Message, tc.wrong) {
				t.Fatalf("it says %+v", c)
			}
			if tc.wrong != "" && (c.Reason != v1alpha1.ReasonInvalid || !isStalled(statusOf(after).Conditions)) {
				t.Errorf("it says %+v", statusOf(after).Conditions)
			}
		})
	}
}

// TestJudgementFollowsThePolicy changes a policy that was wrong, and deletes it.
func TestJudgementFollowsThePolicy(t *testing.T) {
	r, _ := newTestReporter()
	for text, want := range map[string]bool{"{config: 'a: ['}": false, "{builtIn: istio}": true} {
		policy := "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh, namespace: shop}\nspec: {istio: {injector: " + text + "}}\n"
		if wrong, err := r.judgements.reasonFor(t.Context(), "shop/mesh", []byte(policy)); err != nil || (wrong == "") != want {
			t.Errorf("%s: %q, %v", text, wrong, err)
		}
	}
	if err := r.reconcileObject(t.Context(), item{policies, "shop/mesh"}); err != nil || len(r.judgements.known) != 0 {
		t.Errorf("of a policy that is gone is kept: %v, %v", r.judgements.known, err)
	}
}
