// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
)

// checkSharedLimits is about settings that a waypoint applies to all clients together. Source: buildWaypointInboundVIPCluster in
// pilot/pkg/networking/core/cluster_waypoint.go of Istio: the cluster is that of the waypoint's proxies.
func checkSharedLimits(s *workloadSet) (out []setFinding) {
	for _, d := range s.objects["DestinationRule"] {
		service, scope, _ := s.routeTarget(d, textOf(d.spec["host"]))
		if service == nil || !s.ambient.has(scope) {
			continue
		}
		at, fields := "spec.trafficPolicy", ambient.SharedLimits(podmap.MapAt(d.spec, "trafficPolicy"))
		for i, one := range podmap.Maps(d.spec["subsets"]) {
			if of := ambient.SharedLimits(podmap.MapAt(one, "trafficPolicy")); len(fields) == 0 && len(of) > 0 {
				at, fields = fmt.Sprintf("spec.subsets[%d].trafficPolicy", i), of
			}
		}
		if _, ok := s.ambient.waypointFor(service); ok && len(fields) > 0 {
			out = append(out, d.newFinding(at+"."+fields[0], fmt.Sprintf("the waypoint of %s applies it to all clients together, from where its pods run", service)))
		}
	}
	return out
}

// checkGatewaySubsets is about gateways that choose subsets of a Service whose waypoint they have to pass: all of its clusters at the gateway then
// lead to the waypoint. Source: findServiceWaypoint in pilot/pkg/xds/endpoints/endpoint_builder.go of Istio, and istio/istio#54994.
func checkGatewaySubsets(s *workloadSet) (out []setFinding) {
	for _, v := range s.objects["VirtualService"] {
		if len(gatewaysOf(v)) == 0 {
			continue
		}
		for _, to := range destinationsOf(v.spec) {
			service := s.findServiceOfHost(v, textOf(to.fields["host"]))
			if service == nil || textOf(to.fields["subset"]) == "" || !ingressUsesWaypoint(s, service) {
				continue
			}
			one := v.newFinding(to.path+".subset", fmt.Sprintf("gateways pass the waypoint of %s, which knows nothing of the subset that they chose", service))
			one.field.CurrentValue = to.fields["subset"]
			out = append(out, one)
			break
		}
	}
	return out
}

// ingressUsesWaypoint reports whether gateways pass the waypoint of a Service.
func ingressUsesWaypoint(s *workloadSet, service *serviceFacts) bool {
	if _, ok := s.ambient.waypointFor(service); !ok || !s.ambient.has(service.scope) {
		return false
	}
	value, set := service.labels()[ambient.IngressUseWaypoint]
	if !set {
		value = s.ambient.labelsOf(service.scope)[ambient.IngressUseWaypoint]
	}
	return strings.EqualFold(value, "true")
}

// checkClusterNames is about plugins that call clusters of sidecars. Source: cluster_waypoint.go of Istio: those of a waypoint are named
// inbound-vip, and it has others only for what its configuration names as a Service.
func checkClusterNames(s *workloadSet) []setFinding {
	return s.ambient.each("WasmPlugin", func(o *objectFacts) (out []setFinding) {
		forEachString(o.spec["pluginConfig"], "spec.pluginConfig", func(at, text string) bool {
			if strings.Contains(text, "outbound|") {
				out = append(out, o.newFinding(at, "a waypoint may have no cluster of this name, which is one of sidecars"))
			}
			return len(out) > 0
		})
		return out
	})
}

// checkStreamsWithoutWaypoint is about gRPC, of which one connection carries all requests.
func checkStreamsWithoutWaypoint(s *workloadSet) (out []setFinding) {
	for _, service := range s.services {
		if _, ok := s.ambient.waypointOf(service.labels(), service.scope); ok || !s.ambient.has(service.scope) || len(service.selector) == 0 || ambient.SelectsGateway(service.selector) {
			continue
		}
		if len(service.selected) > 0 && !slices.ContainsFunc(service.selected, func(pod *Summary) bool { return pod.ambient }) {
			continue // a gateway, or pods outside of the mesh
		}
		for i, p := range podmap.Maps(service.spec["ports"]) {
			protocol := textOf(p["appProtocol"])
			if protocol == "" {
				protocol, _, _ = strings.Cut(strings.ToLower(textOf(p["name"])), "-")
			}
			if slices.Contains([]string{"grpc", "http2", "h2c", "kubernetes.io/h2c"}, protocol) {
				out = append(out, service.objectFacts.newFinding(fmt.Sprintf("spec.ports[%d]", i),
					"ztunnel spreads connections and not requests: all requests of a connection reach one pod"))
				break
			}
		}
	}
	return out
}
