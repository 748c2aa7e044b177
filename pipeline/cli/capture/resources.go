// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"slices"
	"strings"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/pipeline/verify/live"
)

const admissionGroup = "admissionregistration.k8s.io"

// Resources are what a capture lists, in all namespaces. Secrets are not among them.
func Resources() []live.Resource {
	one := func(group, version, name, kind string, earlier ...string) live.Resource {
		return live.Resource{
			GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: name}, Kind: kind, Cluster: true, Earlier: earlier,
		}
	}
	proxyConfigs := one("networking.istio.io", "v1beta1", "proxyconfigs", "ProxyConfig")
	proxyConfigs.Optional = true
	return []live.Resource{
		one("", "v1", "namespaces", "Namespace"),
		one("", "v1", "serviceaccounts", "ServiceAccount"),
		one("", "v1", "limitranges", "LimitRange"),
		one("", "v1", "resourcequotas", "ResourceQuota"),
		one("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass"),
		one("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass"),
		one(admissionGroup, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", "v1beta1", "v1alpha1"),
		one(admissionGroup, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", "v1beta1", "v1alpha1"),
		one(admissionGroup, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", "v1beta1", "v1alpha1"),
		one(admissionGroup, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "v1beta1", "v1alpha1"),
		one(admissionGroup, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
		one(admissionGroup, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
		one("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
		proxyConfigs,
	}
}

// ConfigMaps lists the ConfigMaps, of which Wanted keeps a few.
func ConfigMaps() []live.Resource {
	return []live.Resource{{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Cluster: true,
	}}
}

// reference is where a binding finds its parameters.
type reference struct {
	kind            schema.GroupVersionKind
	name, namespace string
	selector        labels.Selector
}

// References returns the references to parameters among policies and bindings.
func References(objects []map[string]any) (out []Reference) {
	kinds := map[string]schema.GroupVersionKind{}
	for _, o := range objects {
		kind, _ := o["kind"].(string)
		if !strings.HasSuffix(kind, "AdmissionPolicy") {
			continue
		}
		param := podmap.MapAt(o, "spec", "paramKind")
		apiVersion, _ := param["apiVersion"].(string)
		name, _ := param["kind"].(string)
		if name != "" && name != "Secret" {
			metadata := podmap.MapAt(o, "metadata")
			kinds[kind+"/"+textOf(metadata["name"])] = schema.FromAPIVersionAndKind(apiVersion, name)
		}
	}
	for _, o := range objects {
		kind, _ := o["kind"].(string)
		policyKind, isBinding := strings.CutSuffix(kind, "Binding")
		spec := podmap.MapAt(o, "spec")
		param, ok := kinds[policyKind+"/"+textOf(spec["policyName"])]
		ref := podmap.MapAt(o, "spec", "paramRef")
		if !isBinding || !ok || ref == nil {
			continue
		}
		one := reference{kind: param, name: textOf(ref["name"]), namespace: textOf(ref["namespace"])}
		if from, ok := ref["selector"].(map[string]any); ok {
			var selector v1.LabelSelector
			if runtime.DefaultUnstructuredConverter.FromUnstructured(from, &selector) == nil {
				one.selector, _ = v1.LabelSelectorAsSelector(&selector)
			}
		}
		out = append(out, Reference{one})
	}
	return out
}

// Reference is a reference to parameters.
type Reference struct{ reference }

// Kind is the kind of the parameters.
func (r Reference) Kind() schema.GroupVersionKind { return r.kind }

// Means reports whether the reference may mean an object of its kind.
func (r Reference) Means(object map[string]any) bool {
	metadata := podmap.MapAt(object, "metadata")
	if r.namespace != "" && metadata["namespace"] != nil && metadata["namespace"] != r.namespace {
		return false
	}
	if r.selector != nil {
		set := labels.Set{}
		own, _ := metadata["labels"].(map[string]any)
		for key, value := range own {
			set[key] = textOf(value)
		}
		return r.selector.Matches(set)
	}
	return metadata["name"] == r.name
}

// ParamResources returns what has to be listed for the references to custom kinds, by the definitions among the objects.
func ParamResources(references []Reference, objects []map[string]any) (out []live.Resource) {
	for _, r := range references {
		for _, o := range objects {
			spec := podmap.MapAt(o, "spec")
			names := podmap.MapAt(o, "spec", "names")
			if o["kind"] != "CustomResourceDefinition" || spec["group"] != r.kind.Group || names["kind"] != r.kind.Kind {
				continue
			}
			one := live.Resource{
				GroupVersionResource: schema.GroupVersionResource{Group: r.kind.Group, Version: r.kind.Version, Resource: textOf(names["plural"])},
				Kind:                 r.kind.Kind, Cluster: true,
			}
			if !slices.ContainsFunc(out, func(l live.Resource) bool { return l.GroupVersionResource == one.GroupVersionResource }) {
				out = append(out, one)
			}
		}
	}
	return out
}

// WantsConfigMap reports whether a ConfigMap is a parameter, or the configuration of an Istio control plane.
func WantsConfigMap(object map[string]any, references []Reference) bool {
	metadata := podmap.MapAt(object, "metadata")
	name := textOf(metadata["name"])
	if strings.HasPrefix(name, "istio-sidecar-injector") || name == "istio" || strings.HasPrefix(name, "istio-") && hasMesh(object) {
		return true
	}
	return slices.ContainsFunc(references, func(r Reference) bool {
		return r.kind == schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"} && r.Means(object)
	})
}

func hasMesh(object map[string]any) bool {
	data := podmap.MapAt(object, "data")
	return data["mesh"] != nil
}

func textOf(v any) string {
	text, _ := v.(string)
	return text
}
