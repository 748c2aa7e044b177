// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// orderImages are the images of Istio in both configurations.
var orderImages = dig(map[string]any{"hub": "registry.example.com/istio", "tag": "1.31.1"}, "global")

// orderCase is a pod of a StatefulSet orders in the namespace shop that gets Istio's proxy and another sidecar.
type orderCase struct {
	// policy is the built-in one of the other sidecar, and values are those that make its injector's pods.
	policy string
	values map[string]any
	// annotations and spec are the pod's; an empty spec is that of orderPlain.
	annotations map[string]string
	spec        string
	// notNative says that neither is a native sidecar.
	notNative bool
	// leavesIstioAlone says that, where Istio's webhook comes first, the other also changes Istio's containers, and the policy does not.
	leavesIstioAlone bool
}

const orderSpec = "{containers: [{name: web, image: 'example.com/orders:7', ports: [{containerPort: 8080}], readinessProbe: {httpGet: {path: /ready, port: 8080}}}, {name: aux, image: 'example.com/aux:1'}], " +
	"initContainers: [{name: migrate, image: 'example.com/migrate:7'}]}"

// orderPlain gets Istio's proxy alone.
var orderPlain = orderCase{}

// template is the pod as the workload's manifest has it.
func (c orderCase) template(t *testing.T) map[string]any {
	t.Helper()
	text := c.spec
	if text == "" {
		text = orderSpec
	}
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	meta := map[string]any{"labels": map[string]any{"app": "orders", "sidecar.istio.io/inject": "true"}}
	annotations := anyValues(c.annotations)
	if c.notNative {
		annotations["sidecar.istio.io/nativeSidecar"] = "false"
	}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	return map[string]any{"metadata": meta, "spec": spec}
}

// pod is the pod as the first webhook gets it.
func (c orderCase) pod(t *testing.T) map[string]any {
	t.Helper()
	pod := admittedPod(c.template(t))
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	meta := pod["metadata"].(map[string]any)
	meta["name"], meta["generateName"], meta["namespace"] = "orders-0", "orders-", "shop"
	meta["ownerReferences"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "orders", "uid": "1", "controller": true}}
	return pod
}

// orderName names the answer of a case in one of the orders, and orderCaseOf is its other way.
func orderName(name string, after bool) string {
	if after {
		return name + ", after Istio"
	}
	return name + ", before Istio"
}

func orderCaseOf(answer string) string {
	name, _, _ := strings.Cut(answer, ", before Istio")
	name, _, _ = strings.Cut(name, ", after Istio")
	return name
}

// orderQuestion is what the program of an injector is asked.
func orderQuestion(t *testing.T, policy string, tc orderCase, pod map[string]any) map[string]any {
	t.Helper()
	switch policy {
	case "vault-agent":
		return map[string]any{"pod": pod, "namespace": "shop", "env": vaultCase{}.environment()}
	case "cloud-sql-operator":
		values := builtInValues(t, policy)
		return map[string]any{"workload": workloadOf("StatefulSet", nil, map[string]any{}), "template": map[string]any{"metadata": pod["metadata"], "spec": pod["spec"]},
			"proxies": tc.values["workloads"], "sidecar": !tc.notNative, "image": values["image"], "userAgent": values["userAgent"]}
	}
	objects, _ := tc.values["collectors"].([]any)
	more, _ := tc.values["instrumentations"].([]any)
	return map[string]any{"pod": pod, "namespace": openTelemetryCase{}.shopNamespace(), "objects": slices.Concat(objects, more), "native": !tc.notNative}
}

// TestOrderWithIstioWebhooks compares pods with Istio's proxy and another sidecar, in both orders, with what the webhooks of both
// make one after the other. The one difference is that of [orderCase.leavesIstioAlone].
func TestOrderWithIstioWebhooks(t *testing.T) {
	answers := readAnswers[orderAnswers](t, orderAnswersFile)
	eachContainer(answers.Answers, expandContainer)
	if len(answers.Answers) != 2*len(orderCases)+1 {
		t.Errorf("there are %d answers for %d cases in two orders", len(answers.Answers), len(orderCases))
	}
	for name, tc := range orderCases {
		for _, after := range []bool{false, true} {
			t.Run(orderName(name, after), func(t *testing.T) {
				want, ok := answers.Answers[orderName(name, after)]
				if !ok {
					t.Fatal("the answer is missing")
				}
				if diff := orderDiff(t, tc, after, want); diff != "" {
					t.Errorf("-webhooks +Prerig:\n%s", diff)
				}
			})
		}
	}
}

