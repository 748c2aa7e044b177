// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// findServiceOfHost returns the Service that a host means, if it is among the objects.
func (s *workloadSet) findServiceOfHost(o *objectFacts, host string) *serviceFacts {
	key, ok := o.hostKey(host)
	if !ok {
		return nil
	}
	return s.serviceByName[key]
}

func checkDestinationTLS(s *workloadSet) []setFinding {
	var out []setFinding
	for _, d := range s.objects["DestinationRule"] {
		service := s.findServiceOfHost(d, textOf(d.spec["host"]))
		mode := textOf(podmap.MapAt(d.spec, "trafficPolicy", "tls")["mode"])
		if service == nil || mode == "" || mode == "ISTIO_MUTUAL" {
			continue
		}
		for _, pod := range service.selected {
			by := s.strictPeerAuthenticationFor(pod, service.scope)
			if by == nil || !pod.sidecar {
				continue
			}
			one := d.newFinding("spec.trafficPolicy.tls.mode",
				fmt.Sprintf("mode %s for Service %s, and %s requires mutual TLS of %s: its proxy refuses the requests", mode, service.Name, by, pod.ref))
			one.field.CurrentValue = mode
			out = append(out, one)
			break
		}
	}
	return out
}

// strictPeerAuthenticationFor returns the PeerAuthentication that requires mutual TLS of the pod on all ports, or nil
// if none does. One with a selector overrides that of the namespace, and that overrides the mesh's. Source:
// PeerAuthentication in Istio's API, "mutual TLS settings".
func (s *workloadSet) strictPeerAuthenticationFor(pod *Summary, in string) *objectFacts {
	var best *objectFacts
	rank := 0
	for _, a := range s.objects["PeerAuthentication"] {
		selector := podmap.MapAt(a.spec, "selector")
		mode := textOf(podmap.MapAt(a.spec, "mtls")["mode"])
		of := 0
		switch {
		case a.scope == in && len(selector) > 0 && hasLabels(pod.labels, stringMap(selector["matchLabels"])):
			of = 3
		case a.scope == in && len(selector) == 0:
			of = 2
		case a.scope == s.root && len(selector) == 0:
			of = 1
		}
		inherits := (mode == "" || mode == "UNSET") && a.spec["portLevelMtls"] == nil
		if of > rank && !inherits {
			best, rank = a, of
		}
	}
	if best == nil || textOf(podmap.MapAt(best.spec, "mtls")["mode"]) != "STRICT" || best.spec["portLevelMtls"] != nil {
		return nil
	}
	return best
}

// checkRouteSubsets looks only at hosts for which a DestinationRule is among the objects.
func checkRouteSubsets(s *workloadSet) []setFinding {
	subsets := map[string]map[string]bool{} // by host
	for _, d := range s.objects["DestinationRule"] {
		key, ok := d.hostKey(textOf(d.spec["host"]))
		if !ok {
			continue
		}
		if subsets[key] == nil {
			subsets[key] = map[string]bool{}
		}
		for _, one := range podmap.Maps(d.spec["subsets"]) {
			subsets[key][textOf(one["name"])] = true
		}
	}
	var out []setFinding
	for _, v := range s.objects["VirtualService"] {
		for _, to := range destinationsOf(v.spec) {
			host, subset := textOf(to.fields["host"]), textOf(to.fields["subset"])
			key, ok := v.hostKey(host)
			if known := subsets[key]; !ok || subset == "" || known == nil || known[subset] {
				continue
			}
			one := v.newFinding(to.path+".subset", fmt.Sprintf("the DestinationRule of host %s has no subset %s; it has %s", host, subset, orNone(sortedKeys(subsets[key]))))
			one.field.CurrentValue = subset
			out = append(out, one)
		}
	}
	return out
}

// destination is one of a VirtualService, with its path.
type destination struct {
	path   string
	fields map[string]any
}

// destinationsOf returns where a VirtualService sends requests and copies of them.
func destinationsOf(spec map[string]any) []destination {
	var out []destination
	for _, protocol := range []string{"http", "tls", "tcp"} {
		for i, route := range podmap.Maps(spec[protocol]) {
			at := fmt.Sprintf("spec.%s[%d]", protocol, i)
			for _, list := range []string{"route", "mirrors"} {
				for j, to := range podmap.Maps(route[list]) {
					out = append(out, destination{fmt.Sprintf("%s.%s[%d].destination", at, list, j), podmap.MapAt(to, "destination")})
				}
			}
			if mirror := podmap.MapAt(route, "mirror"); mirror != nil {
				out = append(out, destination{at + ".mirror", mirror})
			}
		}
	}
	return out
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// checkSubsetLabels looks only at Services that select a workload among the files.
func checkSubsetLabels(s *workloadSet) []setFinding {
	var out []setFinding
	for _, d := range s.objects["DestinationRule"] {
		service := s.findServiceOfHost(d, textOf(d.spec["host"]))
		if service == nil || len(service.selected) == 0 {
			continue
		}
		for i, subset := range podmap.Maps(d.spec["subsets"]) {
			labels := stringMap(subset["labels"])
			if hasTopology(labels) {
				continue
			}
			if slices.ContainsFunc(service.selected, func(pod *Summary) bool { return hasLabels(pod.labels, labels) }) {
				continue
			}
			out = append(out, d.newFinding(fmt.Sprintf("spec.subsets[%d].labels", i),
				fmt.Sprintf("no workload of Service %s among the files has the labels of subset %s (%s)", service.Name, textOf(subset["name"]), joinLabels(labels))))
		}
	}
	return out
}

// hasTopology reports whether one of the labels is one that Istio derives from where a pod runs, and that no
// manifest has. Source: AugmentLabels in pilot/pkg/serviceregistry/util/label/label.go.
func hasTopology(labels map[string]string) bool {
	for key := range labels {
		if strings.HasPrefix(key, "topology.kubernetes.io/") || strings.HasPrefix(key, "topology.istio.io/") || key == "kubernetes.io/hostname" {
			return true
		}
	}
	return false
}

func joinLabels(labels map[string]string) string {
	var parts []string
	for _, k := range sortedKeys(labels) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ", ")
}

// checkSidecars reports the second of two Sidecars.
func checkSidecars(s *workloadSet) []setFinding {
	var out []setFinding
	for _, c := range s.selectorConflicts("Sidecar", func(o *objectFacts) (map[string]string, bool) {
		return stringMap(podmap.MapAt(o.spec, "workloadSelector")["labels"]), true
	}) {
		if c.workload == nil {
			out = append(out, c.second.newFinding("metadata.name", fmt.Sprintf("%s has no workloadSelector either: one of the two has no effect", c.first)))
			continue
		}
		out = append(out, c.second.newFinding("spec.workloadSelector", fmt.Sprintf("%s selects %s too: one of the two has no effect on it", c.first, c.workload.ref)))
	}
	return out
}

// proxiesSelectedBy are the pods with a proxy that an EnvoyFilter is for: those of its namespace, of all where it is
// Istio's own.
func (s *workloadSet) proxiesSelectedBy(f *objectFacts) []*Summary {
	selector := stringMap(podmap.MapAt(f.spec, "workloadSelector")["labels"])
	var out []*Summary
	for i := range s.pods {
		pod := &s.pods[i]
		if pod.proxy && hasLabels(pod.labels, selector) && (f.scope == s.root || f.scope == serviceLookupScope(pod.ref.Namespace, pod.file)) {
			out = append(out, pod)
		}
	}
	return out
}
