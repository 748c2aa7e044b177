// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// references is a workloadSet for the rule about names that nothing among the files has.
type references struct {
	*workloadSet
	entryHosts   []string // of all ServiceEntries
	gatewayByKey map[string][]*objectFacts
}

func newReferences(s *workloadSet) *references {
	r := &references{workloadSet: s}
	r.gatewayByKey, _ = s.gatewaysByKey()
	for _, e := range s.objects["ServiceEntry"] {
		r.entryHosts = append(r.entryHosts, textsOf(e.spec["hosts"])...)
	}
	return r
}

// checkReferences assumes that Istio's own gateways exist, as istioctl analyze does.
func checkReferences(s *workloadSet) []setFinding {
	r := newReferences(s)
	var out []setFinding
	for _, v := range s.objects["VirtualService"] {
		out = append(out, r.unknownGateways(v)...)
		out = append(out, r.unknownDestinations(v)...)
	}
	for _, d := range s.objects["DestinationRule"] {
		if host := textOf(d.spec["host"]); host != "" && !r.hostExists(d, host) {
			out = append(out, d.newReference("spec.host", "host", host))
		}
	}
	for _, g := range s.objects["Gateway"] {
		selector := stringMap(g.spec["selector"])
		known := selector["istio"] == "ingressgateway" && len(selector) == 1
		if len(selector) > 0 && !known && !slices.ContainsFunc(s.pods, func(pod Summary) bool { return hasLabels(pod.labels, selector) }) {
			out = append(out, g.newReference("spec.selector", "pod with", joinLabels(selector)))
		}
	}
	for _, kind := range []string{"Sidecar", "Telemetry", "AuthorizationPolicy"} {
		for _, o := range s.objects[kind] {
			out = append(out, r.unknownWorkloads(o)...)
		}
	}
	for _, a := range s.objects["AuthorizationPolicy"] {
		out = append(out, r.unknownSources(a)...)
	}
	return out
}

func (o *objectFacts) newReference(field, what, name string) setFinding {
	one := o.newFinding(field, fmt.Sprintf("there is no %s %s among the files", what, name))
	one.field.CurrentValue = name
	return one
}

func (r *references) unknownGateways(v *objectFacts) []setFinding {
	var out []setFinding
	for _, ref := range gatewaysOf(v) {
		if r.gatewayByKey[ref.key] == nil {
			out = append(out, v.newReference(ref.path, "Gateway", ref.text))
		}
	}
	return out
}

// unknownDestinations leaves a subset out where PR807 knows a DestinationRule of its host.
func (r *references) unknownDestinations(v *objectFacts) []setFinding {
	ruled := map[string]bool{}
	for _, d := range r.objects["DestinationRule"] {
		if key, ok := d.hostKey(textOf(d.spec["host"])); ok {
			ruled[key] = true
		}
	}
	var out []setFinding
	for _, to := range destinationsOf(v.spec) {
		host, subset := textOf(to.fields["host"]), textOf(to.fields["subset"])
		if host != "" && !r.hostExists(v, host) {
			out = append(out, v.newReference(to.path+".host", "host", host))
		}
		if key, ok := v.hostKey(host); ok && subset != "" && !ruled[key] {
			out = append(out, v.newReference(to.path+".subset", "DestinationRule for subset", subset+" of "+host))
		}
	}
	return out
}

// hostExists reports whether a Service or a ServiceEntry has the host, which may begin with *.
func (r *references) hostExists(o *objectFacts, host string) bool {
	if r.findServiceOfHost(o, host) != nil || slices.ContainsFunc(r.entryHosts, func(e string) bool { return hostsOverlap(e, host) }) {
		return true
	}
	return strings.HasPrefix(host, "*") && slices.ContainsFunc(r.services, func(f *serviceFacts) bool {
		return hostsOverlap(host, f.Name+"."+f.Namespace+".svc.cluster.local")
	})
}

// unknownWorkloads looks in the namespace of the object, and everywhere for one in Istio's root namespace. Waypoints and gateways of the
// Gateway API are not pods of the files.
func (r *references) unknownWorkloads(o *objectFacts) []setFinding {
	field, labels := "spec.selector", stringMap(podmap.MapAt(o.spec, "selector")["matchLabels"])
	if o.Kind == "Sidecar" {
		field, labels = "spec.workloadSelector", stringMap(podmap.MapAt(o.spec, "workloadSelector")["labels"])
	}
	if labels["gateway.networking.k8s.io/gateway-name"] != "" || len(labels) == 0 {
		return nil
	}
	for i := range r.pods {
		pod := &r.pods[i]
		if hasLabels(pod.labels, labels) && (o.scope == r.root || o.scope == serviceLookupScope(pod.ref.Namespace, pod.file)) {
			return nil
		}
	}
	return []setFinding{o.newReference(field, "pod with", joinLabels(labels))}
}

// unknownSources looks up the namespaces that an AuthorizationPolicy names, with * at the start or the end; only if
// the input contains Namespaces.
func (r *references) unknownSources(a *objectFacts) []setFinding {
	if len(r.namespaces) == 0 {
		return nil
	}
	var out []setFinding
	for i, rule := range podmap.Maps(a.spec["rules"]) {
		for j, from := range podmap.Maps(rule["from"]) {
			for _, key := range []string{"namespaces", "notNamespaces"} {
				for k, name := range textsOf(podmap.MapAt(from, "source")[key]) {
					if slices.ContainsFunc(r.namespaces, func(ns Namespace) bool { ok, err := path.Match(name, ns.Name); return ok && err == nil }) {
						continue
					}
					out = append(out, a.newReference(fmt.Sprintf("spec.rules[%d].from[%d].source.%s[%d]", i, j, key, k), "Namespace", name))
				}
			}
		}
	}
	return out
}
