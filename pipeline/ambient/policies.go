// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
)

// maxTargets is the number of targetRefs that a policy may have. Source: security/v1beta1/authorization_policy.proto of istio.io/api.
const maxTargets = 16

// isReplaced reports whether a policy of a namespace with a waypoint gets a copy there.
func (t *tree) isReplaced(o *object) bool {
	return t.appliesToPods(o) && isReplaceable(t, o, o.namespace)
}

// isReplaceable reports whether the waypoint of a namespace has to enforce a policy that is for pods there. A DENY policy about ports alone stays with
// ztunnel, which sees the same port as a sidecar.
func isReplaceable(t *tree, o *object, namespace string) bool {
	if len(ambient.Targets(o.spec)) > 0 || o.annotations[copyOf] != "" || isWaypointOnly(o) {
		return false
	}
	if localAuthorizer(t, o) != "" {
		return false
	}
	if o.key() != authorizationPolicies {
		return o.key() != telemetries || o.spec["selector"] != nil
	}
	action := ambient.Action(o.spec)
	layer7 := len(ambient.Layer7Fields(o.spec)) > 0
	if (action == "ALLOW" || action == "DENY") && !layer7 && passesNoWaypoint(t, o, namespace) {
		return false
	}
	return action != "DENY" || layer7 || len(ambient.PeerFields(o.spec)) > 0
}

// passesNoWaypoint reports whether calls to the pods that a policy selects come from the clients themselves: no Service with an address selects
// the pods. ztunnel enforces a policy of layer 4 for them as it is.
func passesNoWaypoint(t *tree, o *object, namespace string) bool {
	selector := withoutSidecarLabel(selectorOf(o))
	return len(selector) > 0 && !slices.ContainsFunc(t.services(namespace), func(s *object) bool {
		return hasLabels(podmap.StringMap(s.spec["selector"]), selector) ||
			slices.ContainsFunc(t.selected(s), func(p podOf) bool { return hasLabels(p.podLabels, selector) })
	})
}

// isWaypointOnly reports whether a policy is one that the step enforce wrote.
func isWaypointOnly(o *object) bool { return strings.HasSuffix(o.name, onlySuffix) }

// replacedPolicies returns the policies of a namespace that waypoints are going to enforce.
func replacedPolicies(t *tree, namespace string) (out []*object) {
	for _, key := range []string{authorizationPolicies, requestAuthentications, wasmPlugins, telemetries} {
		for _, o := range t.in(namespace, key) {
			if t.isReplaced(o) {
				out = append(out, o)
			}
		}
	}
	return out
}

// copies returns the policy copied for the waypoint of a namespace, and what differs.
func (m move) copies(o *object, waypoint ambient.Reference) (out []map[string]any, notes []Note) {
	if fields := destinationAddresses(o.spec); len(fields) > 0 {
		return nil, []Note{m.note(o, fields[0], Change, "a waypoint compares destination.ip with the address of the Service and not of the pod")}
	}
	base := podmap.CopyMap(o.value)
	delete(base, "status")
	spec := child(base, "spec")
	selector := withoutSidecarLabel(podmap.StringMap(podmap.MapAt(spec, "selector")["matchLabels"]))
	delete(spec, "selector")
	child(child(base, "metadata"), "annotations")[copyOf] = copyName(o, m.namespace)
	if o.namespace == m.options.RootNamespace && isForClass(o) {
		_, notes = m.targets(o, selector)
		return named(o, []map[string]any{withTargets(base, classTarget())}), notes
	}
	if o.namespace != m.namespace {
		child(base, "metadata")["namespace"] = m.namespace
	}
	services, notes := m.targets(o, selector)
	ports := len(ambient.PortFields(o.spec)) > 0
	if len(selector) == 0 && !ports && waypoint.Namespace == o.namespace {
		return named(o, []map[string]any{withTargets(base, gatewayTarget(waypoint.Name))}), notes
	}
	if len(services) == 0 {
		return nil, notes
	}
	groups := groupByPorts(m.tree, base, services)
	action := ambient.Action(o.spec)
	for _, g := range groups {
		if (action == "DENY" || action == "CUSTOM") && podmap.MapAt(g.policy, "spec")["rules"] == nil {
			continue // no rule matches a port of these Services, and Istio refuses such a policy without rules
		}
		for part := range slices.Chunk(g.services, maxTargets) {
			var targets []any
			for _, s := range part {
				targets = append(targets, map[string]any{"group": "", "kind": "Service", "name": s.name})
			}
			out = append(out, withTargets(g.policy, targets...))
		}
	}
	return named(o, out), notes
}

// copyName is what the annotation of a copy of a policy in a namespace has: its name, with its namespace if that is another one.
func copyName(o *object, namespace string) string {
	if o.namespace != namespace && !isForClass(o) {
		return o.namespace + "/" + o.name
	}
	return o.name
}

