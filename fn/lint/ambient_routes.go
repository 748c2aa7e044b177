// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/internal/lazyregexp"
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

// withoutWaypoint returns what has no waypoint if nothing of layer 7 happens to calls of pods in ambient mode to a host of an object, and
// otherwise "". Where the namespace of the host is not in ambient mode, its callers are, in the object's own.
func (a *ambientSet) withoutWaypoint(o *objectFacts, host string) string {
	service, scope, ok := a.routeTarget(o, host)
	if !ok {
		scope = o.scope
	}
	if !a.has(scope) && !a.has(o.scope) {
		return ""
	}
	labels, what := map[string]string{}, "it"
	if service != nil {
		what = service.String()
		if !ambient.HasAddress(service.spec) {
			return what + ", as it is headless,"
		}
		labels = service.labels()
	} else if entry := a.entryOf(o, host); entry != nil {
		labels, scope, what = entry.labels(), entry.scope, entry.String()
	}
	if _, has := a.waypointOf(labels, scope); has {
		return ""
	}
	return what
}

// entryOf returns the ServiceEntry of a host, or nil.
func (a *ambientSet) entryOf(o *objectFacts, host string) *objectFacts {
	for _, e := range a.objects["ServiceEntry"] {
		if slices.Contains(textsOf(e.spec["hosts"]), host) && (e.scope == o.scope || slices.Contains(e.exportedTo(), "*")) {
			return e
		}
	}
	return nil
}

// changesNothing reports whether requests go where they go without a VirtualService.
func changesNothing(s *workloadSet, v *objectFacts) bool {
	hosts := textsOf(v.spec["hosts"])
	if len(hosts) != 1 {
		return false
	}
	key, ok := v.hostKey(hosts[0])
	return ambient.ChangesNothing(v.spec, func(to map[string]any) bool {
		other, isService := v.hostKey(textOf(to["host"]))
		if !ok || !isService || key != other {
			return textOf(to["host"]) == hosts[0] && to["port"] == nil
		}
		service := s.serviceByName[key]
		return to["port"] == nil || service == nil || len(service.ports) < 2
	})
}

func checkRoutesWithoutWaypoint(s *workloadSet) (out []setFinding) {
	for _, v := range s.objects["VirtualService"] {
		if !isForMesh(v) || v.spec["http"] == nil && v.spec["tcp"] == nil && v.spec["tls"] == nil || changesNothing(s, v) {
			continue
		}
		for i, host := range textsOf(v.spec["hosts"]) {
			what := s.ambient.withoutWaypoint(v, host)
			if what == "" {
				continue
			}
			one := v.newFinding(fmt.Sprintf("spec.hosts[%d]", i), fmt.Sprintf("calls of pods in ambient mode to %s do not follow the routes: %s has no waypoint", host, what))
			one.field.CurrentValue = host
			out = append(out, one)
			break
		}
	}
	return out
}

// checkDestinationsWithoutWaypoint leaves out subsets that no route for pods uses: gateways follow theirs without a waypoint.
func checkDestinationsWithoutWaypoint(s *workloadSet) (out []setFinding) {
	for _, d := range s.objects["DestinationRule"] {
		host := textOf(d.spec["host"])
		lost := lostSettings(s, d, host)
		if lost.field == "" || ambient.SelectsGateway(stringMap(podmap.MapAt(d.spec, "workloadSelector")["matchLabels"])) {
			continue
		}
		if what := s.ambient.withoutWaypoint(d, host); what != "" {
			one := d.newFinding(lost.field, fmt.Sprintf("calls of pods in ambient mode to %s %s: %s has no waypoint", host, lost.message, what))
			one.unsure = lost.unsure
			out = append(out, one)
		}
	}
	return out
}

// lostSetting is the field of a DestinationRule that ztunnel does not follow, and what happens to calls by that.
type lostSetting struct {
	field, message string
	// unsure reports that it may have no effect: no route among the files chooses the subsets, or load is spread all the same.
	unsure bool
}

