// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
)

// patchedPods are pods with and without what patches name.
var patchedPods = []string{
	`{metadata: {name: a, labels: {app: web, "x/y~z": old}, annotations: {note: "1"}}, spec: {containers: [{name: main, image: web:1}]}}`,
	`{metadata: {name: a}, spec: {containers: [{name: main, image: web:1}]}}`,
	`{metadata: {generateName: a-, labels: {app: web}, finalizers: [example.com/f], ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: a, uid: u}]},
spec: {serviceAccountName: web, nodeSelector: {disk: ssd}, priority: 5, hostNetwork: true, imagePullSecrets: [{name: one}, {}],
  tolerations: [{key: a, operator: Exists}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}],
  hostAliases: [{ip: 10.0.0.1, hostnames: [a]}], securityContext: {}, volumes: [{name: v, emptyDir: {}}, {name: p, projected: {sources: [{configMap: {name: c}}]}}],
  initContainers: [{name: prepare, image: web:1, restartPolicy: Always}],
  containers: [{name: main, image: web:1, env: [{name: A, value: "1"}, {name: A, value: "2"}], ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}],
    resources: {requests: {cpu: 1000m, memory: 1024Mi}}, volumeMounts: [{name: v, mountPath: /v}], securityContext: {runAsUser: 1000}}, {name: side, image: side}]}}`,
}