func classTarget() map[string]any {
	return map[string]any{"group": ambient.GatewayGroup, "kind": "GatewayClass", "name": ambient.WaypointClass}
}

func gatewayTarget(name string) map[string]any {
	return map[string]any{"group": ambient.GatewayGroup, "kind": "Gateway", "name": name}
}

func withTargets(policy map[string]any, targets ...any) map[string]any {
	out := podmap.CopyMap(policy)
	child(out, "spec")["targetRefs"] = podmap.CopyValue(targets)
	return out
}

// named sets the names of copies.
func named(o *object, copies []map[string]any) []map[string]any {
	for i, c := range copies {
		name := o.name + copySuffix
		if text(podmap.MapAt(c, "metadata")["namespace"]) != text(podmap.MapAt(o.value, "metadata")["namespace"]) {
			name = o.name + "-root" + copySuffix // the namespace may have one of the same name
		}
		if i > 0 {
			name += "-" + strconv.Itoa(i+1)
		}
		child(c, "metadata")["name"] = name
	}
	return copies
}

// targets returns the Services whose pods a policy is for, with a note for each pod and Service for which that is not the same.
func (m move) targets(o *object, selector map[string]string) (services []*object, notes []Note) {
	reached := map[*object]bool{}
	for _, s := range m.services(m.namespace) {
		inside, outside := 0, ""
		if len(selector) > 0 && hasLabels(podmap.StringMap(s.spec["selector"]), selector) {
			inside++ // whatever pods it selects have the labels
		}
		for _, p := range m.selected(s) {
			if hasLabels(p.podLabels, selector) {
				inside++
				reached[p.object] = true
			} else {
				outside = p.String()
			}
		}
		if inside == 0 {
			continue
		}
		services = append(services, s)
		if outside != "" {
			notes = append(notes, m.note(o, "spec.selector", Change, fmt.Sprintf("%s also selects %s, which the policy is not for: the copy is for all requests to the Service", s, outside)))
		}
	}
	for _, p := range m.workloads(m.namespace) {
		if hasLabels(p.podLabels, selector) && !reached[p.object] && len(allPorts(p)) > 0 && !isKept(m.tree, o, p) {
			notes = append(notes, m.note(o, "spec.selector", Change, fmt.Sprintf("%s has no Service with an address: its requests pass no waypoint, and the policy ends for it", p.object)))
		}
	}
	if len(selector) > 0 && len(services) == 0 && len(notes) == 0 {
		notes = append(notes, m.note(o, "spec.selector", Change, "no Service among the files selects its pods: the waypoint needs one as the target"))
	}
	return services, notes
}

// allPorts returns the ports that the containers of a pod declare.
func allPorts(p podOf) (out []any) {
	for _, c := range podmap.Maps(p.podSpec["containers"]) {
		ports, _ := c["ports"].([]any)
		out = append(out, ports...)
	}
	return out
}

// portGroup is a policy with the ports of some Services.
type portGroup struct {
	policy   map[string]any
	services []*object
}

// groupByPorts returns the policy for Services with the ports that a waypoint sees: those of the Service and not of the pod.
func groupByPorts(t *tree, policy map[string]any, services []*object) (out []portGroup) {
	for _, s := range services {
		mapped := podmap.CopyMap(policy)
		portMapper{s, t.selected(s)}.mapRules(podmap.MapAt(mapped, "spec"))
		i := slices.IndexFunc(out, func(g portGroup) bool { return reflect.DeepEqual(g.policy, mapped) })
		if i >= 0 && slices.ContainsFunc(out[i].services, func(have *object) bool { return have.name == s.name }) {
			continue // another file has it too
		}
		if i < 0 {
			out, i = append(out, portGroup{policy: mapped}), len(out)
		}
		out[i].services = append(out[i].services, s)
	}
	return out
}

// portMapper replaces ports of pods by those of a Service that lead to them.
type portMapper struct {
	service *object
	pods    []podOf // that the Service selects
}

// mapRules changes the rules of a policy. A rule that matches no port of the Service is left out.
func (m portMapper) mapRules(spec map[string]any) {
	rules, _ := spec["rules"].([]any)
	var kept []any
	for _, rule := range podmap.Maps(rules) {
		if m.mapRule(rule) {
			kept = append(kept, any(rule))
		}
	}
	if len(rules) > 0 {
		spec["rules"] = kept
		if len(kept) == 0 {
			delete(spec, "rules")
		}
	}
}