// orderDiff says how the pod differs from that of the webhooks. It also checks that injecting twice is injecting once, and that
// removing gives the input.
func orderDiff(t *testing.T, tc orderCase, after bool, want injectorAnswer) string {
	t.Helper()
	sidecar := map[string]any{"builtIn": tc.policy, "values": tc.values}
	if after {
		sidecar["order"] = map[string]any{"istio": "Outside"}
	}
	policy, err := yaml.Marshal(map[string]any{"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind, "metadata": map[string]any{"name": "both"},
		"spec": map[string]any{"istio": map[string]any{"injector": map[string]any{"builtIn": "istio", "overrides": orderImages}}, "sidecars": []any{sidecar}}})
	if err != nil {
		t.Fatal(err)
	}
	input := marshalStream(t, openTelemetryCase{}.shopNamespace(), workloadOf("StatefulSet", nil, tc.template(t)))
	out, difference := injectAndBack(t, policy, input, tc.policy, want.Error)
	if out == nil {
		return difference
	}
	var workload struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	docs := bytes.Split(out, []byte("\n---\n"))
	if err := yaml.Unmarshal(docs[len(docs)-1], &workload); err != nil {
		t.Fatal(err)
	}
	theirs, ours := orderedPod(t, want.Pod), orderedPod(t, workload.Spec.Template)
	if after && tc.leavesIstioAlone {
		if cmp.Equal(theirs, ours, cmpopts.EquateEmpty()) {
			t.Error("the other webhook does not change Istio's containers")
		}
		dropFromIstio(&theirs, &ours)
	}
	return cmp.Diff(theirs, ours, cmpopts.EquateEmpty())
}

// dropFromIstio takes variables and mounts out of Istio's containers that those of the other pod do not have.
func dropFromIstio(pod, other *corev1.Pod) {
	others := slices.Concat(other.Spec.InitContainers, other.Spec.Containers)
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			at := slices.IndexFunc(others, func(o corev1.Container) bool { return o.Name == c.Name })
			if !strings.HasPrefix(c.Name, "istio-") || at < 0 {
				continue
			}
			c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool {
				return !slices.ContainsFunc(others[at].Env, func(o corev1.EnvVar) bool { return o.Name == v.Name })
			})
			c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
				return !slices.ContainsFunc(others[at].VolumeMounts, func(o corev1.VolumeMount) bool { return o.MountPath == m.MountPath })
			})
		}
	}
}

// orderedPod is the pod with the API server's defaults, without what the controller and Prerig write into it, and with what has no
// meaning for Kubernetes in one order: where new volumes, mounts and variables stand among others.
func orderedPod(t *testing.T, pod map[string]any) corev1.Pod {
	t.Helper()
	admission.Server{}.Default(pod)
	var out corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pod, &out); err != nil {
		t.Fatal(err)
	}
	meta := out.ObjectMeta
	out.TypeMeta, out.ObjectMeta = corev1.Pod{}.TypeMeta, corev1.Pod{}.ObjectMeta
	out.Labels, out.Annotations = meta.Labels, meta.Annotations
	maps.DeleteFunc(out.Annotations, func(name, _ string) bool { return strings.Contains(name, "prerig.dev/") })
	normalizeVaultPod(t, &out)
	for _, list := range [][]corev1.Container{out.Spec.InitContainers, out.Spec.Containers} {
		for i := range list {
			slices.SortStableFunc(list[i].Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
		}
	}
	return out
}

// orderValues returns values in YAML.
func orderValues(text string) map[string]any {
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return out
}

