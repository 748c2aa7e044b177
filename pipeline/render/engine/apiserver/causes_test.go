// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/render"
)

const (
	policyA = "MutatingAdmissionPolicy a"
	policyB = "MutatingAdmissionPolicy b"
)

// reasonFor returns the reason for a field.
func reasonFor(t *testing.T, pod render.AdmittedPod, field string) render.Reason {
	t.Helper()
	i := slices.IndexFunc(pod.Reasons, func(r render.Reason) bool { return r.Field == field })
	if i < 0 {
		t.Fatalf("%s has no reason: %v", field, pod.Reasons)
	}
	return pod.Reasons[i]
}

// TestReactionsNameTheirCauses: a RuntimeClass sets fields because a policy names it, and the reasons name both.
func TestReactionsNameTheirCauses(t *testing.T) {
	t.Parallel()
	class := "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: placed}, handler: h, overhead: {podFixed: {cpu: 1}}}\n---\n"
	got := admitOne(t, plainPod, class+mutating("a", "", `[JSONPatch{op: "add", path: "/spec/runtimeClassName", value: "placed"}]`),
		"LimitRange", "PriorityClass", "ServiceAccount")
	if got.Rejected == "" {
		t.Fatal("the ServiceAccount does not exist")
	}
	account := "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop}, imagePullSecrets: [{name: s}]}\n---\n"
	got = admitOne(t, plainPod, account+class+mutating("a", "", `[JSONPatch{op: "add", path: "/spec/runtimeClassName", value: "placed"}]`),
		"LimitRange", "PriorityClass", "ServiceAccount")
	if r := reasonFor(t, got, "spec.overhead.cpu"); r.Object != "RuntimeClass placed" || !slices.Equal(r.Because, []string{policyA}) {
		t.Errorf("got %+v", r)
	}
	if r := reasonFor(t, got, "spec.imagePullSecrets[s].name"); r.Object != "ServiceAccount shop/default" || r.Because != nil || r.Otherwise != "" {
		t.Errorf("got %+v", r)
	}
	if r := reasonFor(t, got, "spec.serviceAccountName"); r.Object != "" || r.Step != "ServiceAccount" || r.Detail != "no serviceAccountName" {
		t.Errorf("the account decides its own name: %+v", r)
	}
}

// TestTwoCausesOfOneValue: without the one that sets a value last, the other sets the same.
func TestTwoCausesOfOneValue(t *testing.T) {
	t.Parallel()
	label := `[JSONPatch{op: "add", path: "/metadata/labels/tier", value: "gold"}]`
	got := admitOne(t, plainPod, mutating("a", "", label)+mutating("b", "", label))
	if r := reasonFor(t, got, "metadata.labels.tier"); r.Object != policyA || r.Otherwise != policyB || r.Because != nil {
		t.Errorf("got %+v", r)
	}
}

// TestAPolicyPreventsAnother: the label of the one makes the condition of the other false.
func TestAPolicyPreventsAnother(t *testing.T) {
	t.Parallel()
	label := func(name, value string) string {
		return `[JSONPatch{op: "add", path: "/metadata/labels/` + name + `", value: "` + value + `"}]`
	}
	condition := `  matchConditions: [{name: c, expression: '!has(object.metadata.labels.done)'}]`
	got := admitOne(t, plainPod, mutating("a", "", label("done", "yes"))+mutating("b", condition, label("app", "b")))
	want := render.Prevented{Field: "metadata.labels.app", Value: "a", Object: policyA, Without: "b", By: policyB}
	if !slices.Equal(got.Prevented, []render.Prevented{want}) {
		t.Errorf("got %+v", got.Prevented)
	}
}

// TestTheInjectionIsACause: a policy's container is named by the proxy, and a LimitRange completes the proxy.
func TestTheInjectionIsACause(t *testing.T) {
	t.Parallel()
	policy := `{apiVersion: prerig.dev/v1alpha1, kind: InjectionPolicy, metadata: {name: mesh}, ` +
		`spec: {istio: {injector: {builtIn: istio}}, namespaces: [{name: shop, labels: {istio-injection: enabled}}]}}`
	cluster := "{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: shop}, spec: {limits: [{type: Container, default: {ephemeral-storage: 1Gi}}]}}\n---\n" +
		mutating("a", "", `[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "z", image: "z"}}]`)
	request := &render.AdmitRequest{Why: true, Catalog: documentsOf(t, "cluster.yaml", cluster)}
	request.Options.KubernetesVersion = "1.36"
	request.Groups = []render.AdmitGroup{{Documents: documentsOf(t, "k8s.yaml", plainPod), Policies: [][]byte{[]byte(policy)}}}
	annotated := strings.Replace(plainPod, "labels:", "annotations: {sidecar.istio.io/proxyCPU: 20m}, labels:", 1)
	request.Groups[0].Documents = append(request.Groups[0].Documents, documentsOf(t, "annotated.yaml", annotated)...)
	admitted, err := Admit(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	cpu := reasonFor(t, admitted.Pods[1], "spec.initContainers[istio-proxy].resources.requests.cpu")
	if cpu.After != "20m" || cpu.Object != "InjectionPolicy mesh" || !slices.Equal(cpu.Because, []string{"annotation sidecar.istio.io/proxyCPU: 20m"}) {
		t.Errorf("got %+v", cpu)
	}
	if !strings.HasPrefix(cpu.Detail, "template sidecar, line ") {
		t.Errorf("the template's line is not named: %+v", cpu)
	}
	if cpu := reasonFor(t, admitted.Pods[0], "spec.initContainers[istio-proxy].resources.requests.cpu"); cpu.Because != nil {
		t.Errorf("got %+v", cpu)
	}
	names := reasonFor(t, admitted.Pods[0], "spec.initContainers[istio-proxy].env[ISTIO_META_APP_CONTAINERS].value")
	if names.Object != "InjectionPolicy mesh" || !slices.Equal(names.Because, []string{policyA}) {
		t.Errorf("got %+v", names)
	}
	limit := reasonFor(t, admitted.Pods[0], "spec.initContainers[istio-proxy].resources.limits.ephemeral-storage")
	if limit.Object != "LimitRange shop/l" || !slices.Equal(limit.Because, []string{"InjectionPolicy mesh"}) {
		t.Errorf("got %+v", limit)
	}
}