// patchedBy are mutations of every form: of labels, of parts of a pod, of the whole, and ones that fail.
var patchedBy = map[string][]string{
	"JSONPatch": {
		`[]`,
		`[JSONPatch{op: "add", path: "/metadata/labels/new", value: "yes"}]`,
		`[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("x/y~z"), value: "yes"}, JSONPatch{op: "add", path: "/metadata/annotations/new", value: "2"}]`,
		`[JSONPatch{op: "add", path: "/metadata/labels/~2", value: "yes"}]`,
		`[JSONPatch{op: "add", path: "/metadata/labels/app/deeper", value: "yes"}]`,
		`[JSONPatch{op: "add", path: "/metadata/labels/", value: "yes"}]`,
		`[JSONPatch{op: "add", path: "/metadata/labels/\u00e9", value: "yes"}]`,
		`[JSONPatch{op: "add", path: "/metadata/labels/a\nb", value: "yes"}]`,
		`[JSONPatch{op: "add", path: "/metadata/labels/-", value: "yes"}]`,
		`[JSONPatch{op: "add", path: "/metadata/labels/n", value: 5}]`,
		`[JSONPatch{op: "add", path: "/metadata/labels/n"}]`,
		`[JSONPatch{op: "add", path: "/metadata/labels", value: {"only": "one"}}]`,
		`[JSONPatch{op: "remove", path: "/metadata/labels"}]`,
		`[JSONPatch{op: "remove", path: "/metadata/labels/app"}, JSONPatch{op: "remove", path: "/metadata/labels/absent"}]`,
		`[JSONPatch{op: "replace", path: "/metadata/labels/app", value: object.metadata.?labels.app.orValue("none") + "-2"}]`,
		`[JSONPatch{op: "copy", from: "/metadata/labels/app", path: "/metadata/annotations/app"}]`,
		`[JSONPatch{op: "move", from: "/metadata/annotations/note", path: "/metadata/labels/note"}]`,
		`[JSONPatch{op: "copy", from: "/metadata/labels/app", path: "/spec/nodeName"}]`,
		`[JSONPatch{op: "copy", from: "/spec", path: "/spec/nodeName"}]`,
		`[JSONPatch{op: "test", path: "/metadata/labels/app", value: "other"}, JSONPatch{op: "add", path: "/spec/nodeName", value: "n"}]`,
		`[JSONPatch{op: "test", path: "/spec/hostNetwork", value: true}, JSONPatch{op: "add", path: "/spec/nodeName", value: "n"}]`,
		`[JSONPatch{op: "add", path: "/spec/nodeName", value: "n"}, JSONPatch{op: "add", path: "/spec/priority", value: 7}]`,
		`[JSONPatch{op: "add", path: "/spec/nodeName", value: 7}]`,
		`[JSONPatch{op: "add", path: "/spec/unknown", value: "n"}]`,
		`[JSONPatch{op: "add", path: "/Spec/nodeName", value: "n"}]`,
		`[JSONPatch{op: "add", path: "/spec/NodeName", value: "n"}]`,
		`[JSONPatch{op: "add", path: "spec/nodeName", value: "n"}]`,
		`[JSONPatch{op: "add", path: "/metadata/unknown", value: "n"}]`,
		`[JSONPatch{op: "replace", path: "/metadata/name", value: "n"}]`,
		`[JSONPatch{op: "add", path: "/status/reason", value: "n"}]`,
		`[JSONPatch{op: "replace", path: "/kind", value: "Service"}]`,
		`[JSONPatch{op: "replace", path: "/spec", value: {"containers": []}}]`,
		`[JSONPatch{op: "remove", path: "/spec/containers"}]`,
		`[JSONPatch{op: "remove", path: "/spec/containers/1"}]`,
		`[JSONPatch{op: "remove", path: "/spec/tolerations/0"}, JSONPatch{op: "add", path: "/spec/tolerations/-", value: {"key": "b", "operator": "Exists"}}]`,
		`[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "added", image: "x"}}]`,
		`[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.wrong{name: "added", image: "x"}}]`,
		`[JSONPatch{op: "add", path: "/spec/containers/0/resources", value: {"limits": {"cpu": "1500m"}}}]`,
		`[JSONPatch{op: "add", path: "/spec/containers/0/resources/limits", value: {"cpu": "a lot"}}]`,
		`[JSONPatch{op: "add", path: "/spec/volumes/-", value: Object.spec.volumes{name: "more", emptyDir: Object.spec.volumes.emptyDir{}}}]`,
		`[JSONPatch{op: "add", path: "/metadata/finalizers", value: ["example.com/g"]}]`,
		`[JSONPatch{op: "bad", path: "/spec/nodeName", value: "n"}]`,
		`[JSONPatch{op: "add", path: "/metadata/labels/a", value: object.metadata.labels["absent"]}]`,
	},
	"ApplyConfiguration": {
		`Object{}`,
		`Object{metadata: Object.metadata{}}`,
		`Object{metadata: Object.metadata{labels: {"app": "new", "other": "1"}}}`,
		`Object{metadata: Object.metadata{labels: {"a": "b"}, annotations: {"c": object.metadata.?labels.app.orValue("none")}}}`,
		`Object{metadata: Object.metadata{labels: {}}}`,
		`Object{metadata: Object.metadata{labels: Object.metadata.labels{app: "x"}}}`,
		`Object{metadata: Object.metadata{labels: Object.metadata.wrong{app: "x"}}}`,
		`Object{metadata: Object.metadata{labels: {"n": 5}}}`,
		`Object{metadata: Object.metadata{labels: "text"}}`,
		`Object{metadata: Object.metadata{labels: {"a": "b"}}, spec: Object.spec{nodeName: "n"}}`,
		`Object{metadata: Object.metadata{name: "other"}}`,
		`Object{metadata: Object.metadata{finalizers: ["example.com/g"]}}`,
		`Object{metadata: Object.metadata{unknown: "g"}}`,
		`Object{kind: "Service"}`,
		`Object{status: Object.status{reason: "r"}}`,
		`Object{unknown: Object.unknown{}}`,
		`Object{spec: Object.spec{}}`,
		`Object{spec: Object.spec{unknown: "x"}}`,
		`Object{spec: Object.spec{priority: 7, nodeName: "n", hostNetwork: false}}`,
		`Object{spec: Object.spec{priority: "high"}}`,
		`Object{spec: Object.spec{nodeSelector: {"zone": "a"}}}`,
		`Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: "b"}]}}`,
		`Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsNonRoot: true}}}`,
		`Object{spec: Object.spec{imagePullSecrets: [Object.spec.imagePullSecrets{name: "two"}]}}`,
		`Object{spec: Object.spec{hostAliases: [Object.spec.hostAliases{ip: "10.0.0.2", hostnames: ["b"]}]}}`,
		`Object{spec: Object.spec{topologySpreadConstraints: [Object.spec.topologySpreadConstraints{maxSkew: 2, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule"}]}}`,
		`Object{spec: Object.spec{volumes: [Object.spec.volumes{name: "v", emptyDir: Object.spec.volumes.emptyDir{medium: "Memory"}}]}}`,
		`Object{spec: Object.spec{containers: [Object.spec.containers{name: "main", env: [Object.spec.containers.env{name: "B", value: "1"}]}]}}`,
		`Object{spec: Object.spec{containers: [Object.spec.containers{name: "main", env: [Object.spec.containers.env{name: "A", value: "1"}]}]}}`,
		`Object{spec: Object.spec{containers: [Object.spec.containers{image: "x"}]}}`,
		`Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, imagePullPolicy: "Always"})}}`,
		`Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: "more", image: "x"}]}}`,
		`Object{metadata: Object.metadata{labels: {"a": object.metadata.labels["absent"]}}}`,
	},
}