var (
	orderVault     = orderValues("{address: 'https://vault.vault.svc:8200', image: 'hashicorp/vault:1.21.2', native: false, exec: false, ownToken: false}")
	orderCloudSQL  = "workloads: [{apiVersion: cloudsql.cloud.google.com/v1, kind: AuthProxyWorkload, metadata: {name: db, namespace: shop, generation: 3}, spec: {workloadSelector: {kind: StatefulSet}, instances: [{connectionString: 'p:r:orders', portEnvName: DB_PORT}]}}]"
	orderCollector = "collectors: [{apiVersion: opentelemetry.io/v1beta1, kind: OpenTelemetryCollector, metadata: {name: orders, namespace: shop}, " +
		"spec: {mode: sidecar, config: {receivers: {otlp: {protocols: {grpc: {}}}}, exporters: {debug: {}}, extensions: {health_check: {}}, service: {extensions: [health_check], pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}}}}]"
	orderInstrumentation = orderValues("instrumentations: [{apiVersion: opentelemetry.io/v1alpha1, kind: Instrumentation, metadata: {name: orders, namespace: shop}, spec: {exporter: {endpoint: 'http://c:4317'}}}]")

	askForVault     = map[string]string{"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/role": "orders", "vault.hashicorp.com/agent-inject-secret-db": "database/creds/orders"}
	askForCollector = map[string]string{"sidecar.opentelemetry.io/inject": "true"}
)

// withAnnotations returns annotations with more.
func withAnnotations(a map[string]string, more ...string) map[string]string {
	out := maps.Clone(a)
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// orderCases are compared with the webhooks of Istio and of the other.
var orderCases = map[string]orderCase{
	"Vault":             {policy: "vault-agent", values: orderVault, annotations: askForVault, leavesIstioAlone: true},
	"Vault, not native": {policy: "vault-agent", values: orderVault, annotations: askForVault, notNative: true, leavesIstioAlone: true},
	"Vault, held": {policy: "vault-agent", values: orderVault, notNative: true, leavesIstioAlone: true,
		annotations: withAnnotations(askForVault, "proxy.istio.io/config", "{holdApplicationUntilProxyStarts: true}")},
	"Vault, first": {policy: "vault-agent", values: orderVault, notNative: true, leavesIstioAlone: true,
		annotations: withAnnotations(askForVault, "vault.hashicorp.com/agent-init-first", "true")},
	"Vault, containers": {policy: "vault-agent", values: orderVault, leavesIstioAlone: true,
		annotations: withAnnotations(askForVault, "vault.hashicorp.com/agent-inject-containers", "web")},

	"Cloud SQL":             {policy: "cloud-sql-operator", values: orderValues("{" + orderCloudSQL + "}"), leavesIstioAlone: true},
	"Cloud SQL, not native": {policy: "cloud-sql-operator", values: orderValues("{native: false, " + orderCloudSQL + "}"), notNative: true, leavesIstioAlone: true},

	"collector":             {policy: "opentelemetry-sidecar", values: orderValues("{" + orderCollector + "}"), annotations: askForCollector},
	"collector, not native": {policy: "opentelemetry-sidecar", values: orderValues("{native: false, " + orderCollector + "}"), annotations: askForCollector, notNative: true},

	"java":             {policy: "opentelemetry-instrumentation", values: orderInstrumentation, annotations: askFor("inject-java", "true")},
	"java, not native": {policy: "opentelemetry-instrumentation", values: orderInstrumentation, annotations: askFor("inject-java", "true"), notNative: true},
	"java, held": {policy: "opentelemetry-instrumentation", values: orderInstrumentation, notNative: true,
		annotations: withAnnotations(askFor("inject-java", "true"), "proxy.istio.io/config", "{holdApplicationUntilProxyStarts: true}")},
	"sdk, init container":    {policy: "opentelemetry-instrumentation", values: orderInstrumentation, annotations: askFor("inject-sdk", "true", "container-names", "migrate,web")},
	"python, init container": {policy: "opentelemetry-instrumentation", values: orderInstrumentation, annotations: askFor("inject-python", "true", "container-names", "migrate")},
}