// lostSettings has no field if none of the rule has an effect. Subsets have one by the routes that choose them.
func lostSettings(s *workloadSet, d *objectFacts, host string) lostSetting {
	traffic := podmap.MapAt(d.spec, "trafficPolicy")
	if ambient.OriginatesTLS(traffic) {
		return lostSetting{"spec.trafficPolicy", "leave the pod without the TLS that a sidecar added", false}
	}
	forPods, forGateways := choosesSubset(s, d, host)
	_, scope, ok := s.routeTarget(d, host)
	settings, field := ambient.ProxySettings(traffic), "spec.trafficPolicy"
	if forPods && (!ok || s.ambient.has(scope)) {
		settings, field = append([]string{"subsets"}, settings...), "spec.subsets"
	}
	switch {
	case len(settings) > 0:
		return lostSetting{field, "do not follow " + joinWords(settings), false}
	case d.spec["subsets"] != nil && !forPods && !forGateways && s.ambient.has(scope):
		return lostSetting{"spec.subsets", "do not follow subsets", true}
	case len(podmap.MapAt(traffic, "loadBalancer")) > 0:
		return lostSetting{"spec.trafficPolicy.loadBalancer", "are spread by connections and not by requests", true}
	}
	return lostSetting{}
}

// joinWords lists words as a sentence does.
func joinWords(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// choosesSubset reports whether VirtualServices choose subsets of a DestinationRule for calls of pods, and for those of gateways.
func choosesSubset(s *workloadSet, d *objectFacts, host string) (forPods, forGateways bool) {
	key, ok := d.hostKey(host)
	for _, v := range s.objects["VirtualService"] {
		chosen := slices.ContainsFunc(destinationsOf(v.spec), func(to destination) bool {
			name := textOf(to.fields["host"])
			other, isService := v.hostKey(name)
			return textOf(to.fields["subset"]) != "" && (name == host || ok && isService && other == key)
		})
		forPods = forPods || chosen && isForMesh(v)
		forGateways = forGateways || chosen && !isForMesh(v)
	}
	return forPods, forGateways
}

// checkTwoRoutes is about Services with a VirtualService and a route of the Gateway API.
func checkTwoRoutes(s *workloadSet) (out []setFinding) {
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

// eachRoute calls do for each VirtualService that a waypoint would follow.
func (a *ambientSet) eachRoute(do func(*objectFacts) []setFinding) (out []setFinding) {
	if !a.any {
		return nil
	}
	for _, v := range a.objects["VirtualService"] {
		if isForMesh(v) && slices.ContainsFunc(textsOf(v.spec["hosts"]), func(host string) bool {
			_, scope, ok := a.routeTarget(v, host)
			return ok && a.has(scope) || a.has(v.scope)
		}) {
			out = append(out, do(v)...)
		}
	}
	return out
}

// checkRouteSources is about conditions on the caller, which a waypoint does not have: it compares them with itself. Source: sourceMatchHTTP
// in pilot/pkg/networking/core/route/route.go.
func checkRouteSources(s *workloadSet) []setFinding {
	return s.ambient.eachRoute(func(v *objectFacts) (out []setFinding) {
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
	return s.ambient.eachRoute(func(v *objectFacts) []setFinding {
		for i, host := range textsOf(v.spec["hosts"]) {
			if s.ambient.withoutWaypoint(v, host) == "" && !changesNothing(s, v) {
				return []setFinding{v.newFinding(fmt.Sprintf("spec.hosts[%d]", i), "waypoints follow VirtualServices as an alpha feature")}
			}
		}
		return nil
	})
}

func checkFiltersInAmbient(s *workloadSet) []setFinding {
	return s.ambient.each("EnvoyFilter", func(o *objectFacts) []setFinding {
		selector := stringMap(podmap.MapAt(o.spec, "workloadSelector")["labels"])
		pods, ok := s.ambient.policyPods(o, selector)
		if !ok || len(ambient.Targets(o.spec)) > 0 || isForGateways(o.spec) || o.scope == s.root && installedFilter.MatchString(o.Name) {
			return nil
		}
		field := "spec"
		if len(selector) > 0 {
			field = "spec.workloadSelector"
		}
		return []setFinding{o.newFinding(field, "no Envoy of "+describePods(pods)+" is left that the filter could change")}
	})
}

// installedFilter are the names of filters that Istio 1.4 to 1.17 installed for its own metrics, by version. Source: the chart istio-discovery of
// these versions, templates/telemetryv2_*.yaml.
var installedFilter = lazyregexp.New(`^(tcp-)?(metadata-exchange|stats-filter|stackdriver-filter)-1\.[0-9]+`)

// isForGateways reports whether all patches of an EnvoyFilter are for gateways.
func isForGateways(spec map[string]any) bool {
	patches := podmap.Maps(spec["configPatches"])
	return len(patches) > 0 && !slices.ContainsFunc(patches, func(p map[string]any) bool {
		return textOf(podmap.MapAt(p, "match")["context"]) != "GATEWAY"
	})
}

// checkSidecarsInAmbient is about egress that was limited, and about listeners. A Sidecar that only limits what a proxy knows is a note.
func checkSidecarsInAmbient(s *workloadSet) []setFinding {
	return s.ambient.each("Sidecar", func(o *objectFacts) []setFinding {
		pods, ok := s.ambient.policyPods(o, stringMap(podmap.MapAt(o.spec, "workloadSelector")["labels"]))
		if !ok {
			return nil
		}
		if textOf(podmap.MapAt(o.spec, "outboundTrafficPolicy")["mode"]) == "REGISTRY_ONLY" {
			return []setFinding{o.newFinding("spec.outboundTrafficPolicy.mode", "ztunnel lets "+describePods(pods)+" call any host")}
		}
		if len(podmap.Maps(o.spec["ingress"])) > 0 {
			return []setFinding{o.newFinding("spec.ingress", "its listeners end: requests to "+describePods(pods)+" go to the port that the Service names")}
		}
		one := o.newFinding("spec", "it limits what the proxies of "+describePods(pods)+" know, which ztunnel does not need")
		one.minor = true
		return []setFinding{one}
	})
}

func checkProxyConfigsInAmbient(s *workloadSet) []setFinding {
	return s.ambient.each("ProxyConfig", func(o *objectFacts) []setFinding {
		if pods, ok := s.ambient.policyPods(o, stringMap(podmap.MapAt(o.spec, "selector")["matchLabels"])); ok {
			return []setFinding{o.newFinding("spec", "no proxy of "+describePods(pods)+" is left that reads it")}
		}
		return nil
	})
}

// checkVirtualMachines leaves out WorkloadEntries without an identity, which ztunnel calls as plain addresses.
func checkVirtualMachines(s *workloadSet) []setFinding {
	out := s.ambient.each("WorkloadGroup", func(o *objectFacts) []setFinding {
		if !s.ambient.has(o.scope) {
			return nil
		}
		return []setFinding{o.newFinding("spec", "machines outside of the cluster run a sidecar: ambient mode has no ztunnel for them")}
	})
	return append(out, s.ambient.each("WorkloadEntry", func(o *objectFacts) []setFinding {
		if !s.ambient.has(o.scope) || textOf(o.spec["serviceAccount"]) == "" {
			return nil
		}
		return []setFinding{o.newFinding("spec.serviceAccount", "a machine with an identity runs a sidecar: ambient mode has no ztunnel for it")}
	})...)
}

// checkRemoteControlPlanes is about clusters without an istiod of their own. Sources: values.yaml of the chart istiod, and
// istio.io/docs/ambient/install/multicluster, which covers multi-primary installations only.
func checkRemoteControlPlanes(s *workloadSet) (out []setFinding) {
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
