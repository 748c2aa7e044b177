// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
)

// ingress is what the gateways that call the Services of a namespace mean for its waypoint.
type ingress struct {
	// namespace reports whether all calls of gateways are to pass the waypoint. services are the only ones otherwise, and torn those
	// whose policies need that while gateways choose their subsets, which ends by it.
	namespace bool
	services  []*object
	torn      []*object
}

// gatewayServices finds the Services that gateways call and whose policies the waypoint enforces. Without a policy, calls of gateways go to the pods
// as before. Source: findServiceWaypoint in pilot/pkg/xds/endpoints/endpoint_builder.go of Istio: with the label, every cluster of the Service
// leads to the waypoint at the gateway, also those of subsets.
func gatewayServices(t *tree, namespace string) (out ingress) {
	subsets := false
	for _, s := range t.in(namespace, "Service") {
		called, subset := gatewayCalls(t, s)
		subsets = subsets || subset
		switch {
		case !called || !isGuarded(t, s):
		case subset:
			out.torn = append(out.torn, s)
		default:
			out.services = append(out.services, s)
		}
	}
	out.namespace = len(out.services) > 0 && !subsets
	return out
}

// labelForGateways labels Services where the namespace must not have the label, and reports whether it is to have it.
func labelForGateways(t *tree, namespace string) bool {
	in := gatewayServices(t, namespace)
	for _, s := range in.torn {
		t.notes = append(t.notes, t.note(s, "metadata.labels", Change, fmt.Sprintf(
			"gateways choose subsets of it, and the waypoint enforces its policies: with %s=true the subsets end, without it gateways pass the policies by; write the split as an HTTPRoute of the Service",
			ambient.IngressUseWaypoint)))
	}
	if in.namespace {
		return true
	}
	for _, s := range in.services {
		value := podmap.CopyMap(t.current(s))
		child(child(value, "metadata"), "labels")[ambient.IngressUseWaypoint] = "true"
		t.change(s, value)
	}
	return false
}

// isGuarded reports whether the waypoint enforces something on requests to a Service.
func isGuarded(t *tree, s *object) bool {
	if !ambient.HasAddress(s.spec) {
		return false
	}
	selector := podmap.StringMap(s.spec["selector"])
	for _, key := range []string{authorizationPolicies, requestAuthentications, wasmPlugins} {
		for _, o := range append(t.in(s.namespace, key), t.in(t.options.RootNamespace, key)...) {
			wanted := withoutSidecarLabel(podmap.StringMap(podmap.MapAt(o.spec, "selector")["matchLabels"]))
			selects := hasLabels(selector, wanted) || slices.ContainsFunc(t.selected(s), func(p podOf) bool { return hasLabels(p.podLabels, wanted) })
			if t.isReplaced(o) && selects {
				return true
			}
			if slices.ContainsFunc(ambient.Targets(o.spec), func(r ambient.TargetReference) bool { return r.Kind != "Service" || r.Name == s.name }) {
				return true
			}
		}
	}
	return false
}

// gatewayCalls reports whether gateways send requests to a Service, and whether they choose its subsets.
func gatewayCalls(t *tree, s *object) (called, subset bool) {
	for _, v := range t.byKind[virtualServices] {
		if !slices.ContainsFunc(textList(v.spec["gateways"]), func(g string) bool { return g != meshGateway }) {
			continue
		}
		for _, protocol := range []string{"http", "tls", "tcp"} {
			for _, route := range podmap.Maps(v.spec[protocol]) {
				for _, to := range podmap.Maps(route["route"]) {
					destination := podmap.MapAt(to, "destination")
					if other := t.serviceOf(v, text(destination["host"])); other != nil && other.namespace == s.namespace && other.name == s.name {
						called = true
						subset = subset || text(destination["subset"]) != ""
					}
				}
			}
		}
	}
	if len(t.in(s.namespace, "Ingress.networking.k8s.io")) > 0 {
		return true, subset
	}
	for _, r := range t.in(s.namespace, httpRoutes) {
		called = called || slices.ContainsFunc(podmap.Maps(r.spec["parentRefs"]), func(p map[string]any) bool { return p["kind"] == nil || text(p["kind"]) == "Gateway" })
	}
	return called, subset
}

// hasGateway reports whether anything among the files sends requests of a gateway to the namespace.
func hasGateway(t *tree, namespace string) bool {
	return slices.ContainsFunc(t.in(namespace, "Service"), func(s *object) bool {
		called, _ := gatewayCalls(t, s)
		return called
	})
}
