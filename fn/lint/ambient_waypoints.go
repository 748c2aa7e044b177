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

// waypointUse is an object with the label that names a waypoint.
type waypointUse struct {
	ref   ambient.Reference
	scope string
	kind  string
	new   func(label, message string) setFinding
}

// waypointUses returns the namespaces, Services, ServiceEntries and pods of the set that name a waypoint.
func (a *ambientSet) waypointUses() (out []waypointUse) {
	if !a.any {
		return nil
	}
	for i := range a.namespaces {
		ns := &a.namespaces[i]
		if ref, _ := ambient.WaypointOf(ns.Labels, ns.Name); ref.Name != "" {
			out = append(out, waypointUse{ref, ns.Name, "Namespace", func(label, message string) setFinding { return newNamespaceFinding(ns, label, message) }})
		}
	}
	var objects []*objectFacts
	for _, service := range a.services {
		objects = append(objects, service.objectFacts)
	}
	for _, o := range append(objects, a.objects["ServiceEntry"]...) {
		labels := o.labels()
		if ref, _ := ambient.WaypointOf(labels, o.scope); ref.Name != "" {
			out = append(out, waypointUse{ref, o.scope, o.Kind, func(label, message string) setFinding {
				one := o.newFinding(labelPath(label), message)
				one.field.CurrentValue = labels[label]
				return one
			}})
		}
	}
	return out
}

func checkMissingWaypoints(s *workloadSet) (out []setFinding) {
	for _, use := range s.ambient.waypointUses() {
		if s.ambient.waypoints[use.ref.Namespace+"\x00"+use.ref.Name] != nil {
			continue
		}
		var others []string
		for key := range s.ambient.waypoints {
			if namespace, name, _ := strings.Cut(key, "\x00"); namespace == use.ref.Namespace {
				others = append(others, name)
			}
		}
		slices.Sort(others)
		message := fmt.Sprintf("waypoint %s/%s is not among the files", use.ref.Namespace, use.ref.Name)
		if len(others) > 0 {
			message += "; its namespace has " + strings.Join(others, ", ")
		}
		one := use.new(ambient.UseWaypoint, message)
		one.unsure = len(others) == 0
		out = append(out, one)
	}
	return out
}

// checkWaypointsServe is about waypoints that do not accept what names them. Source: fetchWaypointForTarget, fetchWaypointForService and
// makeAllowedRoutes in pilot/pkg/serviceregistry/ambient/waypoints.go.
func checkWaypointsServe(s *workloadSet) (out []setFinding) {
	for _, use := range s.ambient.waypointUses() {
		gateway := s.ambient.waypoints[use.ref.Namespace+"\x00"+use.ref.Name]
		if gateway == nil {
			continue
		}
		if !ambient.Serves(gateway.labels(), "service") {
			out = append(out, use.new(ambient.UseWaypoint, fmt.Sprintf("waypoint %s/%s is for %s and not for Services", use.ref.Namespace, use.ref.Name, gateway.labels()[ambient.WaypointFor])))
		}
		if use.scope != gateway.scope && !s.ambient.allowsNamespace(gateway, use.scope) {
			out = append(out, use.new(ambient.UseWaypointNamespace, fmt.Sprintf("the listener of waypoint %s/%s does not allow namespace %s in allowedRoutes", use.ref.Namespace, use.ref.Name, use.scope)))
		}
	}
	if !s.ambient.any {
		return out
	}
	for _, key := range sortedKeys(s.ambient.waypoints) {
		gateway := s.ambient.waypoints[key]
		if tunnelListener(gateway) == nil && textOf(gateway.spec["gatewayClassName"]) == ambient.WaypointClass {
			out = append(out, gateway.newFinding("spec.listeners", fmt.Sprintf("the waypoint has no listener with port %d and protocol HBONE", ambient.TunnelPort)))
		}
	}
	return out
}

func tunnelListener(gateway *objectFacts) map[string]any {
	for _, l := range podmap.Maps(gateway.spec["listeners"]) {
		if port, _ := integerOf(l["port"]); port == ambient.TunnelPort && textOf(l["protocol"]) == "HBONE" {
			return l
		}
	}
	return nil
}

// allowsNamespace reports whether a waypoint serves another namespace. What cannot be known is allowed.
func (a *ambientSet) allowsNamespace(gateway *objectFacts, namespace string) bool {
	routes := podmap.MapAt(tunnelListener(gateway), "allowedRoutes", "namespaces")
	switch textOf(routes["from"]) {
	case "All":
		return true
	case "Selector":
		ns := a.namespaceByName[namespace]
		return ns == nil || selectsLabels(podmap.MapAt(routes, "selector"), withName(ns))
	}
	return false
}

// withName returns the labels of a namespace with the one that the API server adds.
func withName(ns *Namespace) map[string]string {
	out := map[string]string{"kubernetes.io/metadata.name": ns.Name}
	for k, v := range ns.Labels {
		out[k] = v
	}
	return out
}

// enforcedAt returns the policies that a waypoint enforces for a Service, as messages name them; nil if none.
func (a *ambientSet) enforcedAt(service *serviceFacts, waypoint ambient.Reference) *objectFacts {
	for _, kind := range targetKinds {
		for _, o := range a.objects[kind] {
			for _, t := range ambient.Targets(o.spec) {
				if t.Kind == "Service" && t.Name == service.Name && o.scope == service.scope ||
					t.Kind == "Gateway" && t.Name == waypoint.Name && o.scope == waypoint.Namespace {
					return o
				}
			}
		}
	}
	return nil
}

