// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// Object is an object beside the workloads that rules on a set read.
type Object struct {
	// APIVersion, Kind, Name and Namespace are the object's; the namespace is the one it will be in, if that is known.
	APIVersion, Kind, Name, Namespace string
	// Object is the whole object. It is not modified.
	Object map[string]any
	// File is where it came from, and is passed on.
	File *result.File
}

// objectGroups are the API groups of the kinds that rules read.
var objectGroups = map[string]string{
	"Service": "", "LimitRange": "", "ResourceQuota": "",
	"HorizontalPodAutoscaler": "autoscaling",
	"PodDisruptionBudget":     "policy",
	"NetworkPolicy":           "networking.k8s.io",
	"DestinationRule":         "networking.istio.io",
	"VirtualService":          "networking.istio.io",
	"Gateway":                 "networking.istio.io",
	"Sidecar":                 "networking.istio.io",
	"EnvoyFilter":             "networking.istio.io",
	"ServiceEntry":            "networking.istio.io",
	"PeerAuthentication":      "security.istio.io",
	"AuthorizationPolicy":     "security.istio.io",
	"RequestAuthentication":   "security.istio.io",
	"Telemetry":               "telemetry.istio.io",
	"WasmPlugin":              "extensions.istio.io",
	"ProxyConfig":             "networking.istio.io",
	"WorkloadEntry":           "networking.istio.io",
	"WorkloadGroup":           "networking.istio.io",
	"IstioOperator":           "install.istio.io",
	"Istio":                   "sailoperator.io",
	kubernetesGateway:         ambient.GatewayGroup,
	"HTTPRoute":               ambient.GatewayGroup,
	"GRPCRoute":               ambient.GatewayGroup,
	"Ingress":                 "networking.k8s.io",

	"ServiceMeshControlPlane": "maistra.io", "ServiceMeshMemberRoll": "maistra.io", "ServiceMeshPeer": "federation.maistra.io",
	"ZTunnel":     "sailoperator.io",
	"HelmRelease": "helm.toolkit.fluxcd.io", "Application": "argoproj.io",
	"Canary": "flagger.app", "MetricTemplate": "flagger.app",
	"AnalysisTemplate": "argoproj.io", "ClusterAnalysisTemplate": "argoproj.io",
	"PrometheusRule": "monitoring.coreos.com", "PodMonitor": "monitoring.coreos.com", "ServiceMonitor": "monitoring.coreos.com",
	"ScaledObject": "keda.sh", "CiliumNetworkPolicy": "cilium.io",

	"CustomResourceDefinition": "apiextensions.k8s.io",
	"Kustomization":            "kustomize.toolkit.fluxcd.io",
}

// ReadsKind reports whether rules on a set read objects of the kind, beside workloads and Namespaces.
func ReadsKind(apiVersion, kind string) bool {
	group, ok := objectGroups[objectKey(apiVersion, kind)]
	if !ok {
		return false
	}
	have, _, grouped := strings.Cut(apiVersion, "/")
	return grouped && have == group || !grouped && group == ""
}

// objectKey is what objects of a kind are found by: the kind, but for one that is of two groups.
func objectKey(apiVersion, kind string) string {
	if kind == "Gateway" && strings.HasPrefix(apiVersion, ambient.GatewayGroup+"/") {
		return kubernetesGateway
	}
	return kind
}

// Decides reports whether rules that every injection checks (see [Always]) read objects of the kind.
func Decides(apiVersion, kind string) bool {
	switch kind {
	case "LimitRange", "ResourceQuota", "CustomResourceDefinition", "Kustomization":
		return ReadsKind(apiVersion, kind)
	}
	group, _, _ := strings.Cut(apiVersion, "/")
	_, known := nativeSince[group+"/"+kind]
	return known
}

// objectFacts is an object, and what each rule needs of it.
type objectFacts struct {
	Object
	spec    map[string]any
	ignored ignoredRules
	// scope is where it finds pods and other objects.
	scope string
}

func newObjectFacts(o Object) *objectFacts {
	meta, _ := o.Object["metadata"].(map[string]any)
	spec, _ := o.Object["spec"].(map[string]any)
	return &objectFacts{Object: o, spec: spec, ignored: parseIgnoredRules(stringMap(meta["annotations"])), scope: serviceLookupScope(o.Namespace, o.File)}
}

// newFinding is about a field of the object.
func (o *objectFacts) newFinding(field, message string) setFinding {
	return setFinding{
		ref:  result.ResourceRef{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, Namespace: o.Namespace},
		file: o.File, ignored: o.ignored, field: &result.Field{Path: field}, message: message,
	}
}

// isBeside reports whether the other object is in the same directory, or in one above or below: files of others may be for another
// cluster. Objects without a file belong together.
func (o *objectFacts) isBeside(other *objectFacts) bool {
	if o.File == nil || other.File == nil {
		return true
	}
	a, b := path.Dir(o.File.Path)+"/", path.Dir(other.File.Path)+"/"
	return a == "./" || b == "./" || strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// String is how messages name the object.
func (o *objectFacts) String() string {
	return result.ResourceRef{Kind: o.Kind, Name: o.Name, Namespace: o.Namespace}.String()
}

// selectsLabels reports whether a LabelSelector of Kubernetes (matchLabels, matchExpressions) selects the labels. An empty one selects all.
func selectsLabels(selector map[string]any, labels map[string]string) bool {
	if !hasLabels(labels, stringMap(selector["matchLabels"])) {
		return false
	}
	for _, e := range podmap.Maps(selector["matchExpressions"]) {
		value, ok := labels[textOf(e["key"])]
		list, _ := e["values"].([]any)
		among := ok && slices.ContainsFunc(list, func(v any) bool { return textOf(v) == value })
		switch textOf(e["operator"]) {
		case "In":
			ok = among
		case "NotIn":
			ok = !among
		case "DoesNotExist":
			ok = !ok
		}
		if !ok {
			return false
		}
	}
	return true
}

// hostKey is the Service that a host of Istio's configuration means, as newSet finds Services; false where it is no Service's name.
// A short name is one of the object's own namespace. Source: ResolveShortnameToFQDN in pkg/config/model of Istio.
func (o *objectFacts) hostKey(host string) (string, bool) {
	name, rest, dotted := strings.Cut(host, ".")
	switch {
	case name == "" || strings.Contains(host, "*"):
		return "", false
	case !dotted:
		return o.scope + "\x00" + name, true
	}
	namespace, domain, _ := strings.Cut(rest, ".")
	if domain != "" && domain != "svc" && !strings.HasPrefix(domain, "svc.") {
		return "", false
	}
	return namespace + "\x00" + name, true
}
