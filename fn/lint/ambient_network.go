// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
)

// ambientNetwork is an ambientSet for the rules about NetworkPolicies.
type ambientNetwork struct {
	*ambientSet
}

// enrolledPods returns the pods of ambient mode that a NetworkPolicy selects. ok is false if pods are known and none of those is.
func (a ambientNetwork) enrolledPods(n *objectFacts) (pods []*Summary, ok bool) {
	for _, pod := range a.enrolled[n.scope] {
		if selectsLabels(podmap.MapAt(n.spec, "podSelector"), pod.labels) {
			pods = append(pods, pod)
		}
	}
	if len(pods) > 0 {
		return pods, true
	}
	known := a.index != nil && slices.ContainsFunc(a.index.byScope[n.scope], func(pod *Summary) bool {
		return selectsLabels(podmap.MapAt(n.spec, "podSelector"), pod.labels)
	})
	return nil, !known && len(a.enrolled[n.scope]) == 0 && ambient.EnrolledNamespace(a.labelsOf(n.scope))
}

// coversPort reports whether a rule's ports include a TCP port; a port with a name is not known.
func coversPort(ports []map[string]any, number int64) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p map[string]any) bool {
		if protocol := textOf(p["protocol"]); protocol != "" && protocol != "TCP" {
			return false
		}
		first, isNumber := integerOf(p["port"])
		last, isRange := integerOf(p["endPort"])
		if !isRange {
			last = first
		}
		return p["port"] == nil || isNumber && first <= number && number <= last
	})
}

// outsideMesh are ports of what is not in the mesh in the usual cluster: DNS, the API server and istiod.
var outsideMesh = []int64{53, 443, 6443, 15010, 15012, 15014, 15017}

// isTunnelled reports whether connections that a rule allows are those of the mesh: TCP, and not to or from what is known to be outside.
func (a ambientNetwork) isTunnelled(rule map[string]any, peers string) bool {
	ports := podmap.Maps(rule["ports"])
	tcp := slices.ContainsFunc(ports, func(p map[string]any) bool {
		number, isNumber := integerOf(p["port"])
		protocol := textOf(p["protocol"])
		return (protocol == "" || protocol == "TCP") && !(peers == "to" && isNumber && slices.Contains(outsideMesh, number))
	})
	list := podmap.Maps(rule[peers])
	return tcp && (len(list) == 0 || slices.ContainsFunc(list, func(peer map[string]any) bool { return a.mayBeInMesh(peer) }))
}

// mayBeInMesh reports whether a peer may be pods of the mesh. Blocks of addresses are for what is outside of the cluster.
func (a ambientNetwork) mayBeInMesh(peer map[string]any) bool {
	if peer["ipBlock"] != nil {
		return false
	}
	selector, ok := peer["namespaceSelector"].(map[string]any)
	if !ok {
		return true
	}
	known, mesh := false, false
	for i := range a.namespaces {
		ns := &a.namespaces[i]
		if selectsLabels(selector, withName(ns)) {
			known = true
			mesh = mesh || ambient.EnrolledNamespace(ns.Labels) || ns.Labels["istio-injection"] == "enabled" || ns.Labels["istio.io/rev"] != ""
		}
	}
	if names := podmap.MapAt(selector, "matchLabels"); textOf(names["kubernetes.io/metadata.name"]) == "kube-system" {
		return false
	}
	return !known || mesh
}

func checkIngressTunnel(s *workloadSet) []setFinding {
	return ambientNetwork{s.ambient}.checkTunnel("ingress", "from", limitsIngress)
}

func checkEgressTunnel(s *workloadSet) []setFinding {
	return ambientNetwork{s.ambient}.checkTunnel("egress", "to", limitsEgress)
}

// limitsIngress reports whether a policy is about ingress; it is without policyTypes.
func limitsIngress(spec map[string]any) bool {
	types, ok := spec["policyTypes"].([]any)
	return !ok || slices.ContainsFunc(types, func(v any) bool { return textOf(v) == "Ingress" })
}