// guardKinds are the kinds of policies that reject or change requests; without the others, a request is the same.
var guardKinds = []string{"AuthorizationPolicy", "RequestAuthentication", "WasmPlugin"}

// admitsOnly reports whether ztunnel lets nothing but the waypoint call the pods of a Service: ALLOW policies select them, and have no other
// principal.
func admitsOnly(s *workloadSet, service *serviceFacts, waypoint ambient.Reference) bool {
	admits := false
	for _, o := range s.objects["AuthorizationPolicy"] {
		selector := stringMap(podmap.MapAt(o.spec, "selector")["matchLabels"])
		if o.scope != service.scope && o.scope != s.root || len(ambient.Targets(o.spec)) > 0 || ambient.Action(o.spec) != "ALLOW" || !hasLabels(service.selector, selector) {
			continue
		}
		for _, rule := range podmap.Maps(o.spec["rules"]) {
			if !onlyFrom(rule, "/ns/"+waypoint.Namespace+"/sa/"+waypoint.Name) {
				return false
			}
		}
		admits = true
	}
	return admits
}

// onlyFrom reports whether a rule matches no source but a principal.
func onlyFrom(rule map[string]any, principal string) bool {
	from := podmap.Maps(rule["from"])
	return len(from) > 0 && !slices.ContainsFunc(from, func(one map[string]any) bool {
		names := textsOf(podmap.MapAt(one, "source")["principals"])
		return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return !strings.HasSuffix(name, principal) })
	})
}

// checkIngressPassesWaypoint is about Services that gateways call. Source: ingressUseWaypointFromLabels in
// pilot/pkg/serviceregistry/ambient/services.go.
func checkIngressPassesWaypoint(s *workloadSet) (out []setFinding) {
	for _, service := range s.services {
		waypoint, ok := s.ambient.waypointFor(service)
		if !ok || !s.ambient.has(service.scope) {
			continue
		}
		policy := s.ambient.enforcedAt(service, waypoint)
		caller := s.ambient.gatewayRouteTo(service)
		if ingressUsesWaypoint(s, service) || policy == nil || caller == nil {
			continue
		}
		out = append(out, service.objectFacts.newFinding("metadata.labels", fmt.Sprintf("%s sends requests of a gateway to the Service, which without the label do not pass its waypoint, where %s is enforced", caller, policy)))
	}
	return out
}

// gatewayRouteTo returns a route by which a gateway calls a Service, or nil.
func (a *ambientSet) gatewayRouteTo(service *serviceFacts) *objectFacts {
	for _, v := range a.objects["VirtualService"] {
		if len(gatewaysOf(v)) == 0 {
			continue
		}
		for _, to := range destinationsOf(v.spec) {
			if a.findServiceOfHost(v, textOf(to.fields["host"])) == service {
				return v
			}
		}
	}
	for _, r := range append(a.objects["HTTPRoute"][:len(a.objects["HTTPRoute"]):len(a.objects["HTTPRoute"])], a.objects["GRPCRoute"]...) {
		if !slices.ContainsFunc(podmap.Maps(r.spec["parentRefs"]), func(p map[string]any) bool { return p["kind"] == nil || textOf(p["kind"]) == "Gateway" }) {
			continue
		}
		for _, rule := range podmap.Maps(r.spec["rules"]) {
			for _, b := range podmap.Maps(rule["backendRefs"]) {
				namespace := textOf(b["namespace"])
				if namespace == "" {
					namespace = r.scope
				}
				if textOf(b["name"]) == service.Name && namespace == service.scope {
					return r
				}
			}
		}
	}
	for _, i := range a.objects["Ingress"] {
		if i.scope == service.scope && ingressCalls(i.spec, service.Name) {
			return i
		}
	}
	return nil
}

func ingressCalls(spec map[string]any, name string) bool {
	for _, rule := range podmap.Maps(spec["rules"]) {
		for _, p := range podmap.Maps(podmap.MapAt(rule, "http")["paths"]) {
			if textOf(podmap.MapAt(p, "backend", "service")["name"]) == name {
				return true
			}
		}
	}
	return textOf(podmap.MapAt(spec, "defaultBackend", "service")["name"]) == name
}

// checkSidecarsPassWaypoint reports each namespace with policies at a waypoint while pods elsewhere have sidecars, which call pods directly.
func checkSidecarsPassWaypoint(s *workloadSet) (out []setFinding) {
	var caller *Summary
	callers := map[string]bool{}
	for i := range s.pods {
		if pod := &s.pods[i]; pod.sidecar && !pod.ambient {
			if caller == nil {
				caller = pod
			}
			callers[pod.ref.Namespace] = true
		}
	}
	if caller == nil {
		return nil
	}
	for i := range s.namespaces {
		ns := &s.namespaces[i]
		if !ambient.EnrolledNamespace(ns.Labels) {
			continue
		}
		for _, service := range s.services {
			waypoint, ok := s.ambient.waypointFor(service)
			if service.scope != ns.Name || !ok {
				continue
			}
			policy := s.ambient.enforcedAt(service, waypoint)
			if policy != nil && slices.Contains(guardKinds, policy.Kind) && !admitsOnly(s, service, waypoint) {
				out = append(out, newNamespaceFinding(ns, ambient.DataplaneMode, fmt.Sprintf(
					"pods with a sidecar in other namespaces (%d), such as %s, do not pass the waypoint, where %s is enforced", len(callers), caller.ref, policy)))
				break
			}
		}
	}
	return out
}
