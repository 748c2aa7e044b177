// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package ambient describes what Istio's ambient mode reads of an object: which labels enrol it, which proxy enforces a policy, and which
// conditions of an AuthorizationPolicy need layer 7. It reads values and returns values.
package ambient

import "strings"

// Labels of ambient mode, and the values that have a meaning.
const (
	DataplaneMode        = "istio.io/dataplane-mode"
	Ambient              = "ambient"
	None                 = "none"
	UseWaypoint          = "istio.io/use-waypoint"
	UseWaypointNamespace = "istio.io/use-waypoint-namespace"
	IngressUseWaypoint   = "istio.io/ingress-use-waypoint"
	WaypointFor          = "istio.io/waypoint-for"
	// SidecarLabel is on pods with a sidecar only: the injector adds it. Source: applyMetadata of pkg/kube/inject/inject.go of Istio.
	SidecarLabel = "security.istio.io/tlsMode"
	// GatewayName is on the pods of a waypoint; Istio makes a ServiceAccount of the same name for them.
	GatewayName = "gateway.networking.k8s.io/gateway-name"
)

// Kinds of the Gateway API that waypoints consist of.
const (
	GatewayGroup  = "gateway.networking.k8s.io"
	WaypointClass = "istio-waypoint"
)

// TunnelPort is where pods of ambient mode accept traffic of the mesh, and ProbeAddress the address that probes of the kubelet come from.
// Source: istio.io/docs/ambient/usage/networkpolicy.
const (
	TunnelPort   = 15008
	ProbeAddress = "169.254.7.127"
)

// Enrolled reports whether a pod is of ambient mode by the labels of its namespace and its own. Whether it has a sidecar or the network of
// its node is not read. Source: the default enablement selectors of Istio's CNI plugin, cni/pkg/util/enablement_selector.go.
func Enrolled(namespace, pod map[string]string) bool {
	switch pod[DataplaneMode] {
	case Ambient:
		return true
	case None:
		return false
	}
	return EnrolledNamespace(namespace)
}

// EnrolledNamespace reports whether the pods of a namespace are of ambient mode. A namespace whose pods get sidecars is not: ambient mode leaves
// them alone. Source: pkg/config/analysis/analyzers/sidecar/selector.go.
func EnrolledNamespace(labels map[string]string) bool {
	return labels[DataplaneMode] == Ambient && labels["istio-injection"] != "enabled" && labels["istio.io/rev"] == ""
}

// Reference names a waypoint.
type Reference struct{ Namespace, Name string }

// WaypointOf returns the waypoint that labels name for an object of a namespace. set is false if they name none, and the name is empty if they
// want none. Source: GetUseWaypoint in pilot/pkg/serviceregistry/ambient/waypoints.go.
func WaypointOf(labels map[string]string, namespace string) (ref Reference, set bool) {
	name, set := labels[UseWaypoint]
	if !set || name == None {
		return Reference{}, set
	}
	if other := labels[UseWaypointNamespace]; other != "" {
		namespace = other
	}
	return Reference{Namespace: namespace, Name: name}, true
}

// Serves reports whether a waypoint whose Gateway and class have these labels handles traffic of a sort: service or workload.
func Serves(gateway map[string]string, sort string) bool {
	switch have := gateway[WaypointFor]; have {
	case "":
		return sort == "service"
	case "all":
		return true
	default:
		return strings.EqualFold(have, sort)
	}
}

// SelectsGateway reports whether labels of a selector are those of gateways, which have a proxy of their own in ambient mode too. The labels
// are those of Istio's charts and of common charts around them, such as app.kubernetes.io/name: istio-ingress-gateway.
func SelectsGateway(labels map[string]string) bool {
	if strings.Contains(labels["istio"], "gateway") || labels[GatewayName] != "" {
		return true
	}
	for _, key := range []string{"app", "app.kubernetes.io/name", "app.kubernetes.io/component"} {
		value := strings.ReplaceAll(labels[key], "-", "")
		if strings.Contains(value, "ingressgateway") || strings.Contains(value, "egressgateway") || strings.Contains(value, "istiogateway") {
			return true
		}
	}
	return false
}
