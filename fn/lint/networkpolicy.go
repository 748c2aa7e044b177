// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// discoveryPort is istiod's, with mutual TLS. Source: the table of ports on Istio's page of application requirements.
const discoveryPort = 15012

// checkEgressToControlPlane reports the first of the policies that keep a pod's proxy from istiod, with the number of pods.
func checkEgressToControlPlane(s *workloadSet) []setFinding {
	type blocked struct {
		first *Summary
		count int
	}
	by := map[*objectFacts]*blocked{}
	byScope := map[string][]*objectFacts{}
	for _, n := range s.objects["NetworkPolicy"] {
		if limitsEgress(n.spec) && n.scope != s.root {
			byScope[n.scope] = append(byScope[n.scope], n)
		}
	}
	for in, policies := range byScope {
		for _, pod := range s.index.byScope[in] {
			if !pod.proxy {
				continue
			}
			var first *objectFacts
			allowed := false
			for _, n := range policies {
				if !selectsLabels(podmap.MapAt(n.spec, "podSelector"), pod.labels) {
					continue
				}
				if first == nil {
					first = n
				}
				allowed = allowed || slices.ContainsFunc(podmap.Maps(n.spec["egress"]), allowsDiscovery)
			}
			if first == nil || allowed {
				continue
			}
			if by[first] == nil {
				by[first] = &blocked{first: pod}
			}
			by[first].count++
		}
	}
	var out []setFinding
	for _, n := range s.objects["NetworkPolicy"] {
		b := by[n]
		if b == nil {
			continue
		}
		who := "the proxy of " + b.first.ref.String()
		if b.count > 1 {
			who = fmt.Sprintf("the proxies of %d workloads, such as %s,", b.count, b.first.ref)
		}
		field := "spec.egress"
		if n.spec["egress"] == nil {
			field = "spec.policyTypes"
		}
		out = append(out, n.newFinding(field, fmt.Sprintf("no egress rule lets %s reach istiod at TCP port %d in another namespace", who, discoveryPort)))
	}
	return out
}

// limitsEgress reports whether a policy is about egress; without policyTypes it is where it has egress rules.
func limitsEgress(spec map[string]any) bool {
	types, ok := spec["policyTypes"].([]any)
	if !ok {
		return spec["egress"] != nil
	}
	return slices.ContainsFunc(types, func(v any) bool { return textOf(v) == "Egress" })
}

// allowsDiscovery reports whether an egress rule may let traffic to istiod in another namespace through. A peer with a podSelector alone
// is of the policy's own namespace.
func allowsDiscovery(rule map[string]any) bool {
	ports, peers := podmap.Maps(rule["ports"]), podmap.Maps(rule["to"])
	port := len(ports) == 0 || slices.ContainsFunc(ports, func(p map[string]any) bool {
		if protocol := textOf(p["protocol"]); protocol != "" && protocol != "TCP" {
			return false
		}
		first, isNumber := integerOf(p["port"])
		last, isRange := integerOf(p["endPort"])
		if !isRange {
			last = first
		}
		return !isNumber || first <= discoveryPort && discoveryPort <= last
	})
	peer := len(peers) == 0 || slices.ContainsFunc(peers, func(p map[string]any) bool { return p["namespaceSelector"] != nil || p["ipBlock"] != nil })
	return port && peer
}
