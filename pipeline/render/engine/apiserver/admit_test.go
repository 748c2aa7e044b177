// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/policies"
)

// documentsOf returns the documents of a text.
func documentsOf(t *testing.T, path, text string) []render.GateDocument {
	t.Helper()
	file, err := manifest.Parse(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out []render.GateDocument
	for _, doc := range file.Docs {
		sent, ok := render.NewGateDocument(doc, doc, path)
		if !ok {
			t.Fatal("an element of a list")
		}
		out = append(out, sent)
	}
	return out
}

// admitOne returns the answer about one workload.
func admitOne(t *testing.T, workload, cluster string, complete ...string) render.AdmittedPod {
	t.Helper()
	request := &render.AdmitRequest{Why: true, Catalog: documentsOf(t, "cluster.yaml", cluster)}
	request.Options.KubernetesVersion, request.Options.Complete = "1.36", complete
	request.Groups = []render.AdmitGroup{{Documents: documentsOf(t, "k8s.yaml", workload)}}
	admitted, err := Admit(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if len(admitted.Pods) != 1 {
		t.Fatalf("%d pods", len(admitted.Pods))
	}
	return admitted.Pods[0]
}

const plainPod = `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop, labels: {app: a}}, spec: {containers: [{name: c, image: x}]}}
`

// mutating returns a policy with its binding.
func mutating(name, more, mutation string) string {
	return `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: ` + name + `}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
` + more + `
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '` + mutation + `'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: ` + name + `}
spec: {policyName: ` + name + `}
---
`
}

func podField(pod map[string]any, path ...string) any {
	var v any = pod
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// TestSecondRound has a policy add a container, which LimitRanger and ServiceAccount complete in the second round, and an
// earlier policy count it only if it may be called again.
func TestSecondRound(t *testing.T) {
	t.Parallel()
	limits := "{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: shop}, spec: {limits: [{type: Container, default: {cpu: 1}}]}}\n---\n"
	count := `[JSONPatch{op: "add", path: "/metadata/labels/n", value: string(size(object.spec.containers))}]`
	add := `object.spec.containers.exists(c, c.name == "z") ? [] : ` +
		`[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "z", image: "z"}}]`
	for policy, want := range map[string]string{"IfNeeded": "2", "Never": "1"} {
		got := admitOne(t, plainPod, limits+mutating("a", "  reinvocationPolicy: "+policy, count)+mutating("b", "  reinvocationPolicy: Never", add),
			"LimitRange", "PriorityClass")
		if got.Rejected != "" {
			t.Fatal(got.Rejected)
		}
		if n := podField(got.Pod, "metadata", "labels", "n"); n != want {
			t.Errorf("%s: counted %v containers, want %s", policy, n, want)
		}
		containers, _ := podField(got.Pod, "spec", "containers").([]any)
		added, _ := containers[1].(map[string]any)
		if podField(added, "resources", "limits", "cpu") != "1" || added["volumeMounts"] == nil {
			t.Errorf("%s: the second round has not completed %v", policy, added)
		}
		ordered := slices.ContainsFunc(got.Missing, func(text string) bool { return strings.HasPrefix(text, "the order of") })
		if ordered == (policy == "IfNeeded") {
			t.Errorf("%s: not known: %v", policy, got.Missing)
		}
		for _, r := range got.Reasons {
			if r.Step == "" {
				t.Errorf("%s has no reason", r.Field)
			}
		}
	}
}

// addingParameters returns two parameters, and a policy that adds a container for each of those that a reference means.
func addingParameters(ref string) (out string) {
	for _, name := range []string{"gold", "iron"} {
		out += "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: shop, labels: {tier: x}}, data: {image: " + name + ":1}}\n---\n"
	}
	add := `[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: params.metadata.name, image: params.data.image}}]`
	policy := mutating("a", "  reinvocationPolicy: Never\n  paramKind: {apiVersion: v1, kind: ConfigMap}", add)
	return out + strings.Replace(policy, "policyName: a", "policyName: a, paramRef: {parameterNotFoundAction: Deny, "+ref+"}", 1)
}

// TestParametersInNoOrder has a binding select two parameters, each of which adds a container: the API server takes them in no fixed order.
func TestParametersInNoOrder(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]bool{"selector: {matchLabels: {tier: x}}": true, "name: gold": false} {
		got := admitOne(t, plainPod, addingParameters(ref), "LimitRange", "PriorityClass", "ConfigMap")
		ordered := slices.ContainsFunc(got.Missing, func(text string) bool { return strings.HasPrefix(text, "the order of") })
		if got.Rejected != "" || ordered != want {
			t.Errorf("%s: %s %v\n%v", ref, got.Rejected, got.Missing, got.Pod)
		}
	}
}

// TestRejections are pods that plugins and policies reject, with the API server's reasons.
func TestRejections(t *testing.T) {
	t.Parallel()
	pod := func(spec string) string { return strings.Replace(plainPod, "spec: {", "spec: {"+spec+", ", 1) }
	mirror := func(spec string) string {
		return strings.Replace(pod(spec), "labels:", "annotations: {kubernetes.io/config.mirror: a}, labels:", 1)
	}
	broken := `[JSONPatch{op: "remove", path: "/spec/none"}]`
	for name, c := range map[string]struct{ pod, cluster, want string }{
		"no class":             {pod("priorityClassName: none"), "", "Priority: no PriorityClass with name none was found"},
		"no runtime":           {pod("runtimeClassName: none"), "", `RuntimeClass: pod rejected: RuntimeClass "none" not found`},
		"no account":           {pod("serviceAccountName: none"), "", `ServiceAccount: error looking up service account shop/none: serviceaccount "none" not found`},
		"own priority":         {pod("priority: 5"), "", "Priority: the integer value of priority (5) must not be provided"},
		"mirror of an account": {mirror("serviceAccountName: web"), "", "ServiceAccount: a mirror pod may not reference service accounts"},
		"mirror that pulls":    {mirror("imagePullSecrets: [{name: s}]"), "", "ServiceAccount: a mirror pod may not reference secrets"},
		"mirror of a volume":   {mirror("volumes: [{name: v, secret: {secretName: s}}]"), "", "ServiceAccount: a mirror pod may not reference secrets"},
		"mirror of a projection": {
			mirror("volumes: [{name: v, projected: {sources: [{secret: {name: s}}]}}]"), "", "ServiceAccount: a mirror pod may not reference secrets",
		},
		"mirror of a driver": {
			mirror("volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: s}}}]"), "", "ServiceAccount: a mirror pod may not reference secrets",
		},
		"mirror of a variable": {
			mirror("initContainers: [{name: i, image: x, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]"), "",
			"ServiceAccount: a mirror pod may not reference secrets",
		},
		"mirror of all variables": {
			mirror("initContainers: [{name: i, image: x, envFrom: [{secretRef: {name: s}}]}]"), "", "ServiceAccount: a mirror pod may not reference secrets",
		},
		"mirror with a token": {
			mirror("volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]"), "",
			"ServiceAccount: a mirror pod may not use ServiceAccountToken volume projections",
		},
		"plain mirror": {mirror("volumes: [{name: v, configMap: {name: s}}]"), "", ""},
		"limit": {
			pod("restartPolicy: Never"), "{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: shop}, spec: {limits: [{type: Container, min: {cpu: 2}, defaultRequest: {cpu: 1}}]}}",
			"LimitRanger: minimum cpu usage per Container is 2, but request is 1",
		},
		"quota": {
			plainPod, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: shop}, spec: {hard: {limits.cpu: 1}}}",
			"ResourceQuota: failed quota: q: must specify limits.cpu for: c",
		},
		"policy":  {plainPod, mutating("p", "  reinvocationPolicy: Never", broken), "MutatingAdmissionPolicy: policy 'p' with binding 'p' denied request"},
		"ignored": {plainPod, mutating("p", "  reinvocationPolicy: Never\n  failurePolicy: Ignore", broken), ""},
	} {
		account := "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop}}\n---\n"
		got := admitOne(t, c.pod, account+c.cluster, "ServiceAccount", "PriorityClass", "RuntimeClass", "LimitRange")
		if c.want == "" && got.Rejected != "" || !strings.HasPrefix(got.Rejected, c.want) {
			t.Errorf("%s: got %q, want %q", name, got.Rejected, c.want)
		}
	}
}

