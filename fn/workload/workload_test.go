// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

func object(t testing.TB, src string) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := yaml.Unmarshal([]byte(src), &obj); err != nil {
		t.Fatalf("reading the test's own object: %v", err)
	}
	return obj
}

func registry(t testing.TB, custom ...v1alpha1.WorkloadKind) *Registry {
	t.Helper()
	r, err := NewRegistry(custom)
	if err != nil {
		t.Fatalf("NewRegistry: %v", err)
	}
	return r
}

const podTemplate = `{metadata: {labels: {app: shop}}, spec: {containers: [{name: web, image: web:1}]}}`

// TestBuiltIn has a row for each kind in each API version that it ever had, with the owner that the webhook finds.
func TestBuiltIn(t *testing.T) {
	spec := "spec: {template: " + podTemplate + "}"
	cron := "spec: {jobTemplate: {spec: {template: " + podTemplate + "}}}"
	for _, tc := range []struct {
		apiVersion, kind, body string
		field                  string
		owner                  string
	}{
		{"v1", "PodTemplate", "template: " + podTemplate, "template", "v1 PodTemplate"},
		{"v1", "ReplicationController", spec, "spec.template", "v1 ReplicationController"},
		{"apps/v1", "Deployment", spec, "spec.template", "apps/v1 Deployment"},
		{"apps/v1beta1", "Deployment", spec, "spec.template", "apps/v1 Deployment"},
		{"apps/v1beta2", "Deployment", spec, "spec.template", "apps/v1 Deployment"},
		{"extensions/v1beta1", "Deployment", spec, "spec.template", "apps/v1 Deployment"},
		{"apps/v1", "ReplicaSet", spec, "spec.template", "apps/v1 ReplicaSet"},
		{"apps/v1beta2", "ReplicaSet", spec, "spec.template", "apps/v1 ReplicaSet"},
		{"extensions/v1beta1", "ReplicaSet", spec, "spec.template", "apps/v1 ReplicaSet"},
		{"apps/v1", "DaemonSet", spec, "spec.template", "apps/v1 DaemonSet"},
		{"apps/v1beta2", "DaemonSet", spec, "spec.template", "apps/v1 DaemonSet"},
		{"extensions/v1beta1", "DaemonSet", spec, "spec.template", "apps/v1 DaemonSet"},
		{"apps/v1", "StatefulSet", spec, "spec.template", "apps/v1 StatefulSet"},
		{"apps/v1beta1", "StatefulSet", spec, "spec.template", "apps/v1 StatefulSet"},
		{"apps/v1beta2", "StatefulSet", spec, "spec.template", "apps/v1 StatefulSet"},
		{"batch/v1", "Job", spec, "spec.template", "batch/v1 Job"},
		{"extensions/v1beta1", "Job", spec, "spec.template", "batch/v1 Job"},
		{"batch/v1", "CronJob", cron, "spec.jobTemplate.spec.template", "batch/v1 CronJob"},
		{"batch/v1beta1", "CronJob", cron, "spec.jobTemplate.spec.template", "batch/v1 CronJob"},
		{"batch/v2alpha1", "CronJob", cron, "spec.jobTemplate.spec.template", "batch/v1 CronJob"},
		{"apps.openshift.io/v1", "DeploymentConfig", spec, "spec.template", "v1 DeploymentConfig"},
		{"v1", "DeploymentConfig", spec, "spec.template", "v1 DeploymentConfig"},
		{"argoproj.io/v1alpha1", "Rollout", spec, "spec.template", "v1alpha1 Rollout"},
		{"apps.kruise.io/v1alpha1", "CloneSet", spec, "spec.template", "apps.kruise.io/v1alpha1 CloneSet"},
		{"apps.kruise.io/v1beta1", "StatefulSet", spec, "spec.template", "apps.kruise.io/v1beta1 StatefulSet"},
		{"apps.kruise.io/v1alpha1", "StatefulSet", spec, "spec.template", "apps.kruise.io/v1beta1 StatefulSet"},
		{"apps.kruise.io/v1alpha1", "DaemonSet", spec, "spec.template", "apps.kruise.io/v1alpha1 DaemonSet"},
		{"apps.kruise.io/v1alpha1", "BroadcastJob", spec, "spec.template", "apps.kruise.io/v1alpha1 BroadcastJob"},
	} {
		t.Run(tc.apiVersion+" "+tc.kind, func(t *testing.T) {
			obj := object(t, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: web, namespace: shop}\n%s\n", tc.apiVersion, tc.kind, tc.body))
			if _, ok := registry(t).Lookup(tc.apiVersion, tc.kind); !ok {
				t.Fatal("Lookup does not know the kind")
			}
			got, err := registry(t).Templates(obj)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 {
				t.Fatalf("got %d templates, want 1", len(got))
			}
			version, kind, _ := strings.Cut(tc.owner, " ")
			want := Template{
				Path: got[0].Path, Field: tc.field, Pod: object(t, podTemplate),
				Owner:    Owner{APIVersion: version, Kind: kind, Name: "web", Namespace: "shop"},
				Declared: Owner{APIVersion: tc.apiVersion, Kind: tc.kind, Name: "web", Namespace: "shop"},
			}
			if diff := cmp.Diff(want, got[0], cmpopts.IgnoreUnexported(Template{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestNotWorkloads(t *testing.T) {
	for name, src := range map[string]string{
		"service":                    "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {template: {}}}",
		"another group's Deployment": "{apiVersion: example.com/v1, kind: Deployment, metadata: {name: a}}",
		"core Deployment":            "{apiVersion: v1, kind: Deployment, metadata: {name: a}}",
		"another group's pod":        "{apiVersion: metrics.k8s.io/v1, kind: Pod, metadata: {name: a}}",
		"no apiVersion":              "{kind: Pod, metadata: {name: a}}",
		"no kind":                    "{apiVersion: v1}",
		"kind is not a string":       "{apiVersion: v1, kind: 3}",
		"group without version":      "{apiVersion: apps/, kind: Deployment}",
		"local config":               "{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {config.kubernetes.io/local-config: 'true'}}, spec: {}}",
		"Knative service":            "{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {template: {}}}",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := registry(t).Templates(object(t, src))
			if err != nil || len(got) != 0 {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	got, err := registry(t).Templates(object(t, "{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {config.kubernetes.io/local-config: 'false'}}, spec: {}}"))
	if err != nil || len(got) != 1 {
		t.Errorf("local-config false: got %v, %v", got, err)
	}
}

func TestFieldErrors(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"no spec":             {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}", "spec: is missing"},
		"spec is null":        {"{apiVersion: apps/v1, kind: Deployment, spec: null}", "spec: is missing"},
		"spec is a list":      {"{apiVersion: apps/v1, kind: Deployment, spec: []}", "spec: is a list, not a map"},
		"no template":         {"{apiVersion: apps/v1, kind: Deployment, spec: {}}", "spec.template: is missing"},
		"template is text":    {"{apiVersion: apps/v1, kind: Deployment, spec: {template: x}}", "spec.template: is a string, not a pod template, which is a map"},
		"no pod spec":         {"{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {}}}}", "spec.template.spec: is missing"},
		"pod spec is a list":  {"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: [a]}}}", "spec.template.spec: is a list, not a map"},
		"metadata is a list":  {"{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: [a], spec: {}}}}", "spec.template.metadata: is a list, not a map"},
		"own metadata is bad": {"{apiVersion: v1, kind: Pod, metadata: 3, spec: {}}", "metadata: is a number, not a map"},
		"cron job":            {"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: 3}}}", "spec.jobTemplate.spec: is a number, not a map"},
		"rollout":             {"{apiVersion: argoproj.io/v1alpha1, kind: Rollout, spec: {}}", "spec.template: is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := registry(t).Templates(object(t, tc.src))
			var field *FieldError
			if !errors.As(err, &field) || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestRolloutOfAnotherWorkload(t *testing.T) {
	_, err := registry(t).Templates(object(t, `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web-base}}`))
	var elsewhere *ElsewhereError
	if !errors.As(err, &elsewhere) {
		t.Fatalf("got %v, want an ElsewhereError", err)
	}
	want := ElsewhereError{Field: "spec.workloadRef", APIVersion: "apps/v1", Kind: "Deployment", Name: "web-base"}
	if *elsewhere != want {
		t.Errorf("got %+v, want %+v", *elsewhere, want)
	}
	if got := err.Error(); got != "the pod template is in Deployment web-base (spec.workloadRef)" {
		t.Errorf("message is %q", got)
	}
	both, err := registry(t).Templates(object(t, "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, spec: {workloadRef: {kind: Deployment, name: a}, template: "+podTemplate+"}}"))
	if err != nil || len(both) != 1 {
		t.Errorf("a Rollout with a template of its own: got %v, %v", both, err)
	}
}

func TestCustom(t *testing.T) {
	r := registry(t,
		v1alpha1.WorkloadKind{APIVersion: "kubeflow.org/v1", Kind: "TFJob", PodTemplate: "spec.tfReplicaSpecs[].template"},
		v1alpha1.WorkloadKind{APIVersion: "jobset.x-k8s.io/*", Kind: "JobSet", PodTemplate: "spec.replicatedJobs[].template.spec.template",
			Owner: &v1alpha1.WorkloadOwner{APIVersion: "batch/v1", Kind: "Job", Name: "{name}-{key}-0"}},
		v1alpha1.WorkloadKind{APIVersion: "ray.io/v1", Kind: "RayCluster", PodTemplate: "spec.headGroupSpec.template"},
		v1alpha1.WorkloadKind{APIVersion: "ray.io/v1", Kind: "RayCluster", PodTemplate: "spec.workerGroupSpecs[].template"},
		v1alpha1.WorkloadKind{APIVersion: "ray.io/v1", Kind: "RayCluster", PodTemplate: "spec.workerGroupSpecs[].template"}, // Again, by another policy.
		v1alpha1.WorkloadKind{APIVersion: "argoproj.io/*", Kind: "Rollout", PodTemplate: "spec.pod"},
	)
	type place struct {
		Field string
		Owner Owner
	}
	for name, tc := range map[string]struct {
		src  string
		want []place
	}{
		"map of templates": {"{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: t}, spec: {tfReplicaSpecs: {Worker: {template: " + podTemplate + "}, PS: {template: " + podTemplate + "}}}}",
			[]place{{"spec.tfReplicaSpecs.PS.template", Owner{"kubeflow.org/v1", "TFJob", "t", ""}}, {"spec.tfReplicaSpecs.Worker.template", Owner{"kubeflow.org/v1", "TFJob", "t", ""}}}},
		"list of templates": {"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s}, spec: {replicatedJobs: [{template: {spec: {template: " + podTemplate + "}}}, {template: {spec: {template: " + podTemplate + "}}}]}}",
			[]place{{"spec.replicatedJobs[0].template.spec.template", Owner{"batch/v1", "Job", "s-0-0", ""}}, {"spec.replicatedJobs[1].template.spec.template", Owner{"batch/v1", "Job", "s-1-0", ""}}}},
		"two places": {"{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {headGroupSpec: {template: " + podTemplate + "}, workerGroupSpecs: [{template: " + podTemplate + "}]}}",
			[]place{{"spec.headGroupSpec.template", Owner{"ray.io/v1", "RayCluster", "r", ""}}, {"spec.workerGroupSpecs[0].template", Owner{"ray.io/v1", "RayCluster", "r", ""}}}},
		"no element at all":   {"{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: t}, spec: {}}", nil},
		"replaces a built-in": {"{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: t}, spec: {pod: " + podTemplate + "}}", []place{{"spec.pod", Owner{"argoproj.io/v1alpha1", "Rollout", "t", ""}}}},
	} {
		t.Run(name, func(t *testing.T) {
			templates, err := r.Templates(object(t, tc.src))
			if err != nil {
				t.Fatal(err)
			}
			var got []place
			for _, tt := range templates {
				got = append(got, place{tt.Field, tt.Owner})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if _, ok := r.Lookup("kubeflow.org/v2", "TFJob"); ok {
		t.Error("another version than the given one matched")
	}
	_, err := r.Templates(object(t, "{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {tfReplicaSpecs: text}}"))
	if err == nil || err.Error() != "spec.tfReplicaSpecs: is a string, not a list or a map" {
		t.Errorf("got %v", err)
	}
}

func TestBadCustom(t *testing.T) {
	ok := v1alpha1.WorkloadKind{APIVersion: "a/v1", Kind: "B", PodTemplate: "spec.template"}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.WorkloadKind)
		want   string
	}{
		"no kind":               {func(w *v1alpha1.WorkloadKind) { w.Kind = "" }, "kind: is empty"},
		"no apiVersion":         {func(w *v1alpha1.WorkloadKind) { w.APIVersion = "" }, "apiVersion of B: is empty"},
		"two slashes":           {func(w *v1alpha1.WorkloadKind) { w.APIVersion = "a/b/c" }, `apiVersion of B: "a/b/c" is not`},
		"any group":             {func(w *v1alpha1.WorkloadKind) { w.APIVersion = "*/v1" }, `apiVersion of B: "*/v1" is not`},
		"only a star":           {func(w *v1alpha1.WorkloadKind) { w.APIVersion = "*" }, `apiVersion of B: "*" needs a group`},
		"no path":               {func(w *v1alpha1.WorkloadKind) { w.PodTemplate = "" }, "podTemplate of B: is empty"},
		"empty part":            {func(w *v1alpha1.WorkloadKind) { w.PodTemplate = "spec..template" }, `the part ""`},
		"leading dot":           {func(w *v1alpha1.WorkloadKind) { w.PodTemplate = ".spec.template" }, `the part ""`},
		"JSONPath":              {func(w *v1alpha1.WorkloadKind) { w.PodTemplate = "{.spec.template}" }, `the part "{"`},
		"index":                 {func(w *v1alpha1.WorkloadKind) { w.PodTemplate = "spec.jobs[0].template" }, `the part "jobs[0]"`},
		"slashes as in a patch": {func(w *v1alpha1.WorkloadKind) { w.PodTemplate = "/spec/template" }, `the part "/spec/template"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := ok
			tc.change(&w)
			_, err := NewRegistry([]v1alpha1.WorkloadKind{ok, w})
			if err == nil || !strings.Contains(err.Error(), "reading workloads[1]: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	src := `
apiVersion: example.com/v1
kind: Two
metadata: {name: web}
spec:
  keep: {a: 1}
  list:
  - template: {extra: kept, spec: {containers: [{name: a}]}}
  - template: {metadata: {labels: {b: c}}, spec: {containers: [{name: b}]}}`
	r := registry(t, v1alpha1.WorkloadKind{APIVersion: "example.com/v1", Kind: "Two", PodTemplate: "spec.list[].template"})
	obj := object(t, src)
	templates, err := r.Templates(obj)
	if err != nil || len(templates) != 2 {
		t.Fatalf("got %v, %v", templates, err)
	}
	out := templates[0].Write(obj, map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"new": true}})
	if diff := cmp.Diff(object(t, src), obj); diff != "" {
		t.Errorf("the object itself changed:\n%s", diff)
	}
	want := object(t, src)
	want["spec"].(map[string]any)["list"].([]any)[0] = map[string]any{"template": map[string]any{"extra": "kept", "spec": map[string]any{"new": true}}}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if same(out["spec"], obj["spec"]) {
		t.Error("spec is shared although it changed")
	}
	if !same(out["spec"].(map[string]any)["keep"], obj["spec"].(map[string]any)["keep"]) {
		t.Error("an unchanged part was copied")
	}
	pod := object(t, "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {x: 1}, status: {phase: Running}}")
	templates, err = r.Templates(pod)
	if err != nil || len(templates) != 1 || len(templates[0].Path) != 0 {
		t.Fatalf("got %+v, %v", templates, err)
	}
	got := templates[0].Write(pod, map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"x": int64(2)}})
	wantPod := object(t, "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}, status: {phase: Running}}")
	wantPod["spec"] = map[string]any{"x": int64(2)}
	if diff := cmp.Diff(wantPod, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func same(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

func TestLabels(t *testing.T) {
	got, err := Labels(object(t, "{metadata: {labels: {a: b, c: null}}}"))
	if diff := cmp.Diff(map[string]string{"a": "b", "c": ""}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for src, want := range map[string]string{
		"{metadata: {labels: {version: 2}}}":               "metadata.labels.version: is a number, not a string; quote it",
		"{metadata: {labels: {a.b/c: true}}}":              `metadata.labels["a.b/c"]: is a boolean, not a string; quote it`,
		"{metadata: {labels: [a]}}":                        "metadata.labels: is a list, not a map",
		"{metadata: {annotations: {a: {b: c}}, labels: }}": "",
	} {
		if _, err := Labels(object(t, src)); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
	if _, err := Annotations(object(t, "{metadata: {annotations: {a: {b: c}}}}")); err == nil {
		t.Error("a map as the value of an annotation passed")
	}
}

func BenchmarkLookup(b *testing.B) {
	r := registry(b)
	for b.Loop() {
		r.Lookup("v1", "Service")
		r.Lookup("apps/v1", "Deployment")
	}
}
