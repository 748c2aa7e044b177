// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/policies"
)

// In these tests each workload is admitted in both ways, and a difference is an error of Admit.

// alikeWorkloads returns n Deployments that differ in names, images, versions, amounts and settings.
func alikeWorkloads(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-%[1]d
  namespace: team-%[2]d
spec:
  selector:
    matchLabels:
      app: web-%[1]d
  template:
    metadata:
      labels:
        app: web-%[1]d
        tier: tier-%[2]d
    spec:
      serviceAccountName: web-%[1]d
      containers:
      - name: main-%[1]d
        image: registry.example.com/web:1.%[1]d
        args:
        - --shard=%[1]d
        env:
        - name: SHARD
          value: "shard %[1]d"
        resources:
          requests:
            cpu: 1%[1]dm
`, i+1, (i+1)%3)
	}
	return b.String()
}

// admitAlike returns the pods of workloads.
func admitAlike(t *testing.T, why bool, workloads, cluster string, policies ...[]byte) []render.AdmittedPod {
	t.Helper()
	request := &render.AdmitRequest{Why: why, Catalog: documentsOf(t, "cluster.yaml", cluster)}
	request.Options.KubernetesVersion = "1.36"
	request.Groups = []render.AdmitGroup{{Documents: documentsOf(t, "k8s.yaml", workloads), Policies: policies}}
	admitted, err := Admit(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return admitted.Pods
}

// shapesOf returns how many different shapes pods have, and how many pods have one.
func shapesOf(pods []render.AdmittedPod) (shapes, shared int) {
	seen := map[int]bool{}
	for _, p := range pods {
		if p.Shape > 0 {
			seen[p.Shape] = true
			shared++
		}
	}
	return len(seen), shared
}

const alikeCluster = `{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: team-0}, spec: {limits: [{type: Container, default: {cpu: 1}, defaultRequest: {memory: 64Mi}}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team-0, labels: {team: red}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team-1, labels: {team: red}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team-2, labels: {team: red}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web-3, namespace: team-0}, imagePullSecrets: [{name: registry}]}
---
`

// TestAlikeWorkloadsHaveOneShape: what is known of a namespace and of an account divides workloads, and their names do not.
func TestAlikeWorkloadsHaveOneShape(t *testing.T) {
	t.Parallel()
	workloads := alikeWorkloads(12)
	pods := admitAlike(t, false, workloads, "")
	if shapes, shared := shapesOf(pods); shapes != 1 || shared != 12 {
		t.Errorf("%d shapes of %d pods, want one of 12", shapes, shared)
	}
	pods = admitAlike(t, false, workloads, alikeCluster)
	if shapes, shared := shapesOf(pods); shapes != 3 || shared != 12 {
		t.Errorf("%d shapes of %d pods, want 3 of 12: the team with limits, without, and the account with a secret", shapes, shared)
	}
}

// TestCapturedWebhooksDivideNoWorkloads: the labels of a captured configuration, such as app, are not those of pods. A selector's are.
func TestCapturedWebhooksDivideNoWorkloads(t *testing.T) {
	t.Parallel()
	istio, _ := policies.Get("istio")
	configuration := func(labels, selected string) string {
		return `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector, labels: {` + labels + `}}
webhooks:
- name: namespace.sidecar-injector.istio.io
  clientConfig: {service: {name: istiod, namespace: istio-system}, caBundle: YXBwYXBwYXBw}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  namespaceSelector: {matchLabels: {istio-injection: enabled}}
  objectSelector: {matchExpressions: [{key: ` + selected + `, operator: NotIn, values: [web-2]}]}
  sideEffects: None
  admissionReviewVersions: [v1]
