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

// checkReferences assumes that Istio's own gateways exist, as istioctl analyze does.
func checkReferences(s *workloadSet) []setFinding {
	entries := s.entryHosts()
	var out []setFinding
	for _, v := range s.objects["VirtualService"] {
		out = append(out, s.unknownGateways(v)...)
		out = append(out, s.unknownDestinations(v, entries)...)
	}
	for _, d := range s.objects["DestinationRule"] {
		if host := textOf(d.spec["host"]); host != "" && !s.hostExists(d, host, entries) {
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
			out = append(out, s.unknownWorkloads(o)...)
		}
	}
	for _, a := range s.objects["AuthorizationPolicy"] {
		out = append(out, s.unknownSources(a)...)
	}
	return out
}

func (o *objectFacts) newReference(field, what, name string) setFinding {
	one := o.newFinding(field, fmt.Sprintf("there is no %s %s among the files", what, name))
	one.field.CurrentValue = name
	return one
}

func (s *workloadSet) unknownGateways(v *objectFacts) []setFinding {
	byKey, _ := s.gatewaysByKey()
	var out []setFinding
	for _, ref := range gatewaysOf(v) {
		if byKey[ref.key] == nil {
			out = append(out, v.newReference(ref.path, "Gateway", ref.text))
		}
	}
	return out
}

// unknownDestinations leaves a subset out where PR807 knows a DestinationRule of its host.
func (s *workloadSet) unknownDestinations(v *objectFacts, entries []string) []setFinding {
	ruled := map[string]bool{}
	for _, d := range s.objects["DestinationRule"] {
		if key, ok := d.hostKey(textOf(d.spec["host"])); ok {
			ruled[key] = true
		}
	}
	var out []setFinding
	for _, to := range destinationsOf(v.spec) {
		host, subset := textOf(to.fields["host"]), textOf(to.fields["subset"])
		if host != "" && !s.hostExists(v, host, entries) {
			out = append(out, v.newReference(to.path+".host", "host", host))
		}
		if key, ok := v.hostKey(host); ok && subset != "" && !ruled[key] {
			out = append(out, v.newReference(to.path+".subset", "DestinationRule for subset", subset+" of "+host))
		}
	}
	return out
}

// entryHosts are the hosts of all ServiceEntries.
func (s *workloadSet) entryHosts() []string {
	var out []string
	for _, e := range s.objects["ServiceEntry"] {
		out = append(out, textsOf(e.spec["hosts"])...)
	}
	return out
}

// hostExists reports whether a Service or a ServiceEntry has the host, which may begin with *.
func (s *workloadSet) hostExists(o *objectFacts, host string, entries []string) bool {
	if s.findServiceOfHost(o, host) != nil || slices.ContainsFunc(entries, func(e string) bool { return hostsOverlap(e, host) }) {
		return true
	}
	return strings.HasPrefix(host, "*") && slices.ContainsFunc(s.services, func(f *serviceFacts) bool {
		return hostsOverlap(host, f.Name+"."+f.Namespace+".svc.cluster.local")
	})
}

// unknownWorkloads looks in the namespace of the object, and everywhere for one in Istio's root namespace. Waypoints and gateways of the
// Gateway API are not pods of the files.
func (s *workloadSet) unknownWorkloads(o *objectFacts) []setFinding {
	field, labels := "spec.selector", stringMap(podmap.MapAt(o.spec, "selector")["matchLabels"])
	if o.Kind == "Sidecar" {
		field, labels = "spec.workloadSelector", stringMap(podmap.MapAt(o.spec, "workloadSelector")["labels"])
	}
	if labels["gateway.networking.k8s.io/gateway-name"] != "" || len(labels) == 0 {
		return nil
	}
	for i := range s.pods {
		pod := &s.pods[i]
		if hasLabels(pod.labels, labels) && (o.scope == s.root || o.scope == serviceLookupScope(pod.ref.Namespace, pod.file)) {
			return nil
		}
	}
	return []setFinding{o.newReference(field, "pod with", joinLabels(labels))}
}

// unknownSources looks up the namespaces that an AuthorizationPolicy names, with * at the start or the end; only if
// the input contains Namespaces.
func (s *workloadSet) unknownSources(a *objectFacts) []setFinding {
	if len(s.namespaces) == 0 {
		return nil
	}
	var out []setFinding
	for i, rule := range podmap.Maps(a.spec["rules"]) {
		for j, from := range podmap.Maps(rule["from"]) {
			for _, key := range []string{"namespaces", "notNamespaces"} {
				for k, name := range textsOf(podmap.MapAt(from, "source")[key]) {
					if slices.ContainsFunc(s.namespaces, func(ns Namespace) bool { ok, err := path.Match(name, ns.Name); return ok && err == nil }) {
						continue
					}
					out = append(out, a.newReference(fmt.Sprintf("spec.rules[%d].from[%d].source.%s[%d]", i, j, key, k), "Namespace", name))
				}
			}
		}
	}
	return out
}
