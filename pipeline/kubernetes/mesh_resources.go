// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/pipeline/cli/importer"
)

// meshResource is a resource that is read, and what of its objects is.
type meshResource struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool // it is read in the namespaces of control planes
	mayEnd     bool // its disappearance is no reason for doubt
	optional   bool // a cluster without Istio's definitions does not have it
	reduce     func(*unstructured.Unstructured) map[string]any
}

func meshResources() []meshResource {
	core := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: name}
	}
	return []meshResource{
		{GroupVersionResource: core("namespaces"), kind: "Namespace", reduce: reduceNamespace},
		{GroupVersionResource: core("nodes"), kind: "Node", reduce: reduceNode},
		{GroupVersionResource: core("serviceaccounts"), kind: "ServiceAccount", mayEnd: true, reduce: reduceAccount},
		{GroupVersionResource: core("limitranges"), kind: "LimitRange", mayEnd: true, reduce: reduceSpec},
		{
			GroupVersionResource: schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1beta1",
				Resource: "proxyconfigs"},
			kind: "ProxyConfig", mayEnd: true, optional: true, reduce: reduceSpec,
		},
		{
			GroupVersionResource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
				Resource: "mutatingwebhookconfigurations"},
			kind: "MutatingWebhookConfiguration", reduce: reduceWebhooks,
		},
		{GroupVersionResource: core("configmaps"), kind: "ConfigMap", namespaced: true, reduce: reduceConfigMap},
		{
			GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			kind:                 "Deployment", namespaced: true, reduce: reduceDeployment,
		},
	}
}

// isAbsent reports whether an error means that the cluster lacks an optional resource.
func (r meshResource) isAbsent(err error) bool { return r.optional && apierrors.IsNotFound(err) }

// reduceToReadFields returns an object with what is read of it, and what an informer needs.
func (r meshResource) reduceToReadFields(object *unstructured.Unstructured) *unstructured.Unstructured {
	content := r.reduce(object)
	if content == nil {
		content = map[string]any{}
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetName(object.GetName())
	out.SetNamespace(object.GetNamespace())
	out.SetResourceVersion(object.GetResourceVersion())
	return out
}

// metadataOf is what is read of the metadata of any object.
func metadataOf(o *unstructured.Unstructured) map[string]any {
	out := map[string]any{"name": o.GetName()}
	if o.GetNamespace() != "" {
		out["namespace"] = o.GetNamespace()
	}
	if labels, ok, _ := unstructured.NestedMap(o.Object, "metadata", "labels"); ok {
		out["labels"] = labels
	}
	return out
}

func reduceNamespace(o *unstructured.Unstructured) map[string]any {
	metadata := metadataOf(o)
	annotations, _, _ := unstructured.NestedMap(o.Object, "metadata", "annotations")
	for key := range annotations {
		if !importer.IsPolicyAnnotation(key) {
			delete(annotations, key)
		}
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return map[string]any{"metadata": metadata}
}

// reduceNode keeps only the version of the kubelet, so that added and removed nodes are no change.
func reduceNode(o *unstructured.Unstructured) map[string]any {
	version, _, _ := unstructured.NestedString(o.Object, "status", "nodeInfo", "kubeletVersion")
	return map[string]any{
		"metadata": map[string]any{"name": "kubelet-" + version},
		"status":   map[string]any{"nodeInfo": map[string]any{"kubeletVersion": version}},
	}
}

// reduceWebhooks leaves certificates out, which change from time to time.
func reduceWebhooks(o *unstructured.Unstructured) map[string]any {
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, one := range webhooks {
		if entry, ok := one.(map[string]any); ok {
			unstructured.RemoveNestedField(entry, "clientConfig", "caBundle")
		}
	}
	return map[string]any{"metadata": metadataOf(o), "webhooks": webhooks}
}

// reduceConfigMap keeps the keys of injectors and meshes, and drops other ConfigMaps.
func reduceConfigMap(o *unstructured.Unstructured) map[string]any {
	if name := o.GetName(); name != "istio" && !strings.HasPrefix(name, "istio-") {
		return nil
	}
	data := map[string]any{}
	for _, key := range []string{"config", "values", "mesh"} {
		if text, ok, _ := unstructured.NestedString(o.Object, "data", key); ok {
			data[key] = text
		}
	}
	if len(data) == 0 {
		return nil
	}
	return map[string]any{"metadata": metadataOf(o), "data": data}
}

// reduceDeployment keeps what istiod runs, and drops other Deployments.
func reduceDeployment(o *unstructured.Unstructured) map[string]any {
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, one := range containers {
		container, _ := one.(map[string]any)
		if container["name"] != "discovery" {
			continue
		}
		kept := map[string]any{"name": "discovery", "image": container["image"], "env": container["env"]}
		return map[string]any{
			"metadata": metadataOf(o),
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{kept}}}},
		}
	}
	return nil
}

// reduceAccount keeps the pull secrets of a ServiceAccount, and drops one without any.
func reduceAccount(o *unstructured.Unstructured) map[string]any {
	secrets, _, _ := unstructured.NestedSlice(o.Object, "imagePullSecrets")
	if len(secrets) == 0 {
		return nil
	}
	metadata := metadataOf(o)
	delete(metadata, "labels")
	return map[string]any{"metadata": metadata, "imagePullSecrets": secrets}
}

// reduceSpec keeps the spec of a LimitRange or a ProxyConfig, its revision, and its age: of several ProxyConfigs
// for a pod, the oldest applies.
func reduceSpec(o *unstructured.Unstructured) map[string]any {
	metadata := metadataOf(o)
	delete(metadata, "labels")
	if revision, ok := o.GetLabels()[mesh.RevisionLabel]; ok {
		metadata["labels"] = map[string]any{mesh.RevisionLabel: revision}
	}
	metadata["creationTimestamp"], _, _ = unstructured.NestedString(o.Object, "metadata", "creationTimestamp")
	out := map[string]any{"metadata": metadata}
	if spec, ok, _ := unstructured.NestedMap(o.Object, "spec"); ok {
		out["spec"] = spec
	}
	return out
}