---
{apiVersion: v1, kind: Namespace, metadata: {name: team-1, labels: {istio-injection: enabled}}}
`
	}
	workloads := strings.NewReplacer("team-0", "team-1", "team-2", "team-1").Replace(alikeWorkloads(9))
	for i := range 9 { // the mesh's templates read the names of containers
		workloads = strings.Replace(workloads, fmt.Sprintf("name: main-%d\n", i+1), "name: main\n", 1)
	}
	for name, c := range map[string]struct {
		cluster     string
		least, most int
	}{
		"labels of the configuration": {configuration("app: sidecar-injector, tier: a", "sidecar.istio.io/inject"), 1, 2},
		"a selected label":            {configuration("release: istiod", "app"), 9, 9},
	} {
		shapes, shared := shapesOf(admitAlike(t, false, workloads, c.cluster, istio))
		if shapes < c.least || shapes > c.most || shared != 9 {
			t.Errorf("%s: %d shapes of %d pods, want %d to %d of 9", name, shapes, shared, c.least, c.most)
		}
	}
}

// TestLimitsOfOtherNamespacesDivideNoWorkloads: amounts are added up in one namespace, and not in another.
func TestLimitsOfOtherNamespacesDivideNoWorkloads(t *testing.T) {
	t.Parallel()
	cluster := "{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: team-0}, spec: {limits: [{type: Pod, max: {cpu: 2}}]}}\n"
	shapes, shared := shapesOf(admitAlike(t, false, alikeWorkloads(12), cluster))
	if shapes != 5 || shared != 12 {
		t.Errorf("%d shapes of %d pods, want 5 of 12: each amount of the team with a limit, and one of the others", shapes, shared)
	}
}

// TestPoliciesThatReadAreSeen: each expression reads something that differs between workloads, or does not.
func TestPoliciesThatReadAreSeen(t *testing.T) {
	t.Parallel()
	label := func(value string) string {
		return `[JSONPatch{op: "add", path: "/metadata/labels/z", value: ` + value + `}]`
	}
	for name, tt := range map[string]struct {
		mutation, more string
		shared         bool
	}{
		"a constant":                    {label(`"x"`), "", true},
		"the number of containers":      {label(`string(size(object.spec.containers))`), "", true},
		"presence":                      {label(`has(object.metadata.labels.app) ? "a" : "b"`), "", true},
		"the keys of a map":             {label(`("app" in object.metadata.labels) ? "a" : "b"`), "", true},
		"a field that all have":         {label(`object.spec.containers.all(c, c.imagePullPolicy == "Always") ? "a" : "b"`), "", true},
		"a label of the namespace":      {label(`namespaceObject.metadata.labels["team"]`), "", true},
		"the name in the template":      {label(`object.metadata.generateName.startsWith("web-7") ? "a" : "b"`), "", false},
		"the length of a name":          {label(`string(size(object.metadata.generateName))`), "", false},
		"a label":                       {label(`object.metadata.labels["app"] == "web-7" ? "a" : "b"`), "", false},
		"a label, computed":             {label(`object.metadata.labels["a" + "pp"] == "web-7" ? "a" : "b"`), "", false},
		"a container's name":            {label(`object.spec.containers.exists(c, c.name == "main-7") ? "a" : "b"`), "", false},
		"a container, by index":         {label(`object.spec.containers[0].name == "main-7" ? "a" : "b"`), "", false},
		"a list as a whole":             {label(`object.spec.containers == [] || string(object.spec.containers[0].image) == "x" ? "a" : "b"`), "", false},
		"elements of a list":            {label(`("--shard=7" in object.spec.containers[0].args) ? "a" : "b"`), "", false},
		"a variable of a chain":         {label(`variables.all.exists(c, c.image.endsWith(":1.7")) ? "a" : "b"`), "  variables: [{name: all, expression: object.spec.containers}]", false},
		"a variable of an expression":   {label(`variables.is ? "a" : "b"`), `  variables: [{name: is, expression: 'object.spec.serviceAccountName == "web-7"'}]`, false},
		"a condition":                   {label(`"x"`), `  matchConditions: [{name: c, expression: 'object.metadata.labels.app != "web-7"'}]`, false},
		"an owner":                      {label(`object.metadata.ownerReferences[0].name == "web-7" ? "a" : "b"`), "", false},
		"a patch that tests":            {`[JSONPatch{op: "test", path: "/metadata/labels/app", value: "web-7"}]`, "  failurePolicy: Ignore", false},
		"a patch that copies":           {`[JSONPatch{op: "copy", from: "/metadata/labels/app", path: "/metadata/labels/z"}]`, "", false},
		"an optional field":             {label(`object.?metadata.?labels[?"app"].orValue("") == "web-7" ? "a" : "b"`), "", false},
		"all of the object":             {label(`string(size(string(dyn(object.metadata.labels))))`), "  failurePolicy: Ignore", false},
		"the elements, one after other": {label(`object.spec.containers.map(c, c.env[0].value)[0] == "shard 7" ? "a" : "b"`), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods := admitAlike(t, false, alikeWorkloads(9), alikeCluster+mutating("p", tt.more, tt.mutation))
			shapes, shared := shapesOf(pods)
			if (shapes <= 3 && shared == 9) != tt.shared {
				t.Errorf("%d shapes of %d pods", shapes, shared)
			}
		})
	}
}

// TestSelectorsThatReadAreSeen: a binding selects pods by a label, and namespaces by their names.
func TestSelectorsThatReadAreSeen(t *testing.T) {
	t.Parallel()
	policy := mutating("p", "", `[JSONPatch{op: "add", path: "/metadata/labels/z", value: "x"}]`)
	for _, selector := range []string{"objectSelector: {matchLabels: {tier: tier-1}}", "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-1}}"} {
		bound := strings.Replace(policy, "spec: {policyName: p}", "spec: {policyName: p, matchResources: {"+selector+"}}", 1)
		pods := admitAlike(t, false, alikeWorkloads(12), bound)
		if shapes, shared := shapesOf(pods); shapes != 3 || shared != 12 {
			t.Errorf("%s: %d shapes of %d pods, want one of each team", selector, shapes, shared)
		}
	}
}

// TestLabelsOfTheInjectionAreSeen: a policy selects pods by a label that the injection derives from another one.
func TestLabelsOfTheInjectionAreSeen(t *testing.T) {
	t.Parallel()
	istio, ok := policies.Get("istio")
	if !ok {
		t.Fatal("no policy istio")
	}
	cluster := `{apiVersion: v1, kind: Namespace, metadata: {name: team-1, labels: {istio-injection: enabled}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: v}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "false", message: never}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: v}
