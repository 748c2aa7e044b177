// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
)

// Step is one change on the way; all are made in their order.
type Step struct {
	// Name is what people call it by.
	Name string `json:"name"`
	// Title describes it.
	Title string `json:"title"`
	apply func(move) error
}

// move is the move of one namespace, in a tree with the steps before. Its steps add changes to the tree.
type move struct {
	*tree
	namespace string
}

// Steps are all steps in their order. Each is safe while the ones before it are in place, and leaves requests as they are.
var Steps = []Step{
	{"network", "Open NetworkPolicies for the tunnel, probes and waypoints", move.openNetwork},
	{"waypoint", "Add the waypoint", move.addWaypoint},
	{"routes", "Replace VirtualServices by HTTPRoutes, subsets by Services", move.replaceRoutes},
	{"policies", "Add copies of policies for the waypoint", move.copyPolicies},
	{"limit", "Let only pods with a sidecar enforce the old policies", move.limitPolicies},
	{"label", "Label the namespace and its pods for ambient mode", move.labelNamespace},
	{"sidecars", "Remove the sidecars, which restarts the pods", move.removeSidecars},
	{"cleanup", "Remove the old policies", move.removePolicies},
	{"enforce", "Let only the waypoint call the pods", move.enforceWaypoint},
}

// StepNames are the names of Steps.
func StepNames() (out []string) {
	for _, s := range Steps {
		out = append(out, s.Name)
	}
	return out
}

// Apply returns the files after a step, and what it could not write with the same meaning.
func Apply(files []File, o Options, name string) ([]File, []Note, error) {
	t, err := readTree(files, o)
	if err != nil {
		return nil, nil, err
	}
	return makeStep(t, name)
}

// makeStep makes a step for the namespaces that move.
func makeStep(t *tree, name string) ([]File, []Note, error) {
	i := slices.IndexFunc(Steps, func(s Step) bool { return s.Name == name })
	if i < 0 {
		return nil, nil, fmt.Errorf("there is no step %q; steps are %s", name, strings.Join(StepNames(), ", "))
	}
	for _, namespace := range t.moving() {
		if namespace == "" {
			return nil, nil, errors.New("some workloads name no namespace; set --namespace")
		}
		if err := Steps[i].apply(move{t, namespace}); err != nil {
			return nil, nil, fmt.Errorf("writing step %s of namespace %s: %w", name, namespace, err)
		}
	}
	next, err := t.apply()
	return next, t.notes, err
}

func (m move) addWaypoint() error {
	need := m.needsWaypoint(m.namespace)
	waypoint := m.waypointName(m.namespace)
	if need == nil || m.hasWaypoint(m.namespace) || waypoint.Namespace != m.namespace {
		return nil
	}
	after := m.namespaceObject(m.namespace)
	if after == nil {
		after = m.anchor(need)
	}
	m.add(after, map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
		"metadata": map[string]any{"name": waypoint.Name, "namespace": m.namespace, "labels": map[string]any{ambient.WaypointFor: "service"}},
		"spec": map[string]any{
			"gatewayClassName": ambient.WaypointClass,
			"listeners":        []any{map[string]any{"name": "mesh", "port": int64(ambient.TunnelPort), "protocol": "HBONE"}},
		},
	})
	return nil
}

// hasWaypoint reports whether the Gateway of the waypoint of a namespace is among the files.
func (t *tree) hasWaypoint(namespace string) bool {
	waypoint := t.waypointName(namespace)
	return slices.ContainsFunc(t.in(waypoint.Namespace, kubernetesGateways), func(g *object) bool { return g.name == waypoint.Name })
}

// anchor returns an object of the namespace that new objects are written after.
func (m move) anchor(otherwise *object) *object {
	if otherwise.namespace == m.namespace {
		return otherwise
	}
	if all := m.of[m.namespace]; len(all) > 0 {
		return all[0]
	}
	return otherwise
}

func (m move) replaceRoutes() error {
	done := map[string]bool{}
	for _, v := range m.in(m.namespace, virtualServices) {
		if !isForMesh(v) || changesNothing(m.tree, v) || !slices.ContainsFunc(textList(v.spec["hosts"]), func(host string) bool {
			return m.serviceOf(v, host) != nil || isServed(m.tree, v, host, m.namespace)
		}) {
			continue
		}
		c, err := convert(m.tree, v)
		if unequal := new(unequalError); errors.As(err, &unequal) {
			m.notes = append(m.notes, m.note(v, unequal.field, Stays, "it stays: "+unequal.message))
			continue
		}
		if err != nil {
			return err
		}
		for _, s := range c.services {
			if done[s.name] {
				continue
			}
			done[s.name] = true
			m.add(s.of, s.service)
			if s.rule != nil {
				m.add(s.of, s.rule)
			}
		}
		m.addLike(v, c.route)
		if rest, left := withoutMesh(v); left {
			m.change(v, rest)
		} else {
			m.remove(v)
		}
	}
	return nil
}