// mapRule reports whether the rule can match a request to the Service.
func (m portMapper) mapRule(rule map[string]any) bool {
	to, _ := rule["to"].([]any)
	var operations []any
	matchesAll := false
	for _, one := range podmap.Maps(to) {
		operation := podmap.MapAt(one, "operation")
		if m.mapList(operation, "ports", "notPorts") {
			operations = append(operations, any(one))
			matchesAll = matchesAll || len(operation) == 0
		}
	}
	if matchesAll { // Istio refuses an empty operation
		delete(rule, "to")
	} else if len(to) > 0 {
		if len(operations) == 0 {
			return false
		}
		rule["to"] = operations
	}
	when, _ := rule["when"].([]any)
	var conditions []any
	for _, one := range podmap.Maps(when) {
		if text(one["key"]) == "destination.port" {
			if !m.mapList(one, "values", "notValues") {
				return false
			}
			if one["values"] == nil && one["notValues"] == nil {
				continue
			}
		}
		conditions = append(conditions, any(one))
	}
	if len(when) > 0 {
		rule["when"] = conditions
		if len(conditions) == 0 {
			delete(rule, "when")
		}
	}
	return true
}

// mapList maps one list of ports that have to match and one of those that must not, and reports whether the first can.
func (m portMapper) mapList(fields map[string]any, yes, no string) bool {
	for _, key := range []string{yes, no} {
		list := textList(fields[key])
		if len(list) == 0 {
			continue
		}
		mapped := m.servicePorts(list)
		switch {
		case len(mapped) > 0:
			fields[key] = mapped
		case key == yes:
			return false
		default:
			delete(fields, key)
		}
	}
	return true
}

// servicePorts returns the ports of a Service that lead to ports of its pods.
func (m portMapper) servicePorts(targets []string) (out []any) {
	for _, p := range podmap.Maps(m.service.spec["ports"]) {
		port, _ := number(p["port"])
		target := port
		if n, ok := number(p["targetPort"]); ok && n != 0 {
			target = n
		} else if name := text(p["targetPort"]); name != "" {
			target = namedPort(m.pods, name)
		}
		if slices.Contains(targets, strconv.FormatInt(target, 10)) {
			out = append(out, strconv.FormatInt(port, 10))
		}
	}
	return out
}

func namedPort(pods []podOf, name string) int64 {
	for _, p := range pods {
		for _, c := range podmap.Maps(p.podSpec["containers"]) {
			for _, port := range podmap.Maps(c["ports"]) {
				if text(port["name"]) == name {
					n, _ := number(port["containerPort"])
					return n
				}
			}
		}
	}
	return 0
}

// destinationAddresses returns the paths of conditions on the address of the pod.
func destinationAddresses(spec map[string]any) (out []string) {
	for i, rule := range podmap.Maps(spec["rules"]) {
		for j, when := range podmap.Maps(rule["when"]) {
			if text(when["key"]) == "destination.ip" {
				out = append(out, fmt.Sprintf("spec.rules[%d].when[%d].key", i, j))
			}
		}
	}
	return out
}

// limited returns an old policy as it is while pods move: only pods with a sidecar enforce it, and they accept what the waypoint has
// checked. ok is false if it is so already.
func limited(o *object, principal, serviceAccount string) (map[string]any, bool) {
	if selectorOf(o)[ambient.SidecarLabel] != "" {
		return nil, false
	}
	out := podmap.CopyMap(o.value)
	spec := child(out, "spec")
	child(child(spec, "selector"), "matchLabels")[ambient.SidecarLabel] = sidecarValue
	switch rules, _ := spec["rules"].([]any); ambient.Action(o.spec) {
	case "ALLOW":
		spec["rules"] = append(rules, map[string]any{"from": []any{map[string]any{"source": map[string]any{"principals": []any{principal}}}}})
	case "DENY", "AUDIT":
		for _, rule := range podmap.Maps(spec["rules"]) {
			exempt(rule, principal, serviceAccount)
		}
	}
	return out, true
}

// exempt makes a rule of a DENY or AUDIT policy not match the waypoint.
func exempt(rule map[string]any, principal, serviceAccount string) {
	from, _ := rule["from"].([]any)
	if len(from) == 0 {
		rule["from"] = []any{map[string]any{"source": map[string]any{"notPrincipals": []any{principal}}}}
		return
	}
	for _, one := range podmap.Maps(from) {
		source := child(one, "source")
		key, value := "notPrincipals", principal
		switch {
		case source["serviceAccounts"] != nil:
			continue // the waypoint's is none of them
		case source["notServiceAccounts"] != nil: // Istio refuses principals beside them
			key, value = "notServiceAccounts", serviceAccount
		}
		list, _ := source[key].([]any)
		source[key] = append(list, any(value))
	}
}

// principalOf is the identity of a waypoint. In policies, cluster.local is the trust domain of the mesh.
func principalOf(waypoint ambient.Reference) string {
	return "cluster.local/ns/" + waypoint.Namespace + "/sa/" + waypoint.Name
}