spec:
  policyName: v
  validationActions: [Deny]
  matchResources: {objectSelector: {matchLabels: {service.istio.io/canonical-name: web-4}}}
`
	rejected := 0
	for _, pod := range admitAlike(t, false, strings.NewReplacer("team-0", "team-1", "team-2", "team-1").Replace(alikeWorkloads(9)), cluster, istio) {
		if pod.Rejected != "" {
			rejected++
		}
	}
	if rejected != 1 {
		t.Errorf("%d pods are rejected, want that of web-4 alone", rejected)
	}
}

// TestFieldsOfNamespacesAreSeen: a policy reads another field of the namespace than labels and annotations.
func TestFieldsOfNamespacesAreSeen(t *testing.T) {
	t.Parallel()
	policy := mutating("p", "", `[JSONPatch{op: "add", path: "/metadata/labels/z", value: has(namespaceObject.metadata.finalizers) ? "a" : "b"}]`)
	cluster := strings.Replace(alikeCluster, "{name: team-1,", "{name: team-1, finalizers: [example.com/kept],", 1)
	for i, pod := range admitAlike(t, false, alikeWorkloads(12), cluster+policy) {
		if got, want := podField(pod.Pod, "metadata", "labels", "z"), []string{"a", "b", "b"}[i%3]; got != want {
			t.Errorf("workload %d has %v, want %s", i, got, want)
		}
	}
}

// TestSeveralLimitRangesReject: which of two that reject a pod is the reason is in no fixed order.
func TestSeveralLimitRangesReject(t *testing.T) {
	t.Parallel()
	limits := `{apiVersion: v1, kind: LimitRange, metadata: {name: a, namespace: team-1}, spec: {limits: [{type: Container, max: {cpu: 5m}}]}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: b, namespace: team-1}, spec: {limits: [{type: Pod, max: {cpu: 6m}}]}}