// checkTunnel reports the first rule of each policy that allows connections of the mesh by their ports, and not by that of the tunnel.
func (a ambientNetwork) checkTunnel(direction, peers string, limits func(map[string]any) bool) []setFinding {
	return a.each("NetworkPolicy", func(n *objectFacts) []setFinding {
		pods, ok := a.enrolledPods(n)
		if !ok || !limits(n.spec) || a.tunnelIsOpen(n, direction, peers, limits) {
			return nil
		}
		for i, rule := range podmap.Maps(n.spec[direction]) {
			if coversPort(podmap.Maps(rule["ports"]), ambient.TunnelPort) || !a.isTunnelled(rule, peers) {
				continue
			}
			return []setFinding{n.newFinding(fmt.Sprintf("spec.%s[%d].ports", direction, i),
				fmt.Sprintf("connections of the mesh use port %d, which the rule does not allow for %s", ambient.TunnelPort, describePods(pods)))}
		}
		return nil
	})
}

// tunnelIsOpen reports whether a policy for the same pods, or this one, opens the tunnel's port to all peers.
func (a ambientNetwork) tunnelIsOpen(n *objectFacts, direction, peers string, limits func(map[string]any) bool) bool {
	for _, other := range a.objects["NetworkPolicy"] {
		if other.scope != n.scope || !limits(other.spec) || other != n && len(podmap.MapAt(other.spec, "podSelector")) > 0 {
			continue
		}
		for _, rule := range podmap.Maps(other.spec[direction]) {
			open := !slices.ContainsFunc(podmap.Maps(rule[peers]), func(peer map[string]any) bool { return !isEverywhere(peer) })
			if open && coversPort(podmap.Maps(rule["ports"]), ambient.TunnelPort) {
				return true
			}
		}
	}
	return false
}

// isEverywhere reports whether a peer is all pods of the cluster.
func isEverywhere(peer map[string]any) bool {
	namespaces, ok := peer["namespaceSelector"].(map[string]any)
	return ok && len(namespaces) == 0 && len(podmap.MapAt(peer, "podSelector")) == 0
}

// checkProbeAddress reports the first policy that keeps probes from each pod: they come from the node without ambient mode, which network plugins
// let through, and from a link-local address with it.
func checkProbeAddress(s *workloadSet) (out []setFinding) {
	network := ambientNetwork{s.ambient}
	reported := map[*Summary]bool{}
	for _, n := range s.objects["NetworkPolicy"] {
		if !limitsIngress(n.spec) {
			continue
		}
		var kept []*Summary
		pods, _ := network.enrolledPods(n)
		for _, pod := range pods {
			if pod.probed && !reported[pod] && !network.allowsProbes(n.scope, pod) {
				reported[pod] = true
				kept = append(kept, pod)
			}
		}
		if len(kept) == 0 {
			continue
		}
		field := "spec.ingress"
		if n.spec["ingress"] == nil {
			field = "spec.podSelector"
		}
		out = append(out, n.newFinding(field, fmt.Sprintf("no rule lets probes of %s in, which come from %s", describePods(kept), ambient.ProbeAddress)))
	}
	return out
}

func (a ambientNetwork) allowsProbes(scope string, pod *Summary) bool {
	for _, n := range a.objects["NetworkPolicy"] {
		if n.scope != scope || !selectsLabels(podmap.MapAt(n.spec, "podSelector"), pod.labels) {
			continue
		}
		for _, rule := range podmap.Maps(n.spec["ingress"]) {
			from := podmap.Maps(rule["from"])
			if len(from) == 0 || slices.ContainsFunc(from, coversProbes) {
				return true
			}
		}
	}
	return false
}

