// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"istio.io/istio/pkg/util/sets"
	"istio.io/istio/pkg/workloadapi"
	"istio.io/istio/pkg/workloadapi/security"
)

// atZtunnel applies the Authorizations that istiod sends to the ztunnel of a pod. The evaluation follows src/rbac.rs and
// src/state.rs of ztunnel: policies of the namespace and of the mesh, and those that the workload names; a DENY that matches rejects, and so
// does an ALLOW policy if none matches.
func (s *state) atZtunnel(d *Decision, pod *corev1.Pod, conn connection) error {
	d.Proxies = append(d.Proxies, "ztunnel")
	workload, err := s.workload(pod)
	if err != nil {
		return err
	}
	restricted, allowed := false, false
	for _, p := range s.server.AmbientIndex.Policies(nil) {
		a := p.Authorization
		named := a.Scope == security.Scope_WORKLOAD_SELECTOR && slices.Contains(workload.AuthorizationPolicies, a.Namespace+"/"+a.Name)
		if !named && a.Scope != security.Scope_GLOBAL && (a.Scope != security.Scope_NAMESPACE || a.Namespace != pod.Namespace) || a.DryRun {
			continue
		}
		matches := authorizes(a, conn)
		if a.Action == security.Action_DENY && matches {
			d.reject("ztunnel", "denied by "+a.Namespace+"/"+a.Name)
			return nil
		}
		if a.Action == security.Action_ALLOW {
			restricted, allowed = true, allowed || matches
		}
	}
	if restricted && !allowed {
		d.reject("ztunnel", "no ALLOW policy matches")
	}
	return nil
}

func (s *state) workload(pod *corev1.Pod) (*workloadapi.Workload, error) {
	infos, _ := s.server.AmbientIndex.AddressInformation(sets.New("/" + pod.Status.PodIP))
	for _, info := range infos {
		if w := info.GetWorkload(); w != nil && w.Name == pod.Name && w.Namespace == pod.Namespace {
			return w, nil
		}
	}
	return nil, fmt.Errorf("istiod sends no workload for pod %s/%s", pod.Namespace, pod.Name)
}

// authorizes reports whether a connection matches a policy: any of its groups, all rules of one, any match of a rule. An empty match matches
// nothing, but a rule without matches matches all.
func authorizes(a *security.Authorization, conn connection) bool {
	return some(a.Groups, func(g *security.Group) bool {
		return every(g.Rules, func(r *security.Rules) bool {
			return len(r.Matches) == 0 || some(r.Matches, func(m *security.Match) bool { return matches(m, conn) })
		})
	})
}

func matches(m *security.Match, conn connection) bool {
	lists := []struct{ some, match bool }{
		listed(m.DestinationIps, m.NotDestinationIps, func(a *security.Address) bool { return in(a, conn.to) }),
		listed(m.SourceIps, m.NotSourceIps, func(a *security.Address) bool { return in(a, conn.ip) }),
		listed(m.DestinationPorts, m.NotDestinationPorts, func(p uint32) bool { return p == conn.port }),
		listed(m.ServiceAccounts, m.NotServiceAccounts, func(s *security.ServiceAccountMatch) bool {
			return conn.account != "" && s.Namespace == conn.namespace && s.ServiceAccount == conn.account
		}),
		listed(m.Principals, m.NotPrincipals, func(s *security.StringMatch) bool {
			id, ok := strings.CutPrefix(conn.identity(), "spiffe://")
			return ok && matchText(s, id)
		}),
		listed(m.Namespaces, m.NotNamespaces, func(s *security.StringMatch) bool { return matchText(s, conn.namespace) }),
	}
	given := false
	for _, l := range lists {
		if !l.match {
			return false
		}
		given = given || l.some
	}
	return given
}

// listed reports whether there are conditions, and whether they hold: one of the first list, and none of the second.
func listed[T any](yes, no []T, is func(T) bool) struct{ some, match bool } {
	return struct{ some, match bool }{len(yes)+len(no) > 0, (len(yes) == 0 || some(yes, is)) && !some(no, is)}
}

func matchText(m *security.StringMatch, have string) bool {
	switch p := m.MatchType.(type) {
	case *security.StringMatch_Exact:
		return have == p.Exact
	case *security.StringMatch_Prefix:
		return strings.HasPrefix(have, p.Prefix)
	case *security.StringMatch_Suffix:
		return strings.HasSuffix(have, p.Suffix)
	}
	return have != "" // presence
}

func in(a *security.Address, ip netip.Addr) bool {
	network, ok := netip.AddrFromSlice(a.Address)
	return ok && within(network.String(), a.Length, ip)
}

func within(network string, bits uint32, ip netip.Addr) bool {
	prefix, err := netip.ParsePrefix(fmt.Sprintf("%s/%d", network, bits))
	return err == nil && prefix.Contains(ip)
}
