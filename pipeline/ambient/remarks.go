// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
)

// gaps describes where enforcement differs while a namespace moves.
func gaps(t *tree, n *Namespace, callers []string) (out []string) {
	has := func(step string) bool {
		return slices.ContainsFunc(n.Steps, func(s PlannedStep) bool { return s.Name == step })
	}
	if has("limit") {
		out = append(out, "Between the restart and the removal of the old policies, "+atZtunnel(t, n.Name)+
			" The step limit avoids it: only pods with a sidecar enforce old policies, and they accept what the waypoint has checked.")
	}
	if has("cleanup") {
		out = append(out, withoutService(t, n.Name)...)
	}
	if has("enforce") {
		out = append(out, "Sidecars, direct calls to pods and plain connections from outside of the mesh do not pass the waypoint, so that its "+
			"policies do not apply to them. The step enforce closes this: ztunnel lets only the waypoint in. Make it when all callers are in ambient "+
			"mode; it rejects callers with a sidecar, and for good those outside of the mesh, also where a policy was written for them.")
		if !hasGateway(t, n.Name) {
			out = append(out, "If an ingress gateway that is not among the files calls the namespace, label it istio.io/ingress-use-waypoint=true: otherwise "+
				"its requests pass the policies by, and the step enforce rejects them.")
		}
	}
	if len(callers) > 0 && n.Waypoint != "" {
		out = append(out, "Its policies name callers in "+strings.Join(callers, ", ")+": move these first.")
	}
	return out
}

// withoutService names the pods whose requests pass no waypoint, and the policies that end for them.
func withoutService(t *tree, namespace string) (out []string) {
	old := append(replacedPolicies(t, namespace), rootPolicies(t, namespace)...)
	done := map[string]bool{}
	for _, p := range t.workloads(namespace) {
		if done[p.name] || slices.ContainsFunc(t.services(namespace), func(s *object) bool { return hasLabels(p.podLabels, podmap.StringMap(s.spec["selector"])) }) {
			continue
		}
		done[p.name] = true
		var ending []string
		for _, o := range old {
			selector := withoutSidecarLabel(selectorOf(o))
			if o.key() == authorizationPolicies && hasLabels(p.podLabels, selector) && !isKept(t, o, p) {
				ending = append(ending, o.name)
			}
		}
		if len(ending) > 0 {
			out = append(out, fmt.Sprintf("%s has no Service with an address: its requests pass no waypoint, and from the restart on nothing enforces %s for it. "+
				"Give it a Service, or a policy without conditions on requests.", p.object, strings.Join(ending, ", ")))
		}
	}
	return out
}

// atZtunnel describes what ztunnel would make of the policies of a namespace that the waypoint is going to enforce.
func atZtunnel(t *tree, namespace string) string {
	var parts []string
	names := map[string][]string{}
	for _, o := range append(replacedPolicies(t, namespace), rootPolicies(t, namespace)...) {
		if o.key() != authorizationPolicies {
			continue
		}
		what := "would leave out conditions on requests, and deny more, of"
		action := ambient.Action(o.spec)
		switch {
		case action == "CUSTOM" || action == "AUDIT":
			what = "would not follow"
		case len(ambient.Layer7Fields(o.spec)) == 0:
			what = "would check the waypoint in the place of the client, of"
		case action == "ALLOW":
			what = "would leave out rules about requests, and reject what no other rule allows, of"
		case slices.ContainsFunc(podmap.Maps(o.spec["rules"]), ambient.MatchesNothing):
			what = "would apply rules about requests to nothing, and deny less, of"
		}
		names[what] = append(names[what], o.name)
	}
	for _, what := range podmap.SortedKeys(names) {
		parts = append(parts, what+" "+strings.Join(slices.Compact(names[what]), ", "))
	}
	if len(parts) == 0 {
		return "ztunnel would not follow the old policies."
	}
	return "ztunnel " + strings.Join(parts, "; it ") + "."
}

// remarks describes what the move changes without a finding about one object.
func remarks(t *tree, n *Namespace) (out []string) {
	if n.Workloads == 0 {
		out = append(out, "No workload of the namespace is among the files, so that its pods were not checked. Charts and kustomizations have to be rendered first.")
	}
	if names := patchedSidecars(t, n.Name); len(names) > 0 {
		out = append(out, fmt.Sprintf("Patches add a sidecar with sidecar.istio.io/status, for which ambient mode leaves the pods alone; remove it from %s.", strings.Join(names, ", ")))
	}
	if n.Waypoint == "" && n.Workloads > 0 {
		out = append(out, "Without a waypoint, ztunnel balances connections and not requests, does not retry, and reports metrics of TCP only: metrics and traces of requests end.")
	}
	limits := 0
	for _, p := range t.in(n.Name, networkPolicies) {
		if slices.ContainsFunc(podmap.Maps(p.spec["ingress"]), func(rule map[string]any) bool { return len(podmap.Maps(rule["ports"])) > 0 }) {
			limits++
		}
	}
	if limits > 0 {
		out = append(out, fmt.Sprintf("Ports of %s bind clients outside of the mesh only: through port %d, pods of the mesh reach every port. Limit these by "+
			"AuthorizationPolicies with ports.", counted(limits, "NetworkPolicy", "NetworkPolicies"), ambient.TunnelPort))
	}
	if slices.ContainsFunc(n.Open, func(note Note) bool { return note.Level == Stays }) {
		out = append(out, "VirtualServices that stay are followed by waypoints as an alpha feature. istio.io calls their subsets unsupported, although istiod configures them.")
	}
	return out
}

// beforeTheFirst is what the move of any namespace needs, whatever its files have.
const beforeTheFirst = "Before the first namespace moves: install ztunnel and the CNI plugin, and restart the pods that keep their sidecars, so that " +
	"they speak HBONE. Otherwise they cannot call moved pods where a PeerAuthentication is STRICT."

// countWorkloads returns the number of workloads of a namespace. Several files may hold one.
func countWorkloads(t *tree, namespace string) int {
	found := map[string]bool{}
	for _, o := range t.of[namespace] {
		if len(o.templates) > 0 {
			found[o.String()] = true
		}
	}
	return len(found)
}

// patchedSidecars returns the patches that write the annotation of pods with a sidecar. Which namespace a patch is for is not known: one in the
// directory of an object of the namespace is taken for one.
func patchedSidecars(t *tree, namespace string) (out []string) {
	dirs := map[string]bool{}
	for _, o := range t.of[namespace] {
		dirs[path.Dir(t.files[o.file].Path)] = true
	}
	for _, p := range t.options.Patches {
		if dirs[path.Dir(p.Path)] && (strings.Contains(p.Text, "sidecar.istio.io~1status") || strings.Contains(p.Text, "sidecar.istio.io/status")) {
			out = append(out, p.Path)
		}
	}
	return out
}
