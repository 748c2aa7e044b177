// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/internal/defaulter"
)

// generated is how many pods are compared with each version.
const generated = 4000

// kinds are wrapped around generated pods: where the template lies in each.
var kinds = []struct{ apiVersion, kind string }{
	{"v1", "Pod"}, {"apps/v1", "Deployment"}, {"apps/v1", "StatefulSet"}, {"apps/v1", "DaemonSet"}, {"batch/v1", "Job"}, {"batch/v1", "CronJob"},
	{"v1", "ReplicationController"},
}

// wrap makes an object of a kind that has the pod for its template.
func wrap(apiVersion, kind string, pod map[string]any) map[string]any {
	obj := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "web"}}
	switch kind {
	case "Pod":
		obj["spec"] = pod["spec"]
	case "CronJob":
		obj["spec"] = map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": pod}}}
	default:
		obj["spec"] = map[string]any{"template": pod}
	}
	return obj
}

// TestDefaultsAreKubernetes compares with Kubernetes' own code over generated pods of every kind of workload.
func TestDefaultsAreKubernetes(t *testing.T) {
	for _, command := range defaulter.Find(t, "../..") {
		t.Run(command.Version, func(t *testing.T) {
			server, err := admission.NewServer(command.Version)
			if err != nil {
				t.Fatal(err)
			}
			g := defaulter.NewGenerator(1, command.Minor)
			var objects, pods []map[string]any
			for i := range generated {
				pod, k := g.Pod(), kinds[i%len(kinds)]
				pods = append(pods, pod)
				objects = append(objects, wrap(k.apiVersion, k.kind, pod))
			}
			answers := command.Pods(t, objects)
			different := 0
			for i, answer := range answers {
				if message, refused := defaulter.Refused(answer); refused {
					t.Fatalf("Kubernetes refuses pod %d: %s", i, message)
				}
				server.Default(pods[i])
				if diff := cmp.Diff(spec(t, answer), spec(t, pods[i])); diff != "" {
					if different++; different <= 3 {
						t.Errorf("pod %d of a %s differs (-Kubernetes +ours):\n%s", i, kinds[i%len(kinds)].kind, diff)
					}
				}
			}
			t.Logf("%d pods, %d different", len(answers), different)
		})
	}
}

// spec is a pod's spec as Kubernetes reads it.
func spec(t *testing.T, pod map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(pod["spec"])
	if err != nil {
		t.Fatal(err)
	}
	var typed corev1.PodSpec
	if err := json.Unmarshal(text, &typed); err != nil {
		t.Fatal(err)
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
