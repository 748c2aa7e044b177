// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// selectorConflict is two objects that are for one workload. A workload is nil where neither of them has a selector.
type selectorConflict struct {
	second, first *objectFacts
	workload      *Summary
}

// selectorConflicts compares objects of a kind in one namespace where it is known: files that name none may be alternatives. selectorOf
// returns the labels that an object selects, and whether it is to be compared.
func (s *workloadSet) selectorConflicts(kind string, selectorOf func(*objectFacts) (map[string]string, bool)) []selectorConflict {
	byScope := map[string][]*objectFacts{}
	var out []selectorConflict
	for _, o := range s.objects[kind] {
		labels, ok := selectorOf(o)
		if o.Namespace == "" || !ok {
			continue
		}
		for _, other := range byScope[o.scope] {
			otherLabels, _ := selectorOf(other)
			if other.Name == o.Name || !o.isBeside(other) || (len(labels) == 0) != (len(otherLabels) == 0) {
				continue
			}
			if len(labels) == 0 {
				out = append(out, selectorConflict{second: o, first: other})
				break
			}
			i := slices.IndexFunc(s.index.byScope[o.scope], func(pod *Summary) bool {
				return hasLabels(pod.labels, labels) && hasLabels(pod.labels, otherLabels)
			})
			if i >= 0 {
				out = append(out, selectorConflict{o, other, s.index.byScope[o.scope][i]})
				break
			}
		}
		byScope[o.scope] = append(byScope[o.scope], o)
	}
	return out
}

func checkTelemetries(s *workloadSet) []setFinding {
	var out []setFinding
	for _, c := range s.selectorConflicts("Telemetry", func(o *objectFacts) (map[string]string, bool) {
		return stringMap(podmap.MapAt(o.spec, "selector")["matchLabels"]), o.spec["targetRef"] == nil && o.spec["targetRefs"] == nil
	}) {
		if c.workload == nil {
			out = append(out, c.second.newFinding("metadata.name", fmt.Sprintf("%s has no selector either: one of the two has no effect", c.first)))
			continue
		}
		out = append(out, c.second.newFinding("spec.selector", fmt.Sprintf("%s selects %s too: one of the two has no effect on it", c.first, c.workload.ref)))
	}
	return out
}

// notReplaced are what a patch with REPLACE is left out for, and a route configuration is only merged into.
// Source: pilot/pkg/networking/core/envoyfilter of Istio 1.31.
var notReplaced = []string{"CLUSTER", "LISTENER", "FILTER_CHAIN", "ROUTE_CONFIGURATION", "HTTP_ROUTE"}

func checkFilterOperations(s *workloadSet) []setFinding {
	var out []setFinding
	for _, f := range s.objects["EnvoyFilter"] {
		for i, patch := range podmap.Maps(f.spec["configPatches"]) {
			part, operation := textOf(patch["applyTo"]), textOf(podmap.MapAt(patch, "patch")["operation"])
			adds := slices.Contains([]string{"ADD", "REMOVE", "INSERT_BEFORE", "INSERT_AFTER", "INSERT_FIRST"}, operation)
			if !(operation == "REPLACE" && slices.Contains(notReplaced, part)) && !(adds && part == "ROUTE_CONFIGURATION") {
				continue
			}
			one := f.newFinding(fmt.Sprintf("spec.configPatches[%d].patch.operation", i), fmt.Sprintf("the operation %s has no effect on a %s: the patch is left out", operation, part))
			one.field.CurrentValue = operation
			out = append(out, one)
		}
	}
	return out
}

// checkSharedCertificates compares Gateways with equal selectors. Servers with a host in common are left to PR813.
func checkSharedCertificates(s *workloadSet) []setFinding {
	type use struct {
		gateway *objectFacts
		hosts   []string
	}
	byCertificate := map[string][]use{}
	var out []setFinding
	for _, g := range s.objects["Gateway"] {
		in := g.Namespace
		if in == "" {
			in = g.scope
		}
		reported := false
		for i, server := range podmap.Maps(g.spec["servers"]) {
			credential := textOf(podmap.MapAt(server, "tls")["credentialName"])
			if credential == "" {
				continue
			}
			key := strings.Join([]string{in, joinLabels(stringMap(g.spec["selector"])), credential, textOf(server["bind"])}, "\x01")
			hosts := textsOf(server["hosts"])
			for _, other := range byCertificate[key] {
				if reported || other.gateway.Name == g.Name || !g.isBeside(other.gateway) || slices.ContainsFunc(hosts, func(h string) bool { return slices.Contains(other.hosts, h) }) {
					continue
				}
				reported = true
				out = append(out, g.newFinding(fmt.Sprintf("spec.servers[%d].tls.credentialName", i),
					fmt.Sprintf("%s serves %s with the certificate %s too: over one HTTP/2 connection, requests may come to the wrong one of the two", other.gateway, strings.Join(other.hosts, ", "), credential)))
			}
			byCertificate[key] = append(byCertificate[key], use{g, hosts})
		}
	}
	return out
}

// checkEntryProtocols compares ServiceEntries that are exported to the same namespaces, and without a namespace those of one file.
func checkEntryProtocols(s *workloadSet) []setFinding {
	type declaration struct {
		entry    *objectFacts
		protocol string
	}
	first := map[string]declaration{}
	var out []setFinding
	for _, e := range s.objects["ServiceEntry"] {
		in := ""
		if e.Namespace == "" && e.File != nil {
			in = e.File.Path
		}
		reported := false
		for i, port := range podmap.Maps(e.spec["ports"]) {
			number, _ := integerOf(port["number"])
			protocol := strings.ToUpper(textOf(port["protocol"]))
			for _, host := range textsOf(e.spec["hosts"]) {
				for _, to := range e.exportedTo() {
					claim := strings.Join([]string{in, host, fmt.Sprint(number), to}, "\x01")
					other, ok := first[claim]
					if !ok {
						first[claim] = declaration{e, protocol}
						continue
					}
					if reported || other.protocol == protocol || !e.isBeside(other.entry) || other.entry.Name == e.Name && other.entry.Namespace == e.Namespace {
						continue
					}
					reported = true
					out = append(out, e.newFinding(fmt.Sprintf("spec.ports[%d].protocol", i),
						fmt.Sprintf("%s declares protocol %s for port %d of %s, and this one declares %s", other.entry,
							orNone(singletonOrEmpty(other.protocol)), number, host, orNone(singletonOrEmpty(protocol)))))
				}
			}
		}
	}
	return out
}

// singletonOrEmpty returns the text as a list, without it where it is empty.
func singletonOrEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}
