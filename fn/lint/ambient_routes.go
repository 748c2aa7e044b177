// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
)

// routeTarget is the Service that a host of Istio's configuration means, where it is known, with its scope.
func (s *workloadSet) routeTarget(o *objectFacts, host string) (service *serviceFacts, scope string, ok bool) {
	key, ok := o.hostKey(host)
	if !ok {
		return nil, "", false
	}
	service = s.serviceByName[key]
	for i := range key {
		if key[i] == 0 && i > 0 {
			return service, key[:i], true
		}
	}
	return service, o.scope, true
}

// isForMesh reports whether a VirtualService is for the calls of pods, and not for those of gateways only.
func isForMesh(v *objectFacts) bool {
	gateways := textsOf(v.spec["gateways"])
	return len(gateways) == 0 || slices.Contains(gateways, meshGateway)
}

// withoutWaypoint reports whether nothing of layer 7 happens to calls of pods in ambient mode to a host of an object: the Service has no
// waypoint. Where the namespace of the host is not in ambient mode, its callers are, in the object's own.
func (s *workloadSet) withoutWaypoint(o *objectFacts, host string) bool {
	service, scope, ok := s.routeTarget(o, host)
	if !ok {
		scope = o.scope
	}
	if !s.ambient.has(scope) && !s.ambient.has(o.scope) {
		return false
	}
	labels := map[string]string{}
	if service != nil {
		labels = service.labels()
	} else if entry := s.entryOf(o, host); entry != nil {
		labels, scope = entry.labels(), entry.scope
	}
	_, has := s.ambient.waypointOf(labels, scope)
	return !has
}

// entryOf returns the ServiceEntry of a host, or nil.
func (s *workloadSet) entryOf(o *objectFacts, host string) *objectFacts {
	for _, e := range s.objects["ServiceEntry"] {
		if slices.Contains(textsOf(e.spec["hosts"]), host) && (e.scope == o.scope || slices.Contains(e.exportedTo(), "*")) {
			return e
		}
	}
	return nil
}

func checkRoutesWithoutWaypoint(s *workloadSet) (out []setFinding) {
	if !s.ambient.any {
		return nil
	}
	for _, v := range s.objects["VirtualService"] {
		if !isForMesh(v) || v.spec["http"] == nil && v.spec["tcp"] == nil && v.spec["tls"] == nil {
			continue
		}
		for i, host := range textsOf(v.spec["hosts"]) {
			if !s.withoutWaypoint(v, host) {
				continue
			}
			one := v.newFinding(fmt.Sprintf("spec.hosts[%d]", i), fmt.Sprintf("calls of pods in ambient mode to %s do not follow the routes: it has no waypoint", host))
			one.field.CurrentValue = host
			out = append(out, one)
			break
		}
	}
	return out
}

// checkDestinationsWithoutWaypoint leaves out rules that only ask for mutual TLS, which ztunnel uses in any case.
func checkDestinationsWithoutWaypoint(s *workloadSet) (out []setFinding) {
	if !s.ambient.any {
		return nil
	}
	for _, d := range s.objects["DestinationRule"] {
		host := textOf(d.spec["host"])
		traffic := podmap.MapAt(d.spec, "trafficPolicy")
		onlyMutual := len(traffic) == 0 || len(traffic) == 1 && textOf(podmap.MapAt(traffic, "tls")["mode"]) == "ISTIO_MUTUAL"
		if d.spec["subsets"] == nil && onlyMutual || !s.withoutWaypoint(d, host) {
			continue
		}
		field, what := "spec.trafficPolicy", "its settings"
		if d.spec["subsets"] != nil {
			field, what = "spec.subsets", "subsets"
		}
		out = append(out, d.newFinding(field, fmt.Sprintf("calls of pods in ambient mode to %s do not follow %s: it has no waypoint", host, what)))
	}
	return out
}

// checkTwoRoutes is about Services with a VirtualService and a route of the Gateway API.
func checkTwoRoutes(s *workloadSet) (out []setFinding) {
	if !s.ambient.any {
		return nil
	}
	routes := map[*serviceFacts]*objectFacts{}
	for _, kind := range []string{"HTTPRoute", "GRPCRoute"} {
		for _, r := range s.objects[kind] {
			for _, p := range podmap.Maps(r.spec["parentRefs"]) {
				namespace := textOf(p["namespace"])
				if namespace == "" {
					namespace = r.scope
				}
				if service := s.serviceByName[namespace+"\x00"+textOf(p["name"])]; service != nil && textOf(p["kind"]) == "Service" {
					routes[service] = r
				}
			}
		}
	}
	for _, v := range s.objects["VirtualService"] {
		if !isForMesh(v) {
			continue
		}
		for i, host := range textsOf(v.spec["hosts"]) {
			service, scope, _ := s.routeTarget(v, host)
			if service == nil || routes[service] == nil || !s.ambient.has(scope) {
				continue
			}
			one := v.newFinding(fmt.Sprintf("spec.hosts[%d]", i), fmt.Sprintf("%s is for Service %s too: which of the two a waypoint follows is undefined", routes[service], service.Name))
			one.field.CurrentValue = host
			out = append(out, one)
		}
	}
	return out
}

// forAmbientRoutes calls do for each VirtualService that a waypoint would follow.
func (s *workloadSet) forAmbientRoutes(do func(*objectFacts) []setFinding) (out []setFinding) {
	if !s.ambient.any {
		return nil
	}
	for _, v := range s.objects["VirtualService"] {
		if isForMesh(v) && slices.ContainsFunc(textsOf(v.spec["hosts"]), func(host string) bool {
			_, scope, ok := s.routeTarget(v, host)
			return ok && s.ambient.has(scope) || s.ambient.has(v.scope)
		}) {
			out = append(out, do(v)...)
		}
	}
	return out
}

