// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"slices"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// openNetwork changes NetworkPolicies until the rules about them are silent. Each change opens what the finding is about, and nothing else.
func (m move) openNetwork() error {
	for range 200 {
		found, err := findings(m.tree, []string{m.namespace})
		if err != nil {
			return err
		}
		changed := false
		seen := map[string]bool{}
		for _, r := range found {
			if r.ResourceRef == nil || r.ResourceRef.Kind != "NetworkPolicy" || namespaceOf(r) != m.namespace || seen[r.ResourceRef.Name] {
				continue
			}
			seen[r.ResourceRef.Name] = true
			for _, o := range m.in(m.namespace, networkPolicies) {
				if o.name == r.ResourceRef.Name {
					changed = m.openPolicy(o, r) || changed
				}
			}
		}
		if !changed {
			break
		}
	}
	return m.openForWaypoint()
}

func tunnelPort() map[string]any {
	return map[string]any{"port": int64(ambient.TunnelPort), "protocol": "TCP"}
}

func waypointPods(name string) map[string]any {
	return map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{ambient.GatewayName: name}}}
}

// openPolicy follows one finding about a policy.
func (m move) openPolicy(o *object, r result.Result) bool {
	value := podmap.CopyMap(m.current(o))
	spec := child(value, "spec")
	switch r.Tags[result.TagCode] {
	case "PR919", "PR920":
		at := workload.ParseField(r.Field.Path) // spec, ingress or egress, index, ports
		rules, _ := spec[text(at[1])].([]any)
		i, _ := at[2].(int)
		rule, _ := rules[i].(map[string]any)
		ports, _ := rule["ports"].([]any)
		rule["ports"] = append(ports, any(tunnelPort()))
	case "PR921":
		rules, _ := spec["ingress"].([]any)
		spec["ingress"] = append(rules, map[string]any{"from": []any{map[string]any{"ipBlock": map[string]any{"cidr": ambient.ProbeAddress + "/32"}}}})
	case "PR922":
		peer := waypointPods(m.waypointName(m.namespace).Name)
		if other := m.waypointName(m.namespace).Namespace; other != m.namespace {
			peer["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": other}}
		}
		rules, _ := spec["ingress"].([]any)
		spec["ingress"] = append(rules, map[string]any{"from": []any{peer}, "ports": []any{tunnelPort()}})
	default:
		return false
	}
	m.change(o, value)
	return true
}

// openForWaypoint adds what the waypoint itself needs where policies limit all pods of the namespace: it accepts the tunnel, and calls any pod.
// Policies of pods are to be open for the waypoint before it is there, which the rules find when its label is.
func (m move) openForWaypoint() error {
	if m.needsWaypoint(m.namespace) == nil {
		return nil
	}
	waypoint := m.waypointName(m.namespace)
	var first *object
	for _, n := range m.in(m.namespace, networkPolicies) {
		if n.name == waypoint.Name {
			return nil
		}
		selector := podmap.MapAt(n.spec, "podSelector")
		if first == nil && len(selector) == 0 {
			first = n
		}
		if m.limitsPods(n) && !opensWaypoint(podmap.MapAt(m.current(n), "spec"), waypoint.Name) {
			value := podmap.CopyMap(m.current(n))
			spec := child(value, "spec")
			rules, _ := spec["ingress"].([]any)
			spec["ingress"] = append(rules, map[string]any{"from": []any{waypointPods(waypoint.Name)}, "ports": []any{tunnelPort()}})
			m.change(n, value)
		}
		if waypoint.Namespace == m.namespace {
			letOutToWaypoint(m.tree, n, waypoint.Name)
		}
	}
	if first == nil || waypoint.Namespace != m.namespace {
		return nil
	}
	meta := map[string]any{"name": waypoint.Name}
	if first.ownNamespace {
		meta["namespace"] = m.namespace
	}
	m.add(first, map[string]any{
		"apiVersion": first.apiVersion, "kind": first.kind, "metadata": meta,
		"spec": map[string]any{
			"podSelector": map[string]any{"matchLabels": map[string]any{ambient.GatewayName: waypoint.Name}},
			"policyTypes": []any{"Ingress", "Egress"},
			"ingress":     []any{map[string]any{"ports": []any{tunnelPort()}}},
			"egress":      []any{map[string]any{}},
		},
	})
	return nil
}

// letOutToWaypoint adds the waypoint to the peers of egress rules that name pods of its namespace: ztunnel connects to the waypoint in their
// place. Source: build_request in src/proxy/outbound.rs of ztunnel.
func letOutToWaypoint(t *tree, n *object, waypoint string) {
	value := podmap.CopyMap(t.current(n))
	changed := false
	for _, rule := range podmap.Maps(child(value, "spec")["egress"]) {
		peers, _ := rule["to"].([]any)
		isLetOut := slices.ContainsFunc(podmap.Maps(peers), func(peer map[string]any) bool {
			all, isSet := peer["podSelector"].(map[string]any)
			labels := podmap.StringMap(podmap.MapAt(all, "matchLabels"))
			return peer["namespaceSelector"] == nil && isSet && (len(all) == 0 || labels[ambient.GatewayName] == waypoint)
		})
		if !isLetOut && slices.ContainsFunc(podmap.Maps(peers), func(peer map[string]any) bool { return selectsWorkload(t, n.namespace, peer) }) {
			rule["to"] = append(peers, any(waypointPods(waypoint)))
			changed = true
		}
	}
	if changed {
		t.change(n, value)
	}
}

// selectsWorkload reports whether a peer selects pods of its own namespace by their labels.
func selectsWorkload(t *tree, namespace string, peer map[string]any) bool {
	labels := podmap.StringMap(podmap.MapAt(peer, "podSelector", "matchLabels"))
	return peer["namespaceSelector"] == nil && len(labels) > 0 &&
		slices.ContainsFunc(t.workloads(namespace), func(p podOf) bool { return hasLabels(p.podLabels, labels) })
}

// limitsPods reports whether a policy has ingress rules with peers for pods of the namespace.
func (m move) limitsPods(n *object) bool {
	selector := podmap.StringMap(podmap.MapAt(n.spec, "podSelector", "matchLabels"))
	peers := slices.ContainsFunc(podmap.Maps(n.spec["ingress"]), func(rule map[string]any) bool {
		return slices.ContainsFunc(podmap.Maps(rule["from"]), func(peer map[string]any) bool { return peer["ipBlock"] == nil })
	})
	return peers && podmap.MapAt(n.spec, "podSelector")["matchExpressions"] == nil &&
		slices.ContainsFunc(m.workloads(m.namespace), func(p podOf) bool { return hasLabels(p.podLabels, selector) })
}

// opensWaypoint reports whether an ingress rule lets the waypoint in, or everything at the tunnel's port.
func opensWaypoint(spec map[string]any, name string) bool {
	return slices.ContainsFunc(podmap.Maps(spec["ingress"]), func(rule map[string]any) bool {
		if len(podmap.Maps(rule["from"])) == 0 {
			return true
		}
		return slices.ContainsFunc(podmap.Maps(rule["from"]), func(peer map[string]any) bool {
			labels := podmap.StringMap(podmap.MapAt(peer, "podSelector", "matchLabels"))
			all, any := peer["podSelector"].(map[string]any)
			return labels[ambient.GatewayName] == name || any && len(all) == 0 && peer["namespaceSelector"] == nil
		})
	})
}