// TestMissingInputs are named, and nothing is guessed.
func TestMissingInputs(t *testing.T) {
	t.Parallel()
	pod := strings.Replace(plainPod, "spec: {", "spec: {priorityClassName: high, runtimeClassName: gvisor, serviceAccountName: web, ", 1)
	asks := mutating("p", "  reinvocationPolicy: Never\n  matchConditions: [{name: a, expression: 'authorizer.group(\"\").resource(\"pods\").check(\"get\").allowed()'}]",
		`[JSONPatch{op: "add", path: "/metadata/labels/n", value: "1"}]`)
	hook := `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: other}
webhooks:
- name: pods.other.example.com
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
`
	got := admitOne(t, pod, asks+hook)
	for _, want := range []string{
		"LimitRanges of namespace shop", "ServiceAccount shop/web", "PriorityClass high", "RuntimeClass gvisor",
		"MutatingAdmissionPolicy p was not evaluated: the expression asks the cluster's authorizer", "webhook other/pods.other.example.com",
	} {
		if !slices.ContainsFunc(got.Missing, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("%q is not named: %v", want, got.Missing)
		}
	}
	if got.Rejected != "" || podField(got.Pod, "spec", "priority") != nil || podField(got.Pod, "metadata", "labels", "n") != nil {
		t.Errorf("something was guessed: %q %v", got.Rejected, got.Pod)
	}
}