func coversProbes(peer map[string]any) bool {
	prefix, err := netip.ParsePrefix(textOf(podmap.MapAt(peer, "ipBlock")["cidr"]))
	return err == nil && prefix.Contains(netip.MustParseAddr(ambient.ProbeAddress))
}

// checkWaypointReachesPods is about policies that let the callers of a pod in, and not the waypoint that calls in their place.
func checkWaypointReachesPods(s *workloadSet) []setFinding {
	network := ambientNetwork{s.ambient}
	return s.ambient.each("NetworkPolicy", func(n *objectFacts) []setFinding {
		if !limitsIngress(n.spec) || n.spec["ingress"] == nil {
			return nil
		}
		pods, _ := network.enrolledPods(n)
		for _, pod := range pods {
			for _, service := range s.servicesOf(pod) {
				waypoint, ok := s.ambient.waypointFor(service)
				if !ok || network.allowsWaypoint(n.scope, pod, waypoint) {
					continue
				}
				return []setFinding{n.newFinding("spec.ingress", fmt.Sprintf("no rule lets waypoint %s/%s reach %s, which it calls in the place of the clients", waypoint.Namespace, waypoint.Name, pod.ref))}
			}
		}
		return nil
	})
}

// allowsWaypoint reports whether a policy that selects the pod lets the pods of a waypoint in.
func (a ambientNetwork) allowsWaypoint(scope string, pod *Summary, waypoint ambient.Reference) bool {
	labels := map[string]string{ambient.GatewayName: waypoint.Name, "gateway.istio.io/managed": "istio.io-mesh-controller"}
	namespace := map[string]string{"kubernetes.io/metadata.name": waypoint.Namespace}
	if ns := a.namespaceByName[waypoint.Namespace]; ns != nil {
		namespace = withName(ns)
	}
	for _, n := range a.objects["NetworkPolicy"] {
		if n.scope != scope || !selectsLabels(podmap.MapAt(n.spec, "podSelector"), pod.labels) {
			continue
		}
		for _, rule := range podmap.Maps(n.spec["ingress"]) {
			from := podmap.Maps(rule["from"])
			if len(from) == 0 || slices.ContainsFunc(from, func(peer map[string]any) bool {
				if peer["ipBlock"] != nil || !selectsLabels(podmap.MapAt(peer, "podSelector"), labels) {
					return false
				}
				if selector, ok := peer["namespaceSelector"].(map[string]any); ok {
					return selectsLabels(selector, namespace)
				}
				return waypoint.Namespace == scope
			}) {
				return true
			}
		}
	}
	return false
}

// checkCiliumTunnel is about policies of Cilium, which name the ports of a pod as NetworkPolicies do. A policy with rules of layer 7 sees nothing but
// the tunnel as well.
func checkCiliumTunnel(s *workloadSet) []setFinding {
	return s.ambient.each("CiliumNetworkPolicy", func(o *objectFacts) []setFinding {
		if !s.ambient.has(o.scope) {
			return nil
		}
		for _, direction := range []string{"ingress", "egress"} {
			for i, rule := range podmap.Maps(o.spec[direction]) {
				cluster := rule["fromEndpoints"] != nil || rule["toEndpoints"] != nil || rule["fromEntities"] != nil || direction == "ingress"
				if ports := ciliumPorts(rule); cluster && len(ports) > 0 && !slices.Contains(ports, "15008") && !slices.Contains(ports, "53") {
					return []setFinding{o.newFinding(fmt.Sprintf("spec.%s[%d].toPorts", direction, i),
						fmt.Sprintf("connections of the mesh use port %d, which the rule does not allow", ambient.TunnelPort))}
				}
			}
		}
		return nil
	})
}

// ciliumPorts returns the ports of a rule.
func ciliumPorts(rule map[string]any) (out []string) {
	for _, to := range podmap.Maps(rule["toPorts"]) {
		for _, p := range podmap.Maps(to["ports"]) {
			out = append(out, textOf(p["port"]))
		}
	}
	return out
}