// checkRouteSources is about conditions on the caller, which a waypoint does not have: it compares them with itself. Source: sourceMatchHTTP
// in pilot/pkg/networking/core/route/route.go.
func checkRouteSources(s *workloadSet) []setFinding {
	return s.forAmbientRoutes(func(v *objectFacts) (out []setFinding) {
		for _, protocol := range []string{"http", "tls", "tcp"} {
			for i, route := range podmap.Maps(v.spec[protocol]) {
				for j, m := range podmap.Maps(route["match"]) {
					for _, key := range []string{"sourceNamespace", "sourceLabels", "sourceSubnets"} {
						if m[key] != nil {
							out = append(out, v.newFinding(fmt.Sprintf("spec.%s[%d].match[%d].%s", protocol, i, j, key),
								"a waypoint does not know the caller by it: the route is not used, or not as it was"))
						}
					}
				}
			}
		}
		return out
	})
}

func checkAlphaRoutes(s *workloadSet) []setFinding {
	return s.forAmbientRoutes(func(v *objectFacts) []setFinding {
		for i, host := range textsOf(v.spec["hosts"]) {
			if !s.withoutWaypoint(v, host) {
				return []setFinding{v.newFinding(fmt.Sprintf("spec.hosts[%d]", i), "waypoints follow VirtualServices as an alpha feature")}
			}
		}
		return nil
	})
}

func checkFiltersInAmbient(s *workloadSet) []setFinding {
	return s.inAmbient("EnvoyFilter", func(o *objectFacts) []setFinding {
		selector := stringMap(podmap.MapAt(o.spec, "workloadSelector")["labels"])
		pods, ok := s.policyPods(o, selector)
		if !ok || len(ambient.Targets(o.spec)) > 0 || isForGateways(o.spec) {
			return nil
		}
		field := "spec"
		if len(selector) > 0 {
			field = "spec.workloadSelector"
		}
		return []setFinding{o.newFinding(field, "no Envoy of "+describePods(pods)+" is left that the filter could change")}
	})
}

// isForGateways reports whether all patches of an EnvoyFilter are for gateways.
func isForGateways(spec map[string]any) bool {
	patches := podmap.Maps(spec["configPatches"])
	return len(patches) > 0 && !slices.ContainsFunc(patches, func(p map[string]any) bool {
		return textOf(podmap.MapAt(p, "match")["context"]) != "GATEWAY"
	})
}

func checkSidecarsInAmbient(s *workloadSet) []setFinding {
	return s.inAmbient("Sidecar", func(o *objectFacts) []setFinding {
		pods, ok := s.policyPods(o, stringMap(podmap.MapAt(o.spec, "workloadSelector")["labels"]))
		if !ok {
			return nil
		}
		field, message := "spec", "it has no effect on "+describePods(pods)
		if textOf(podmap.MapAt(o.spec, "outboundTrafficPolicy")["mode"]) == "REGISTRY_ONLY" {
			field, message = "spec.outboundTrafficPolicy.mode", "ztunnel lets "+describePods(pods)+" call any host"
		}
		return []setFinding{o.newFinding(field, message)}
	})
}

func checkProxyConfigsInAmbient(s *workloadSet) []setFinding {
	return s.inAmbient("ProxyConfig", func(o *objectFacts) []setFinding {
		if pods, ok := s.policyPods(o, stringMap(podmap.MapAt(o.spec, "selector")["matchLabels"])); ok {
			return []setFinding{o.newFinding("spec", "no proxy of "+describePods(pods)+" is left that reads it")}
		}
		return nil
	})
}

// checkVirtualMachines leaves out WorkloadEntries without an identity, which ztunnel calls as plain addresses.
func checkVirtualMachines(s *workloadSet) []setFinding {
	out := s.inAmbient("WorkloadGroup", func(o *objectFacts) []setFinding {
		if !s.ambient.has(o.scope) {
			return nil
		}
		return []setFinding{o.newFinding("spec", "machines outside of the cluster run a sidecar: ambient mode has no ztunnel for them")}
	})
	return append(out, s.inAmbient("WorkloadEntry", func(o *objectFacts) []setFinding {
		if !s.ambient.has(o.scope) || textOf(o.spec["serviceAccount"]) == "" {
			return nil
		}
		return []setFinding{o.newFinding("spec.serviceAccount", "a machine with an identity runs a sidecar: ambient mode has no ztunnel for it")}
	})...)
}

// checkRemoteControlPlanes is about clusters without an istiod of their own. Sources: values.yaml of the chart istiod, and
// istio.io/docs/ambient/install/multicluster, which covers multi-primary installations only.
func checkRemoteControlPlanes(s *workloadSet) (out []setFinding) {
	if !s.ambient.any {
		return nil
	}
	for _, o := range append(s.objects["IstioOperator"][:len(s.objects["IstioOperator"]):len(s.objects["IstioOperator"])], s.objects["Istio"]...) {
		global := podmap.MapAt(o.spec, "values", "global")
		switch {
		case textOf(o.spec["profile"]) == "remote":
			out = append(out, o.newFinding("spec.profile", "the cluster has its control plane elsewhere, which ambient mode does not support"))
		case textOf(global["remotePilotAddress"]) != "":
			out = append(out, o.newFinding("spec.values.global.remotePilotAddress", "the cluster has its control plane elsewhere, which ambient mode does not support"))
		}
	}
	return out
}
