// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
)

func object(apiVersion, kind, namespace, name string, more map[string]any) map[string]any {
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
		"name": name, "uid": "u-canary", "resourceVersion": "1", "managedFields": []any{map[string]any{"manager": "m-canary"}},
		"annotations": map[string]any{lastApplied: "applied-canary", "kept": "yes"},
	}}
	if namespace != "" {
		out["metadata"].(map[string]any)["namespace"] = namespace
	}
	maps.Copy(out, more)
	return out
}

// TestFilesAreStable compares two captures of the same objects in other orders, without Secrets and what a server sets.
func TestFilesAreStable(t *testing.T) {
	t.Parallel()
	objects := []map[string]any{
		object("v1", "Secret", "shop", "s", map[string]any{"data": map[string]any{"k": "secret-canary"}}),
		object("v1", "ServiceAccount", "shop", "web", map[string]any{"secrets": []any{map[string]any{"name": "token-canary"}}}),
		object("v1", "ServiceAccount", "shop", "api", nil),
		object("v1", "Namespace", "", "shop", map[string]any{"status": map[string]any{"phase": "status-canary"}}),
		object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "", "w", map[string]any{"webhooks": []any{
			map[string]any{"name": "x", "clientConfig": map[string]any{"caBundle": "bundle-canary", "url": "https://x"}},
		}}),
	}
	d := Description{KubernetesVersion: "v1.36.3", Complete: []string{"ServiceAccount", "Namespace"}}
	first, err := Files(d, objects)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(objects)
	second, err := Files(d, objects)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"capture.yaml", "mutatingwebhookconfiguration.yaml", "namespace.yaml", "namespaces/shop/serviceaccount.yaml"}
	if got := slices.Sorted(maps.Keys(first)); !slices.Equal(got, want) {
		t.Errorf("got the files %v, want %v", got, want)
	}
	for name, text := range first {
		if !bytes.Equal(text, second[name]) {
			t.Errorf("%s differs the second time", name)
		}
		if strings.Contains(string(text), "canary") {
			t.Errorf("%s has what it should not have:\n%s", name, text)
		}
	}
	if text := string(first["namespaces/shop/serviceaccount.yaml"]); strings.Index(text, "name: api") > strings.Index(text, "name: web") {
		t.Errorf("the objects are not sorted:\n%s", text)
	}
}

// TestReferences finds the ConfigMaps that are parameters, and no others.
func TestReferences(t *testing.T) {
	t.Parallel()
	policy := object("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "", "p", map[string]any{"spec": map[string]any{
		"paramKind": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
	}})
	binding := object("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", "", "b", map[string]any{"spec": map[string]any{
		"policyName": "p", "paramRef": map[string]any{"name": "settings", "namespace": "shop"},
	}})
	references := References([]map[string]any{policy, binding})
	for name, c := range map[string]struct {
		namespace string
		want      bool
	}{"settings": {"shop", true}, "others": {"shop", false}, "istio-sidecar-injector": {"istio-system", true}} {
		if got := WantsConfigMap(object("v1", "ConfigMap", c.namespace, name, nil), references); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if WantsConfigMap(object("v1", "ConfigMap", "elsewhere", "settings", nil), references) {
		t.Error("the ConfigMap of another namespace is none of the parameters")
	}
}

// TestReduce keeps of a control plane what an import reads, and of all nodes the oldest kubelet.
func TestReduce(t *testing.T) {
	t.Parallel()
	node := func(name, kubelet string) map[string]any {
		return object("v1", "Node", "", name, map[string]any{"status": map[string]any{"nodeInfo": map[string]any{"kubeletVersion": kubelet}}})
	}
	deployment := func(name, container string) map[string]any {
		return object("apps/v1", "Deployment", "istio-system", name, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": container, "image": "pilot:1.31.4", "args": []any{"args-canary"}, "env": []any{
				map[string]any{"name": "ENABLE_NATIVE_SIDECARS", "value": "true"},
			}}},
		}}}})
	}
	files, err := Files(Description{}, Reduce([]map[string]any{
		node("a", "v1.36.3"), node("b", "v1.34.10"), node("c", "v1.34.9"), deployment("istiod", "discovery"), deployment("web", "web"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	plane := string(files["namespaces/istio-system/deployment.yaml"])
	if !strings.Contains(plane, "ENABLE_NATIVE_SIDECARS") || !strings.Contains(plane, "pilot:1.31.4") || strings.Contains(plane, "canary") || strings.Contains(plane, "name: web") {
		t.Errorf("the control plane is\n%s", plane)
	}
	if nodes := string(files["node.yaml"]); strings.Count(nodes, "kind: Node") != 1 || !strings.Contains(nodes, "kubeletVersion: v1.34.9") || strings.Contains(nodes, "canary") {
		t.Errorf("the nodes are\n%s", nodes)
	}
}