func (m move) copyPolicies() error {
	noteAuthorizers(m.tree, m.namespace)
	if m.needsWaypoint(m.namespace) == nil {
		return nil
	}
	waypoint := m.waypointName(m.namespace)
	for _, o := range append(replacedPolicies(m.tree, m.namespace), rootPolicies(m.tree, m.namespace)...) {
		keepAtPods(m.tree, o, m.namespace)
		if m.isCopied(o) {
			if o.namespace != m.namespace && isForClass(o) { // the copy is of another namespace's move
				_, notes := m.targets(o, nil)
				m.notes = append(m.notes, notes...)
			}
			continue
		}
		copies, notes := m.copies(o, waypoint)
		m.notes = append(m.notes, notes...)
		for _, c := range copies {
			if text(podmap.MapAt(c, "metadata")["namespace"]) == m.namespace && o.namespace != m.namespace {
				m.add(m.anchor(o), c)
			} else {
				m.addLike(o, c)
			}
		}
	}
	return nil
}

// rootPolicies returns the policies of the root namespace that the waypoint of another namespace is going to enforce.
func rootPolicies(t *tree, namespace string) (out []*object) {
	root := t.options.RootNamespace
	if namespace == root {
		return nil
	}
	for _, key := range []string{authorizationPolicies, requestAuthentications, wasmPlugins} {
		for _, o := range t.in(root, key) {
			if isMeshWide(o) && key != wasmPlugins && t.isReplaced(o) || selectsIn(t, o, namespace) && isReplaceable(t, o, namespace) {
				out = append(out, o)
			}
		}
	}
	return out
}

// keepAtPods writes policies for pods that no Service with an address selects: their requests pass no waypoint, and ztunnel enforces what the policy
// has of layer 4 as the sidecar did.
func keepAtPods(t *tree, o *object, namespace string) {
	for _, p := range t.workloads(namespace) {
		if !isKept(t, o, p) {
			continue
		}
		name := o.name + "-" + p.name
		exists := slices.ContainsFunc(t.in(namespace, authorizationPolicies), func(other *object) bool { return other.name == name })
		if exists || slices.ContainsFunc(t.pending, func(e edit) bool {
			return len(e.after) > 0 && text(podmap.MapAt(e.after[0], "metadata")["name"]) == name && e.at.namespace == namespace
		}) {
			continue
		}
		meta := map[string]any{"name": name}
		if p.ownNamespace {
			meta["namespace"] = namespace
		}
		if value, ok := o.annotations[dryRun]; ok {
			meta["annotations"] = map[string]any{dryRun: value}
		}
		spec := podmap.CopyMap(o.spec)
		labels := map[string]any{}
		for key, value := range p.podLabels {
			labels[key] = value
		}
		spec["selector"] = map[string]any{"matchLabels": labels}
		t.add(p.object, map[string]any{"apiVersion": o.apiVersion, "kind": o.kind, "metadata": meta, "spec": spec})
	}
}

// isKept reports whether ztunnel goes on to enforce a policy that is replaced at the waypoint for a pod that none of its requests reach by it.
func isKept(t *tree, o *object, p podOf) bool {
	action := ambient.Action(o.spec)
	selector := withoutSidecarLabel(selectorOf(o))
	if o.key() != authorizationPolicies || action != "ALLOW" && action != "DENY" || len(ambient.Layer7Fields(o.spec)) > 0 ||
		len(p.podLabels) == 0 || !hasLabels(p.podLabels, selector) {
		return false
	}
	return !slices.ContainsFunc(t.services(p.namespace), func(s *object) bool {
		return slices.ContainsFunc(t.selected(s), func(q podOf) bool { return hasLabels(q.podLabels, p.podLabels) })
	})
}

// selectsIn reports whether the selector of a policy of the root namespace selects pods of a namespace.
func selectsIn(t *tree, o *object, namespace string) bool {
	selector := withoutSidecarLabel(selectorOf(o))
	return len(selector) > 0 && slices.ContainsFunc(t.workloads(namespace), func(p podOf) bool { return hasLabels(p.podLabels, selector) })
}

// isCopied reports whether a copy of a policy for a namespace is among the files or the changes.
func (m move) isCopied(o *object) bool {
	name, in := copyName(o, m.namespace), m.namespace
	if name == o.name {
		in = o.namespace
	}
	for _, other := range m.in(in, o.key()) {
		if other.annotations[copyOf] == name {
			return true
		}
	}
	return slices.ContainsFunc(m.pending, func(e edit) bool {
		return len(e.after) > 0 && e.at.namespace == in && text(e.after[0]["kind"]) == o.kind &&
			text(podmap.MapAt(e.after[0], "metadata", "annotations")[copyOf]) == name
	})
}

