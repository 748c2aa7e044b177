// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/podmap"
)

// openTelemetryVersions are the operator's versions that the policies are compared with, the newest first.
var openTelemetryVersions = []string{"0.148.0", "0.131.0"}

// openTelemetryPolicies are the cases of each policy.
var openTelemetryPolicies = map[string]map[string]openTelemetryCase{
	"opentelemetry-sidecar":         openTelemetrySidecarCases,
	"opentelemetry-instrumentation": openTelemetryInstrumentationCases,
}

// openTelemetryCase is a pod of a workload orders in the namespace shop, and the operator's objects in the cluster.
type openTelemetryCase struct {
	// annotations are the pod's, and namespace those of its namespace.
	annotations, namespace, labels map[string]string
	// spec is the pod's in YAML; empty for one container.
	spec string
	// kind of the workload; empty for StatefulSet.
	kind string
	// objects are OpenTelemetryCollectors or Instrumentations, as a YAML stream.
	objects string
	// notNative says that the cluster has no native sidecars.
	notNative bool
	// difference is the row of the docs' table that says why the pod is not the operator's; older is that for an older operator.
	difference, older string
}

func (c openTelemetryCase) workloadKind() string {
	if c.kind == "" {
		return "StatefulSet"
	}
	return c.kind
}

// template is the pod as the workload's manifest has it.
func (c openTelemetryCase) template(t *testing.T) map[string]any {
	t.Helper()
	text := c.spec
	if text == "" {
		text = "containers: [{name: web, image: 'example.com/orders:7'}]"
	}
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	labels := map[string]any{"app": "orders"}
	for name, value := range c.labels {
		labels[name] = value
	}
	meta := map[string]any{"labels": labels}
	if len(c.annotations) > 0 {
		meta["annotations"] = anyValues(c.annotations)
	}
	return map[string]any{"metadata": meta, "spec": spec}
}

// anyValues returns the map as decoded YAML has it.
func anyValues(texts map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range texts {
		out[key] = value
	}
	return out
}

func (c openTelemetryCase) shopNamespace() map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop", "annotations": anyValues(c.namespace)}}
}

// clusterObjects are the case's objects, in the namespace shop where they name none.
func (c openTelemetryCase) clusterObjects(t *testing.T) []any {
	t.Helper()
	out := []any{}
	for text := range strings.SplitSeq(c.objects, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		if object == nil {
			continue
		}
		if meta := object["metadata"].(map[string]any); meta["namespace"] == nil {
			meta["namespace"] = "shop"
		}
		out = append(out, object)
	}
	return out
}

// question is what the program is asked: the pod as the workload's controller makes it, and what is in the cluster.
func (c openTelemetryCase) question(t *testing.T) map[string]any {
	t.Helper()
	pod := c.template(t)
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	meta := pod["metadata"].(map[string]any)
	meta["namespace"] = "shop"
	owner := func(version, kind, name string) []any {
		return []any{map[string]any{"apiVersion": version, "kind": kind, "name": name, "uid": "uid-of-" + strings.ToLower(kind)}}
	}
	object := func(version, kind, name string, owners []any) map[string]any {
		return map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop",
			"uid": "uid-of-" + strings.ToLower(kind), "ownerReferences": owners}}
	}
	objects := c.clusterObjects(t)
	switch kind := c.workloadKind(); kind {
	case "Pod":
		meta["name"] = "orders"
	case "Deployment":
		meta["generateName"] = "orders-6d4cf56db6-"
		meta["ownerReferences"] = owner("apps/v1", "ReplicaSet", "orders-6d4cf56db6")
		objects = append(objects, object("apps/v1", "ReplicaSet", "orders-6d4cf56db6", owner("apps/v1", kind, "orders")), object("apps/v1", kind, "orders", nil))
	case "CronJob":
		meta["generateName"] = "orders-29384-"
		meta["ownerReferences"] = owner("batch/v1", "Job", "orders-29384")
		objects = append(objects, object("batch/v1", "Job", "orders-29384", owner("batch/v1", kind, "orders")))
	case "Job":
		meta["generateName"] = "orders-"
		meta["ownerReferences"] = owner("batch/v1", kind, "orders")
		objects = append(objects, object("batch/v1", kind, "orders", nil))
	case "ReplicaSet":
		meta["generateName"] = "orders-"
		meta["ownerReferences"] = owner("apps/v1", kind, "orders")
		objects = append(objects, object("apps/v1", kind, "orders", nil))
	case "StatefulSet":
		meta["name"] = "orders-0"
		meta["ownerReferences"] = owner("apps/v1", kind, "orders")
	default:
		meta["generateName"] = "orders-"
		meta["ownerReferences"] = owner("apps/v1", kind, "orders")
	}
	return map[string]any{"pod": pod, "namespace": c.shopNamespace(), "objects": objects, "native": !c.notNative}
}

// manifest is the case's workload and its namespace.
func (c openTelemetryCase) manifest(t *testing.T) []byte {
	t.Helper()
	return marshalStream(t, c.shopNamespace(), workloadOf(c.workloadKind(), nil, c.template(t)))
}

