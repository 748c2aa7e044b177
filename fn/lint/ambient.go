// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/result"
)

// kubernetesGateway is the key of Gateways of the Gateway API among the objects; that of Istio's Gateways is their kind.
const kubernetesGateway = "Gateway." + ambient.GatewayGroup

// ambientSet is a workloadSet for the rules about ambient mode: with the namespaces and pods that are in it, and the waypoints.
// In a set without any, all rules are silent.
type ambientSet struct {
	*workloadSet
	namespaceByName map[string]*Namespace
	// enrolled are the pods of ambient mode by scope.
	enrolled map[string][]*Summary
	// waypoints are the Gateways of the class of waypoints, by namespace and name.
	waypoints map[string]*objectFacts
	// gatewaysIn are the scopes that have Gateways of the Gateway API among the objects.
	gatewaysIn map[string]bool
	any        bool
}

// newAmbientSet reads labels only.
func newAmbientSet(s *workloadSet) *ambientSet {
	a := &ambientSet{
		workloadSet: s, namespaceByName: map[string]*Namespace{}, enrolled: map[string][]*Summary{},
		waypoints: map[string]*objectFacts{}, gatewaysIn: map[string]bool{},
	}
	for i := range s.namespaces {
		ns := &s.namespaces[i]
		a.namespaceByName[ns.Name] = ns
		a.any = a.any || ambient.EnrolledNamespace(ns.Labels)
	}
	for i := range s.pods {
		if pod := &s.pods[i]; pod.ambient {
			scope := serviceLookupScope(pod.ref.Namespace, pod.file)
			a.enrolled[scope] = append(a.enrolled[scope], pod)
			a.any = true
		}
	}
	for _, g := range s.objects[kubernetesGateway] {
		a.gatewaysIn[g.scope] = true
		if strings.HasPrefix(textOf(g.spec["gatewayClassName"]), ambient.WaypointClass) {
			a.waypoints[g.scope+"\x00"+g.Name] = g
		}
	}
	return a
}

// labelsOf returns the labels of a namespace that is known.
func (a *ambientSet) labelsOf(namespace string) map[string]string {
	if ns := a.namespaceByName[namespace]; ns != nil {
		return ns.Labels
	}
	return nil
}

// has reports whether a namespace, or a pod in it, is in ambient mode.
func (a *ambientSet) has(scope string) bool {
	return ambient.EnrolledNamespace(a.labelsOf(scope)) || len(a.enrolled[scope]) > 0
}

// hasAmbient reports whether anything is in ambient mode.
func hasAmbient(s *workloadSet) bool { return s.ambient.any }

// each calls do for each object of a kind in a scope of ambient mode.
func (a *ambientSet) each(kind string, do func(*objectFacts) []setFinding) (out []setFinding) {
	if !a.any {
		return nil
	}
	for _, o := range a.objects[kind] {
		if a.has(o.scope) || o.scope == a.root {
			out = append(out, do(o)...)
		}
	}
	return out
}

// waypointOf returns the waypoint of a Service or another object: that of its own labels, or of its namespace's. ok is false without one.
func (a *ambientSet) waypointOf(labels map[string]string, scope string) (ref ambient.Reference, ok bool) {
	if own, set := ambient.WaypointOf(labels, scope); set {
		return own, own.Name != ""
	}
	ref, _ = ambient.WaypointOf(a.labelsOf(scope), scope)
	return ref, ref.Name != ""
}

// labels are those of the object's metadata.
func (o *objectFacts) labels() map[string]string {
	meta, _ := o.Object.Object["metadata"].(map[string]any)
	return stringMap(meta["labels"])
}

// policyPods returns the pods of ambient mode that a policy with a selector applies to. ok is false if it applies to none: to gateways, or
// to pods that are known and not in ambient mode.
func (a *ambientSet) policyPods(o *objectFacts, selector map[string]string) (pods []*Summary, ok bool) {
	if ambient.SelectsGateway(selector) || selector[ambient.SidecarLabel] != "" {
		return nil, false
	}
	known := false
	for i := range a.pods {
		pod := &a.pods[i]
		scope := serviceLookupScope(pod.ref.Namespace, pod.file)
		if o.scope != a.root && scope != o.scope || !hasLabels(pod.labels, selector) {
			continue
		}
		known = true
		if pod.ambient {
			pods = append(pods, pod)
		}
	}
	if known {
		return pods, len(pods) > 0
	}
	return nil, o.scope == a.root || ambient.EnrolledNamespace(a.labelsOf(o.scope))
}

// servicesOf returns the Services that select a pod.
func (s *workloadSet) servicesOf(pod *Summary) (out []*serviceFacts) {
	for _, service := range s.services {
		if slices.Contains(service.selected, pod) {
			out = append(out, service)
		}
	}
	return out
}

// newNamespaceFinding is about a label of a namespace.
func newNamespaceFinding(ns *Namespace, label, message string) setFinding {
	return setFinding{
		ref: result.ResourceRef{APIVersion: "v1", Kind: "Namespace", Name: ns.Name}, file: ns.File,
		ignored: parseIgnoredRules(ns.Annotations), message: message,
		field: &result.Field{Path: labelPath(label), CurrentValue: ns.Labels[label]},
	}
}

// describePods names the first of some pods. Copies of one workload in several files are one.
func describePods(pods []*Summary) string {
	if len(pods) == 0 {
		return "its pods"
	}
	if slices.ContainsFunc(pods, func(pod *Summary) bool { return pod.ref != pods[0].ref }) {
		return pods[0].ref.String() + " and others"
	}
	return pods[0].ref.String()
}

// waypointFor returns the waypoint of a Service; ok is false without one, and for a Service whose calls pass none.
func (a *ambientSet) waypointFor(service *serviceFacts) (ref ambient.Reference, ok bool) {
	if !ambient.HasAddress(service.spec) {
		return ref, false
	}
	return a.waypointOf(service.labels(), service.scope)
}
