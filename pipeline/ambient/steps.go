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
	apply func(*tree, string) error
}

// Steps are all steps in their order. Each is safe while the ones before it are in place, and leaves requests as they are.
var Steps = []Step{
	{"network", "Open NetworkPolicies for the tunnel, probes and waypoints", (*tree).openNetwork},
	{"waypoint", "Add the waypoint", (*tree).addWaypoint},
	{"routes", "Replace VirtualServices by HTTPRoutes, subsets by Services", (*tree).replaceRoutes},
	{"policies", "Add copies of policies for the waypoint", (*tree).copyPolicies},
	{"limit", "Let only pods with a sidecar enforce the old policies", (*tree).limitPolicies},
	{"label", "Label the namespace and its pods for ambient mode", (*tree).labelNamespace},
	{"sidecars", "Remove the sidecars, which restarts the pods", (*tree).removeSidecars},
	{"cleanup", "Remove the old policies", (*tree).removePolicies},
	{"enforce", "Let only the waypoint call the pods", (*tree).enforceWaypoint},
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
		if err := Steps[i].apply(t, namespace); err != nil {
			return nil, nil, fmt.Errorf("writing step %s of namespace %s: %w", name, namespace, err)
		}
	}
	next, err := t.apply()
	return next, t.notes, err
}