// policy uses the built-in sidecar with the case's objects, and for an older operator with its image and feature gates.
func (c openTelemetryCase) policy(t *testing.T, name string, operator openTelemetryAnswers) []byte {
	t.Helper()
	values := map[string]any{"native": !c.notNative, "collectors": c.clusterObjects(t)}
	switch {
	case name == "opentelemetry-instrumentation":
		values = map[string]any{"instrumentations": slices.DeleteFunc(c.clusterObjects(t), func(object any) bool {
			return object.(map[string]any)["kind"] != "Instrumentation"
		}), "images": instrumentationImages(operator)}
	case operator.Version != openTelemetryVersions[0]:
		values["image"], values["golangFlags"] = operator.Images["collector"], false
	}
	// JSON is YAML, too, and keeps whole numbers whole.
	policy, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind, "metadata": map[string]any{"name": "telemetry"},
		"spec": map[string]any{"sidecars": []any{map[string]any{"builtIn": name, "values": values}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// instrumentationImages are those of an operator by language.
func instrumentationImages(operator openTelemetryAnswers) map[string]any {
	out := map[string]any{}
	for _, language := range []string{"java", "nodejs", "python", "dotnet", "go"} {
		out[language] = operator.Images[language]
	}
	return out
}

// TestOpenTelemetryOperator compares the policies with what the operator makes of the same pods. A case that differs says by which
// difference of the table in the docs.
func TestOpenTelemetryOperator(t *testing.T) {
	docs, err := os.ReadFile(differencesDocs)
	if err != nil {
		t.Fatal(err)
	}
	for policy, cases := range openTelemetryPolicies {
		differs := map[string]bool{}
		for _, version := range openTelemetryVersions {
			answers := readOpenTelemetryAnswers(t, policy, version)
			if len(answers.Answers) != len(cases) {
				t.Errorf("%s: there are %d answers for %d cases", version, len(answers.Answers), len(cases))
			}
			equal := 0
			for name, tc := range cases {
				t.Run(policy+"/"+version+"/"+name, func(t *testing.T) {
					want, ok := answers.Answers[name]
					if !ok {
						t.Fatal("the operator's answer is missing")
					}
					row := tc.difference
					if row == "" && version != openTelemetryVersions[0] {
						row = tc.older
					}
					diff := openTelemetryDiff(t, policy, tc, answers, want)
					if diff == "" {
						equal++
					} else {
						differs[name] = true
					}
					if diff != "" && row == "" {
						t.Errorf("-operator +Prerig:\n%s", diff)
					}
					if row != "" && !bytes.Contains(docs, []byte("| "+row+" |")) {
						t.Errorf("%s has no row for %q", differencesDocs, row)
					}
				})
			}
			t.Logf("%s %s: %d of %d equal", policy, version, equal, len(cases))
		}
		for name, tc := range cases {
			if tc.difference+tc.older != "" && !differs[name] && !t.Failed() {
				t.Errorf("%s: there is no difference any more: %s%s", name, tc.difference, tc.older)
			}
		}
	}
}

// openTelemetryDiff says how the policy's pod differs from the operator's; it is empty where it does not. It also checks that
// injecting twice is injecting once, and that removing gives the input.
func openTelemetryDiff(t *testing.T, policy string, tc openTelemetryCase, answers openTelemetryAnswers, want injectorAnswer) string {
	t.Helper()
	out, difference := injectAndBack(t, tc.policy(t, policy, answers), tc.manifest(t), "operator", want.Error)
	if out == nil {
		return difference
	}
	var theirs corev1.Pod
	pod, _ := podmap.WithLast(nil, want.Pod) // podmap.KeepLastRule
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pod, &theirs); err != nil {
		t.Fatal(err)
	}
	ours := podOf(t, out, tc.workloadKind())
	delete(ours.Annotations, "sidecar.prerig.dev/"+policy)
	for _, pod := range []*corev1.Pod{&theirs, &ours} {
		pod.Name, pod.Namespace, pod.GenerateName, pod.OwnerReferences, pod.TypeMeta = "", "", "", nil, ours.TypeMeta
		sortVolumes(pod)
	}
	return cmp.Diff(theirs, ours, cmpopts.EquateEmpty())
}

// TestOpenTelemetryOwnCollector: the operator takes a container otc-container out of a pod with the annotation "false", which is
// what the policy opentelemetry-collector sets to keep it away. The stored answer says that it does.
func TestOpenTelemetryOwnCollector(t *testing.T) {
	const name = "false, has one"
	for _, version := range openTelemetryVersions {
		answer := readOpenTelemetryAnswers(t, "opentelemetry-sidecar", version).Answers[name]
		spec, _ := answer.Pod["spec"].(map[string]any)
		if inits, _ := spec["initContainers"].([]any); answer.Pod == nil || len(inits) > 0 {
			t.Errorf("%s: the operator leaves the container in: %+v", version, answer)
		}
	}
	text := "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec: {sidecars: [{builtIn: opentelemetry-collector, values: {native: %v}}]}\n"
	input := "apiVersion: v1\nkind: Pod\nmetadata: {name: x, annotations: {sidecar.opentelemetry.io/inject: \"true\"}}\nspec: {containers: [{name: a, image: i}]}\n"
	for _, native := range []bool{true, false} {
		out, results := apply(t, fmt.Appendf(nil, text, native), []byte(input), v1alpha1.ModeInject)
		if !bytes.Contains(out, []byte("otel-collector")) || bytes.Contains(out, []byte("otc-container")) {
			t.Errorf("native %v: the operator would take the container out:\n%s%s", native, out, results)
		}
	}
}