`
	pods := admitAlike(t, false, alikeWorkloads(1), limits)
	text := "the order of LimitRanges, which the API server does not fix: it decides why the pod is rejected"
	if pods[0].Rejected == "" || !slices.Contains(pods[0].Missing, text) {
		t.Errorf("rejected: %q, missing: %q", pods[0].Rejected, pods[0].Missing)
	}
}

// TestRejectedAmountsAreSeen: the API server names an amount of two containers once.
func TestRejectedAmountsAreSeen(t *testing.T) {
	t.Parallel()
	var workloads string
	for i, amounts := range [][2]string{{"3100m", "3500m"}, {"3300m", "3300m"}, {"3400m", "3700m"}} {
		one := strings.NewReplacer("web-1", fmt.Sprintf("web-%d", i), "11m", amounts[0]).Replace(alikeWorkloads(1))
		workloads += one + fmt.Sprintf("      - name: side\n        image: side:1\n        resources: {requests: {cpu: %[1]s}}\n", amounts[1])
	}
	workloads = strings.NewReplacer("{requests: {cpu: ", "\n          requests:\n            cpu: ", "}}", "").Replace(workloads)
	limits := `{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: team-1}, spec: {limits: [{type: Container, max: {cpu: 2}}]}}`
	for i, pod := range admitAlike(t, false, workloads, limits) {
		if named := strings.Count(pod.Rejected, "cpu usage"); named != []int{2, 1, 2}[i] {
			t.Errorf("workload %d: %s", i, pod.Rejected)
		}
	}
}

// TestAlikeWorkloadsOfRandomPolicies admits renamed copies under random sets of policies, with and without reasons.
func TestAlikeWorkloadsOfRandomPolicies(t *testing.T) {
	t.Parallel()
	reads := []string{
		`"x"`, `string(size(object.spec.containers))`, `object.metadata.labels["tier"]`, `object.metadata.generateName`, `object.spec.containers[0].image`,
		`namespaceObject.metadata.labels[?"team"].orValue("none")`, `request.namespace`, `has(object.spec.priority) ? "a" : "b"`,
		`object.spec.containers.map(c, c.name).join("-")`, `object.metadata.labels.exists(k, k.startsWith("n")) ? "a" : "b"`,
		`object.spec.containers.exists(c, c.?resources.?requests[?"cpu"].orValue("0") == "17m") ? "a" : "b"`,
	}
	for seed := range uint64(9) {
		draw := rand.New(rand.NewPCG(seed, 38))
		cluster := alikeCluster
		for i := range 1 + draw.IntN(4) {
			again := []string{"Never", "IfNeeded"}[draw.IntN(2)]
			value := reads[draw.IntN(len(reads))]
			text := mutating(fmt.Sprintf("p%d", i), "  failurePolicy: Ignore\n  reinvocationPolicy: "+again,
				fmt.Sprintf(`[JSONPatch{op: "add", path: "/metadata/annotations", value: {}}, JSONPatch{op: "add", path: "/metadata/annotations/n%d", value: %s}]`, i, value))
			if draw.IntN(3) == 0 {
				text = strings.Replace(text, "patchType: JSONPatch\n    jsonPatch:", "patchType: ApplyConfiguration\n    applyConfiguration:", 1)
				from := strings.Index(text, "{expression: '")
				to := strings.Index(text[from:], "\n") + from
				text = text[:from] + fmt.Sprintf(`{expression: 'Object{metadata: Object.metadata{labels: {"n%d": %s}}}'}`, i, value) + text[to:]
			}
			cluster += text
		}
		admitAlike(t, seed%3 == 0, alikeWorkloads(7), cluster)
	}
}