func (m move) limitPolicies() error {
	waypoint := m.waypointName(m.namespace)
	principal := principalOf(waypoint)
	old := m.in(m.namespace, authorizationPolicies)
	for _, o := range rootPolicies(m.tree, m.namespace) {
		if o.key() == authorizationPolicies {
			principal = "*/sa/" + waypoint.Name
			old = append(old, o)
		}
	}
	for _, o := range old {
		who := principalOf(waypoint)
		if o.namespace != m.namespace {
			who = principal
		}
		if o.namespace == m.namespace && !m.isReplaced(o) || !m.isCopied(o) {
			continue
		}
		if value, ok := limited(o, who, waypoint.Namespace+"/"+waypoint.Name); ok {
			m.change(o, value)
			if ambient.Action(o.spec) == "CUSTOM" { // Istio refuses exceptions for a client there
				m.notes = append(m.notes, m.note(o, "spec.action", Info, "while pods move, the waypoint asks the authorizer and a sidecar asks it again, "+
					"about the waypoint as the client; the second answer must not depend on who calls"))
			}
		}
	}
	return nil
}

func (m move) labelNamespace() error {
	ns := m.namespaceObject(m.namespace)
	noteManagedMesh(m.tree, ns)
	waypoint := m.waypointName(m.namespace)
	wanted := []string{ambient.DataplaneMode + "=" + ambient.Ambient}
	if m.needsWaypoint(m.namespace) != nil {
		wanted = append(wanted, ambient.UseWaypoint+"="+waypoint.Name)
		if labelForGateways(m.tree, m.namespace) {
			wanted = append(wanted, ambient.IngressUseWaypoint+"=true")
		}
	}
	if ns == nil {
		message := "the Namespace is not among the files; label it where it is kept: " + strings.Join(wanted, " ")
		m.notes = append(m.notes, Note{Namespace: m.namespace, Level: Elsewhere, Message: message})
	} else {
		value := podmap.CopyMap(ns.value)
		labels := child(child(value, "metadata"), "labels")
		for _, one := range wanted {
			key, setting, _ := strings.Cut(one, "=")
			labels[key] = setting
		}
		m.change(ns, value)
	}
	for _, o := range m.of[m.namespace] {
		m.keepOut(o)
	}
	return nil
}

// keepOut labels the pods that have no sidecar by their own wish, so that they stay out of the mesh.
func (m move) keepOut(o *object) {
	value := m.current(o)
	changed := false
	for _, template := range slices.Concat(o.templates, o.custom) {
		labels := podmap.StringMap(podmap.MapAt(template.Pod, "metadata", "labels"))
		annotations := podmap.StringMap(podmap.MapAt(template.Pod, "metadata", "annotations"))
		if labels[injectKey] != "false" && annotations[injectKey] != "false" || labels[ambient.DataplaneMode] != "" {
			continue
		}
		pod := podmap.CopyMap(template.Pod)
		child(child(pod, "metadata"), "labels")[ambient.DataplaneMode] = ambient.None
		value = template.Write(value, pod)
		changed = true
	}
	if changed {
		m.change(o, value)
	}
}

func (m move) removePolicies() error {
	for _, o := range replacedPolicies(m.tree, m.namespace) {
		if m.isCopied(o) {
			m.remove(o)
		}
	}
	return nil
}

// enforceWaypoint adds a policy for ztunnel to each set of pods whose policies a waypoint enforces.
func (m move) enforceWaypoint() error {
	done := map[string]bool{}
	for _, key := range []string{authorizationPolicies, requestAuthentications, wasmPlugins} {
		for _, o := range m.in(m.namespace, key) {
			for _, target := range ambient.Targets(o.spec) {
				if o.annotations[copyOf] != "" && o.annotations[dryRun] != "true" { // a dry run enforces nothing
					admitWaypoint(m.tree, o, target, done)
				}
			}
		}
	}
	if slices.ContainsFunc(rootPolicies(m.tree, m.namespace), func(o *object) bool { return isForClass(o) && m.isCopied(o) }) {
		for _, s := range m.services(m.namespace) {
			admitWaypoint(m.tree, s, ambient.TargetReference{Kind: "Service", Name: s.name}, done)
		}
	}
	return nil
}

// admitWaypoint adds the policy by which ztunnel lets only the waypoint call the pods of a target: of a Service, or of the namespace.
func admitWaypoint(t *tree, o *object, target ambient.TargetReference, done map[string]bool) {
	namespace := o.namespace
	principal := principalOf(t.waypointName(namespace))
	spec := map[string]any{"action": "ALLOW", "rules": []any{map[string]any{"from": []any{map[string]any{"source": map[string]any{"principals": []any{principal}}}}}}}
	name := namespace
	if target.Kind == "Service" {
		i := slices.IndexFunc(t.services(namespace), func(s *object) bool { return s.name == target.Name })
		if i < 0 {
			return
		}
		name = target.Name
		spec["selector"] = map[string]any{"matchLabels": podmap.CopyMap(podmap.MapAt(t.services(namespace)[i].spec, "selector"))}
	}
	name += onlySuffix
	if done[name] || slices.ContainsFunc(t.in(namespace, authorizationPolicies), func(p *object) bool { return p.name == name }) {
		return
	}
	done[name] = true
	meta := map[string]any{"name": name}
	if o.ownNamespace {
		meta["namespace"] = namespace
	}
	t.add(o, map[string]any{"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": meta, "spec": spec})
}