// TestTheOrderDecidesTheReason names the order of policies where several reject a pod: the API server reports the first one.
func TestTheOrderDecidesTheReason(t *testing.T) {
	t.Parallel()
	remove := `[JSONPatch{op: "remove", path: "/spec/noSuchField"}]`
	other := `[JSONPatch{op: "remove", path: "/spec/otherField"}]`
	label := `[JSONPatch{op: "add", path: "/metadata/labels/n", value: "1"}]`
	for name, c := range map[string]struct {
		second string
		named  bool
	}{"both reject": {other, true}, "one rejects": {label, false}} {
		got := admitOne(t, plainPod, mutating("a", "", remove)+mutating("b", "", c.second), "LimitRange", "PriorityClass")
		named := slices.ContainsFunc(got.Missing, func(m string) bool { return strings.HasSuffix(m, "it decides why the pod is rejected") })
		if got.Rejected == "" || named != c.named {
			t.Errorf("%s: rejected %q, not known: %q", name, got.Rejected, got.Missing)
		}
	}
}

// TestTheOrderDecidesTheReasonAfterWebhooks has two policies fail in the second round alone, because of what the mesh's webhook adds: the
// API server names either of them (seed 21 of the comparison with Kubernetes 1.34).
func TestTheOrderDecidesTheReasonAfterWebhooks(t *testing.T) {
	t.Parallel()
	istio, _ := policies.Get("istio")
	fails := `"sidecar.istio.io/status" in object.metadata.?annotations.orValue({}) ? object.metadata.labels["absent"] == "" : true`
	condition := "  reinvocationPolicy: Never\n  matchConditions: [{name: some, expression: '" + fails + "'}]"
	namespace := "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled}}}\n---\n"
	for n, want := range map[int]bool{1: false, 2: true} {
		cluster := namespace
		for i := range n {
			cluster += mutating(string(rune('a'+i)), condition, `[JSONPatch{op: "add", path: "/metadata/labels/n`+string(rune('a'+i))+`", value: "1"}]`)
		}
		request := &render.AdmitRequest{Catalog: documentsOf(t, "cluster.yaml", cluster)}
		request.Options.KubernetesVersion = "1.34"
		request.Groups = []render.AdmitGroup{{Documents: documentsOf(t, "k8s.yaml", plainPod), Policies: [][]byte{istio}}}
		admitted, err := Admit(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		pod := admitted.Pods[0]
		if !strings.Contains(pod.Rejected, "policy 'a'") {
			t.Errorf("%d policies: rejected: %q", n, pod.Rejected)
		}
		named := slices.ContainsFunc(pod.Missing, func(text string) bool {
			return strings.HasPrefix(text, "the order of") && strings.HasSuffix(text, "decides why the pod is rejected")
		})
		if named != want {
			t.Errorf("%d policies: not known: %q", n, pod.Missing)
		}
	}
}

// TestDefaultsBetweenPolicies has policies change labels before and after one that adds a container: the container has the
// API server's defaults, and so has what a policy sets beside it.
func TestDefaultsBetweenPolicies(t *testing.T) {
	t.Parallel()
	label := func(name string) string {
		return mutating(name, "  reinvocationPolicy: Never", `[JSONPatch{op: "add", path: "/metadata/labels/`+name+`", value: "yes"}]`)
	}
	add := mutating("b", "  reinvocationPolicy: Never",
		`[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "z", image: "z"}}]`)
	got := admitOne(t, plainPod, label("a")+add+label("c")+label("d"), "LimitRange", "PriorityClass")
	containers, _ := podField(got.Pod, "spec", "containers").([]any)
	if got.Rejected != "" || len(containers) != 2 {
		t.Fatalf("%d containers: %s", len(containers), got.Rejected)
	}
	added, _ := containers[1].(map[string]any)
	if added["imagePullPolicy"] != "Always" || added["terminationMessagePath"] != "/dev/termination-log" {
		t.Errorf("the added container lacks defaults: %v", added)
	}
	for _, name := range []string{"a", "c", "d"} {
		if podField(got.Pod, "metadata", "labels", name) != "yes" {
			t.Errorf("the label %s is missing", name)
		}
	}
}

// TestOrderOfPoliciesThatRunOnce names the field that the order of two policies decides, and a condition that fails only in
// the second round of one order.
func TestOrderOfPoliciesThatRunOnce(t *testing.T) {
	t.Parallel()
	const once = "  reinvocationPolicy: Never"
	set := func(name, value string) string {
		return mutating(name, once, `[JSONPatch{op: "add", path: "/metadata/labels/n", value: "`+value+`"}]`)
	}
	got := admitOne(t, plainPod, set("a", "1")+set("b", "2"), "LimitRange", "PriorityClass")
	decides := func(text string) bool { return strings.HasSuffix(text, "it decides metadata.labels.n") }
	if n := podField(got.Pod, "metadata", "labels", "n"); n != "2" || !slices.ContainsFunc(got.Missing, decides) {
		t.Errorf("the label is %v, not known: %v", n, got.Missing)
	}
	fails := once + "\n  matchConditions: [{name: c, expression: '!has(object.metadata.labels.n) || int(object.metadata.labels.n) > 0'}]"
	other := mutating("a", fails, `[JSONPatch{op: "add", path: "/metadata/labels/m", value: "1"}]`)
	got = admitOne(t, plainPod, other+set("b", "text"), "LimitRange", "PriorityClass")
	if !strings.HasPrefix(got.Rejected, "MutatingAdmissionPolicy: policy 'a'") {
		t.Errorf("the condition fails in the second round, and the pod is rejected for: %q", got.Rejected)
	}
}
