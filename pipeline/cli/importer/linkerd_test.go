// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// linkerdWorkload is the pod of the case "plain" of Linkerd's answers, in a Deployment.
const linkerdWorkload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders, namespace: shop}
spec:
  template:
    metadata:
      labels: {app: orders}
      annotations: {linkerd.io/inject: enabled}
    spec:
      containers: [{name: web, image: "example.com/orders:7"}]
`

// TestLinkerdVersions imports the settings that the injectors of several versions of Linkerd read without any setting of
// the user's, and injects with the policy: the pod is the one that the injector made.
func TestLinkerdVersions(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../../policies/testdata/linkerd/*.injector.json")
	must(t, err)
	if len(paths) < 3 {
		t.Fatalf("the answers of %d versions are there", len(paths))
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			must(t, err)
			var data struct {
				Version string         `json:"version"`
				Values  map[string]any `json:"values"`
				Answers map[string]struct {
					Pod corev1.Pod `json:"pod"`
				} `json:"answers"`
			}
			must(t, json.Unmarshal([]byte(plainOnly(t, text)), &data))
			want := data.Answers["plain"].Pod
			values, err := yaml.Marshal(data.Values)
			must(t, err)
			policy, imp, err := imported([]Object{
				linkerdMap(linkerdConfig, linkerdConfigKey, string(values)),
				linkerdMap(linkerdAnchors, linkerdAnchorsKey, trustAnchorsOf(want)),
			}, Options{})
			must(t, err)
			if len(imp.Warnings) > 0 {
				t.Errorf("warnings: %q", imp.Warnings)
			}
			if from := "Linkerd " + data.Version + " in namespace linkerd; 0 namespaces"; imp.From != from {
				t.Errorf("from %q, want %q", imp.From, from)
			}
			got := injectedPod(t, policy)
			delete(got.Annotations, "sidecar.prerig.dev/linkerd")
			if d := cmp.Diff(withoutToken(want.Spec), withoutToken(got.Spec), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("spec (-Linkerd +Prerig):\n%s", d)
			}
			if d := cmp.Diff(want.Annotations, got.Annotations); d != "" {
				t.Errorf("annotations (-Linkerd +Prerig):\n%s", d)
			}
			if d := cmp.Diff(want.Labels, got.Labels); d != "" {
				t.Errorf("labels (-Linkerd +Prerig):\n%s", d)
			}
		})
	}
}

// plainOnly returns the answers without those of other cases, which are written as differences.
func plainOnly(t *testing.T, text []byte) string {
	t.Helper()
	var data map[string]json.RawMessage
	must(t, json.Unmarshal(text, &data))
	var answers map[string]json.RawMessage
	must(t, json.Unmarshal(data["answers"], &answers))
	plain, err := json.Marshal(map[string]json.RawMessage{"plain": answers["plain"]})
	must(t, err)
	data["answers"] = plain
	out, err := json.Marshal(data)
	must(t, err)
	return string(out)
}

// linkerdMap is a ConfigMap of Linkerd's control plane.
func linkerdMap(name, key, text string) Object {
	return Object{Path: "cluster.yaml", Line: 1, Value: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "linkerd"}, "data": map[string]any{key: text}}}
}

// trustAnchorsOf returns those that a proxy has; the ConfigMap has no line break at the end.
func trustAnchorsOf(pod corev1.Pod) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, e := range c.Env {
			if e.Name == "LINKERD2_PROXY_IDENTITY_TRUST_ANCHORS" {
				return strings.TrimSuffix(e.Value, "\n")
			}
		}
	}
	return ""
}

// injectedPod injects into the workload in a namespace without annotations.
func injectedPod(t *testing.T, policy []byte) corev1.PodTemplateSpec {
	t.Helper()
	return injectedPodOf(t, policy, linkerdWorkload)
}

// injectedPodOf is injectedPod for another Deployment.
func injectedPodOf(t *testing.T, policy []byte, workload string) corev1.PodTemplateSpec {
	t.Helper()
	p, err := v1alpha1.Parse(policy)
	must(t, err)
	p.Spec.Namespaces = []v1alpha1.Namespace{{Name: "shop"}}
	injector, err := fn.New([]*v1alpha1.InjectionPolicy{p})
	must(t, err)
	file, err := manifest.Parse("input.yaml", []byte(workload))
	must(t, err)
	report, err := injector.Run(t.Context(), []fn.Item{{Doc: file.Docs[0]}})
	must(t, err)
	var out appsv1.Deployment
	must(t, yaml.Unmarshal(report.Items[0].Doc.Raw(), &out))
	return out.Spec.Template
}

// withoutToken leaves out where volumes stand, and the token that the API server mounts into every container.
func withoutToken(spec corev1.PodSpec) corev1.PodSpec {
	const token = "kube-api-access-"
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, token) })
	slices.SortFunc(spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = slices.DeleteFunc(list[i].VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.Name, token) })
		}
	}
	return spec
}
