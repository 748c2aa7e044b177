// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// componentNames are all that there are.
func componentNames(t *testing.T) (out []string) {
	t.Helper()
	entries, err := os.ReadDir("components")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		out = append(out, entry.Name())
	}
	return out
}

// overlay is a kustomization upon another with components.
func overlay(resource string, components []string, more string) string {
	var text strings.Builder
	text.WriteString("resources: [" + resource + "]\ncomponents:\n")
	for _, name := range components {
		text.WriteString("- " + path.Join("../deploy/components", name) + "\n")
	}
	return text.String() + more
}

// env are the variables of the daemon.
func env(t *testing.T, all objects) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, one := range into[appsv1.StatefulSet](t, all, "StatefulSet/prerig").Spec.Template.Spec.Containers[0].Env {
		out[one.Name] = one.Value
	}
	return out
}

// withoutNamespace are the kinds that are of no namespace.
var withoutNamespace = []string{"Namespace", "ClusterRole", "ClusterRoleBinding"}

// holdNamespaces has every object in one namespace but what is of none, and that of the mesh in that of its control plane; all bindings
// are for the daemon's ServiceAccount there.
func holdNamespaces(t *testing.T, all objects, namespace string) {
	t.Helper()
	for name, o := range all {
		want := namespace
		switch {
		case slices.Contains(withoutNamespace, o.GetKind()):
			want = ""
		case name == "Role/prerig-mesh" || name == "RoleBinding/prerig-mesh":
			want = "istio-system"
		}
		if o.GetNamespace() != want {
			t.Errorf("%s is in the namespace %q, want %q", name, o.GetNamespace(), want)
		}
		var subjects []rbacv1.Subject
		switch o.GetKind() {
		case "ClusterRoleBinding":
			subjects = into[rbacv1.ClusterRoleBinding](t, all, name).Subjects
		case "RoleBinding":
			subjects = into[rbacv1.RoleBinding](t, all, name).Subjects
		default:
			continue
		}
		if len(subjects) != 1 || subjects[0].Name != "prerig" || subjects[0].Namespace != namespace {
			t.Errorf("%s is for %+v", name, subjects)
		}
	}
}

// TestComponentsTogether has components not take away what the base, a kustomization below or another component has said, in either order.
func TestComponentsTogether(t *testing.T) {
	const below = `resources: [../deploy/base]
patches:
- patch: |
    apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: prerig}
    spec:
      template:
        spec:
          topologySpreadConstraints:
          - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app.kubernetes.io/name: prerig}}}
          containers:
          - {name: prerig, env: [{name: HTTPS_PROXY, value: "http://proxy.example.com:3128"}]}
`
	names := componentNames(t)
	backwards := slices.Clone(names)
	slices.Reverse(backwards)
	var first objects
	for _, components := range [][]string{names, backwards} {
		all := build(t, "top", map[string]string{"top": overlay("../below", components, ""), "below": below})
		want := map[string]string{
			"HTTPS_PROXY": "http://proxy.example.com:3128", "PRERIG_ARTIFACTS_LISTEN": ":8082", "PRERIG_ARTIFACTS_URL": "http://prerig.prerig.svc.cluster.local.:8082",
			"PRERIG_KUBERNETES_MESH": "true", "PRERIG_KUBERNETES_MESH_NAMESPACES": "istio-system", "PRERIG_NATS_URL": "nats://nats.nats.svc:4222", "PRERIG_NATS_REPLICAS": "3",
		}
		if got := env(t, all); !maps.Equal(got, want) {
			t.Errorf("%v: the variables are %v, want %v", components, got, want)
		}
		set := into[appsv1.StatefulSet](t, all, "StatefulSet/prerig").Spec
		if got := portNumbers(set.Template.Spec.Containers[0]); !maps.Equal(got, map[string]int32{"hooks": 8080, "admin": 8081, "artifacts": 8082, "health": 8083}) {
			t.Errorf("%v: the ports are %v", components, got)
		}
		if *set.Replicas != 2 || len(set.Template.Spec.TopologySpreadConstraints) != 2 {
			t.Errorf("%v: %d replicas are spread by %v", components, *set.Replicas, set.Template.Spec.TopologySpreadConstraints)
		}
		holdNamespaces(t, all, "prerig")
		if first == nil {
			first = all
			for _, name := range []string{"PodDisruptionBudget/prerig", "Ingress/prerig", "HTTPRoute/prerig", "ServiceMonitor/prerig", "PrometheusRule/prerig", "ClusterRole/prerig-artifacts", "Role/prerig-mesh"} {
				if all[name] == nil {
					t.Errorf("there is no %s", name)
				}
			}
		} else if !slices.Equal(slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(first))) {
			t.Errorf("in the other order there are other objects: %v", slices.Sorted(maps.Keys(all)))
		}
	}
}

// TestComponentsInAnotherNamespace has what docs/kubernetes.md says put all of it there, the subjects of bindings too.
func TestComponentsInAnotherNamespace(t *testing.T) {
	const elsewhere = `transformers:
- |-
  apiVersion: builtin
  kind: NamespaceTransformer
  metadata: {name: elsewhere, namespace: render}
  setRoleBindingSubjects: allServiceAccounts
  fieldSpecs: [{path: metadata/name, kind: Namespace}]
`
	names := slices.DeleteFunc(componentNames(t), func(name string) bool { return name == "mesh" })
	all := build(t, "top", map[string]string{"top": overlay("../deploy/base", names, elsewhere)})
	holdNamespaces(t, all, "render")
	if all["Namespace/render"] == nil {
		t.Error("the namespace itself has another name")
	}
}

func portNumbers(c corev1.Container) map[string]int32 {
	out := map[string]int32{}
	for _, port := range c.Ports {
		out[port.Name] = port.ContainerPort
	}
	return out
}