// TestPatchesOfPartsAreTheAPIServers compares what patches make of pods with what the API server's own patchers make of them.
func TestPatchesOfPartsAreTheAPIServers(t *testing.T) {
	set := NewMutatingSet(NewSet(Cluster{Minor: 36}), &request.Maker{})
	changed, failed := 0, 0
	for kind, expressions := range patchedBy {
		for i, expression := range expressions {
			p := &mutatingPolicy{MutatingAdmissionPolicy: &admissionv1.MutatingAdmissionPolicy{Spec: admissionv1.MutatingAdmissionPolicySpec{
				Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchType(kind)}},
			}}}
			p.Spec.Mutations[0].JSONPatch = &admissionv1.JSONPatch{Expression: expression}
			p.Spec.Mutations[0].ApplyConfiguration = &admissionv1.ApplyConfiguration{Expression: expression}
			compiled, problems := p.compile(36, set.objects.fresh)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			ours := compiled.Mutators[0].(*partPatcher)
			for n := range patchedPods {
				before := patchOutcome(t, set, nil, n)
				want, got := patchOutcome(t, set, ours.Patcher, n), patchOutcome(t, set, ours, n)
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s %d, %s\npod %d (-API server +ours):\n%s", kind, i, expression, n, d)
				}
				switch want.(type) {
				case string:
					failed++
				default:
					if !cmp.Equal(before, want) {
						changed++
					}
				}
			}
		}
	}
	t.Logf("%d patches change pods, and %d fail", changed, failed)
	if changed < 80 || failed < 60 {
		t.Errorf("only %d patches change pods, and %d fail", changed, failed)
	}
}

// patchOutcome returns the fields of a pod after a patch, or the text of the error.
func patchOutcome(t *testing.T, set *MutatingSet, patcher patch.Patcher, n int) any {
	t.Helper()
	var pod corev1.Pod
	if err := yaml.Unmarshal([]byte(patchedPods[n]), &pod); err != nil {
		t.Fatal(err)
	}
	pod.APIVersion, pod.Kind, pod.Namespace = "v1", "Pod", "shop"
	r := &request.Request{Kind: request.PodKind, Namespace: "shop", Name: pod.Name, Object: &pod}
	attributes := &admission.VersionedAttributes{Attributes: r.Attributes(), VersionedKind: request.PodKind.GroupVersionKind}
	attributes.VersionedObject.Set(&pod)
	var out runtime.Object = &pod
	if patcher != nil {
		var err error
		out, err = patcher.Patch(t.Context(), patch.Request{
			MatchedResource: request.PodKind.GroupVersionResource(), VersionedAttributes: attributes, ObjectInterfaces: set.objects,
			OptionalVariables: cel.OptionalVariableBindings{}, TypeConverter: (&typeConverters{}).GetTypeConverter(request.PodKind.GroupVersionKind),
		}, celconfig.RuntimeCELCostBudget)
		if err == nil {
			out, err = set.objects.ConvertToVersion(out, request.PodKind.GroupVersion())
		}
		if err != nil {
			return fmt.Sprint(err)
		}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(out)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}