func (t *tree) addWaypoint(namespace string) error {
	need := t.needsWaypoint(namespace)
	waypoint := t.waypointName(namespace)
	if need == nil || t.hasWaypoint(namespace) || waypoint.Namespace != namespace {
		return nil
	}
	after := t.namespaceObject(namespace)
	if after == nil {
		after = t.anchor(namespace, need)
	}
	t.add(after, map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
		"metadata": map[string]any{"name": waypoint.Name, "namespace": namespace, "labels": map[string]any{ambient.WaypointFor: "service"}},
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
func (t *tree) anchor(namespace string, otherwise *object) *object {
	if otherwise.namespace == namespace {
		return otherwise
	}
	if all := t.of[namespace]; len(all) > 0 {
		return all[0]
	}
	return otherwise
}

func (t *tree) replaceRoutes(namespace string) error {
	done := map[string]bool{}
	for _, v := range t.in(namespace, virtualServices) {
		if !isForMesh(v) || changesNothing(t, v) || !slices.ContainsFunc(textList(v.spec["hosts"]), func(host string) bool {
			return t.serviceOf(v, host) != nil || isServed(t, v, host, namespace)
		}) {
			continue
		}
		c, err := t.convert(v)
		if unequal := new(unequalError); errors.As(err, &unequal) {
			t.notes = append(t.notes, t.note(v, unequal.field, Stays, "it stays: "+unequal.message))
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
			t.add(s.of, s.service)
			if s.rule != nil {
				t.add(s.of, s.rule)
			}
		}
		t.addLike(v, c.route)
		if rest, left := withoutMesh(v); left {
			t.change(v, rest)
		} else {
			t.remove(v)
		}
	}
	return nil
}

func (t *tree) copyPolicies(namespace string) error {
	noteAuthorizers(t, namespace)
	if t.needsWaypoint(namespace) == nil {
		return nil
	}
	waypoint := t.waypointName(namespace)
	for _, o := range append(t.replacedPolicies(namespace), rootPolicies(t, namespace)...) {
		keepAtPods(t, o, namespace)
		if t.isCopied(o, namespace) {
			if o.namespace != namespace && isForClass(o) { // the copy is of another namespace's move
				_, notes := t.targets(o, namespace, nil)
				t.notes = append(t.notes, notes...)
			}
			continue
		}
		copies, notes := t.copies(o, namespace, waypoint)
		t.notes = append(t.notes, notes...)
		for _, c := range copies {
			if text(podmap.MapAt(c, "metadata")["namespace"]) == namespace && o.namespace != namespace {
				t.add(t.anchor(namespace, o), c)
			} else {
				t.addLike(o, c)
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
			if isMeshWide(o) && key != wasmPlugins && t.isReplaced(o) || t.selectsIn(o, namespace) && isReplaceable(t, o, namespace) {
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
func (t *tree) selectsIn(o *object, namespace string) bool {
	selector := withoutSidecarLabel(selectorOf(o))
	return len(selector) > 0 && slices.ContainsFunc(t.workloads(namespace), func(p podOf) bool { return hasLabels(p.podLabels, selector) })
}

// isCopied reports whether a copy of a policy for a namespace is among the files or the changes.
func (t *tree) isCopied(o *object, namespace string) bool {
	name, in := copyName(o, namespace), namespace
	if name == o.name {
		in = o.namespace
	}
	for _, other := range t.in(in, o.key()) {
		if other.annotations[copyOf] == name {
			return true
		}
	}
	return slices.ContainsFunc(t.pending, func(e edit) bool {
		return len(e.after) > 0 && e.at.namespace == in && text(e.after[0]["kind"]) == o.kind &&
			text(podmap.MapAt(e.after[0], "metadata", "annotations")[copyOf]) == name
	})
}

func (t *tree) limitPolicies(namespace string) error {
	waypoint := t.waypointName(namespace)
	principal := principalOf(waypoint)
	old := t.in(namespace, authorizationPolicies)
	for _, o := range rootPolicies(t, namespace) {
		if o.key() == authorizationPolicies {
			principal = "*/sa/" + waypoint.Name
			old = append(old, o)
		}
	}
	for _, o := range old {
		who := principalOf(waypoint)
		if o.namespace != namespace {
			who = principal
		}
		if o.namespace == namespace && !t.isReplaced(o) || !t.isCopied(o, namespace) {
			continue
		}
		if value, ok := limited(o, who, waypoint.Namespace+"/"+waypoint.Name); ok {
			t.change(o, value)
			if ambient.Action(o.spec) == "CUSTOM" { // Istio refuses exceptions for a client there
				t.notes = append(t.notes, t.note(o, "spec.action", Info, "while pods move, the waypoint asks the authorizer and a sidecar asks it again, "+
					"about the waypoint as the client; the second answer must not depend on who calls"))
			}
		}
	}
	return nil
}

func (t *tree) labelNamespace(namespace string) error {
	ns := t.namespaceObject(namespace)
	noteManagedMesh(t, ns)
	waypoint := t.waypointName(namespace)
	wanted := []string{ambient.DataplaneMode + "=" + ambient.Ambient}
	if t.needsWaypoint(namespace) != nil {
		wanted = append(wanted, ambient.UseWaypoint+"="+waypoint.Name)
		if labelForGateways(t, namespace) {
			wanted = append(wanted, ambient.IngressUseWaypoint+"=true")
		}
	}
	if ns == nil {
		message := "the Namespace is not among the files; label it where it is kept: " + strings.Join(wanted, " ")
		t.notes = append(t.notes, Note{Namespace: namespace, Level: Elsewhere, Message: message})
	} else {
		value := podmap.CopyMap(ns.value)
		labels := child(child(value, "metadata"), "labels")
		for _, one := range wanted {
			key, setting, _ := strings.Cut(one, "=")
			labels[key] = setting
		}
		t.change(ns, value)
	}
	for _, o := range t.of[namespace] {
		t.keepOut(o)
	}
	return nil
}

// keepOut labels the pods that have no sidecar by their own wish, so that they stay out of the mesh.
func (t *tree) keepOut(o *object) {
	value := t.current(o)
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
		t.change(o, value)
	}
}

func (t *tree) removePolicies(namespace string) error {
	for _, o := range t.replacedPolicies(namespace) {
		if t.isCopied(o, namespace) {
			t.remove(o)
		}
	}
	return nil
}

// enforceWaypoint adds a policy for ztunnel to each set of pods whose policies a waypoint enforces.
func (t *tree) enforceWaypoint(namespace string) error {
	done := map[string]bool{}
	for _, key := range []string{authorizationPolicies, requestAuthentications, wasmPlugins} {
		for _, o := range t.in(namespace, key) {
			for _, target := range ambient.Targets(o.spec) {
				if o.annotations[copyOf] != "" && o.annotations[dryRun] != "true" { // a dry run enforces nothing
					admitWaypoint(t, o, target, done)
				}
			}
		}
	}
	if slices.ContainsFunc(rootPolicies(t, namespace), func(o *object) bool { return isForClass(o) && t.isCopied(o, namespace) }) {
		for _, s := range t.services(namespace) {
			admitWaypoint(t, s, ambient.TargetReference{Kind: "Service", Name: s.name}, done)
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
