// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// checkRoutePorts looks only at Services among the objects. A destination without a port is the port that was called.
func checkRoutePorts(s *workloadSet) []setFinding {
	var out []setFinding
	for _, v := range s.objects["VirtualService"] {
		for _, to := range destinationsOf(v.spec) {
			service := s.findServiceOfHost(v, textOf(to.fields["host"]))
			number, ok := integerOf(podmap.MapAt(to.fields, "port")["number"])
			if service == nil || !ok || len(service.ports) == 0 {
				continue
			}
			var have []string
			for _, p := range service.ports {
				if p.number == number {
					have = nil
					break
				}
				have = append(have, fmt.Sprint(p.number))
			}
			if have == nil {
				continue
			}
			one := v.newFinding(to.path+".port.number", fmt.Sprintf("Service %s has no port %d; it has %s", service.Name, number, strings.Join(have, ", ")))
			one.field.CurrentValue = number
			out = append(out, one)
		}
	}
	return out
}

// routeMatch is one way into a route; nil conditions match everything.
type routeMatch struct {
	route      int
	conditions map[string]any
}

// checkUnusedRoutes compares the routes of each protocol. Source: BuildHTTPRoutesForVirtualService in pilot/pkg/networking/core/route of
// Istio, which keeps the order and stops at a route that matches everything.
func checkUnusedRoutes(s *workloadSet) []setFinding {
	var out []setFinding
	for _, v := range s.objects["VirtualService"] {
		for _, protocol := range []string{"http", "tls", "tcp"} {
			var earlier []routeMatch
			for i, route := range podmap.Maps(v.spec[protocol]) {
				own := matchesOf(route, i)
				unused := unusedMatches(own, earlier)
				if len(unused) == len(own) && len(own) > 0 {
					out = append(out, v.newFinding(fmt.Sprintf("spec.%s[%d]", protocol, i),
						fmt.Sprintf("route %d is never used: %s", i, describeShadowingRoutes(unused))))
				} else {
					for j, by := range unused {
						out = append(out, v.newFinding(fmt.Sprintf("spec.%s[%d].match[%d]", protocol, i, j),
							fmt.Sprintf("match %d of route %d is never used: %s", j, i, describeShadowingRoutes(map[int]int{j: by}))))
					}
				}
				if podmap.MapAt(route, "delegate") == nil { // what a delegate leaves comes to later routes
					earlier = append(earlier, own...)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b setFinding) int {
		return strings.Compare(a.ref.String()+a.field.Path, b.ref.String()+b.field.Path)
	})
	return out
}

func describeShadowingRoutes(unused map[int]int) string {
	var routes []int
	for _, by := range unused {
		routes = append(routes, by)
	}
	slices.Sort(routes)
	var texts []string
	for _, r := range slices.Compact(routes) {
		texts = append(texts, fmt.Sprint(r))
	}
	if len(texts) == 1 {
		return "route " + texts[0] + " takes its requests before"
	}
	return "routes " + strings.Join(texts, ", ") + " take its requests before"
}

// matchesOf returns the matches of a route without their names.
func matchesOf(route map[string]any, index int) []routeMatch {
	var out []routeMatch
	for _, m := range podmap.Maps(route["match"]) {
		conditions := map[string]any{}
		for key, value := range m {
			if key != "name" {
				conditions[key] = value
			}
		}
		out = append(out, routeMatch{index, conditions})
	}
	if len(out) == 0 {
		out = append(out, routeMatch{index, nil})
	}
	return out
}

// unusedMatches returns the indices of matches that an earlier route covers, with the index of that route.
func unusedMatches(own, earlier []routeMatch) map[int]int {
	out := map[int]int{}
	for i, m := range own {
		for _, e := range earlier {
			if e.coversMatch(m) {
				out[i] = e.route
				break
			}
		}
	}
	return out
}

// coversMatch reports whether m matches everything that other matches. It only recognises equal conditions and prefixes
// of paths.
func (m routeMatch) coversMatch(other routeMatch) bool {
	for key, value := range m.conditions {
		if reflect.DeepEqual(value, other.conditions[key]) {
			continue
		}
		if key != "uri" || !coversPath(value, other.conditions[key]) {
			return false
		}
	}
	// Only one of the two without regard to upper and lower case is not compared.
	return m.conditions["uri"] == nil || reflect.DeepEqual(m.conditions["ignoreUriCase"], other.conditions["ignoreUriCase"])
}

func coversPath(a, b any) bool {
	prefix, _ := a.(map[string]any)
	path, _ := b.(map[string]any)
	p, ok := prefix["prefix"].(string)
	if !ok || len(prefix) != 1 || len(path) != 1 {
		return false
	}
	for _, kind := range []string{"prefix", "exact"} {
		if text, ok := path[kind].(string); ok && strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}

// checkSameHosts compares VirtualServices of sidecars that are exported to the same namespaces: one that is private to
// a namespace overrides one for all. Objects without a namespace belong together if they are in one file; others may be
// alternatives.
func checkSameHosts(s *workloadSet) []setFinding {
	first := map[string]*objectFacts{}
	var out []setFinding
	for _, v := range s.objects["VirtualService"] {
		if gateways := textsOf(v.spec["gateways"]); len(gateways) > 0 && !slices.Contains(gateways, meshGateway) {
			continue
		}
		in := ""
		if v.Namespace == "" && v.File != nil {
			in = v.File.Path
		}
		reported := map[*objectFacts]bool{}
		for i, host := range textsOf(v.spec["hosts"]) {
			key, ok := v.hostKey(host)
			if !ok {
				key = host
			}
			for _, to := range v.exportedTo() {
				claim := in + "\x01" + key + "\x01" + to
				other := first[claim]
				if other == nil {
					first[claim] = v
					continue
				}
				if other.Name == v.Name && other.Namespace == v.Namespace || reported[other] || !v.isBeside(other) {
					continue
				}
				reported[other] = true
				one := v.newFinding(fmt.Sprintf("spec.hosts[%d]", i), fmt.Sprintf("%s is for host %s too: sidecars follow one of the two", other, host))
				one.field.CurrentValue = host
				out = append(out, one)
			}
		}
	}
	return out
}

// exportedTo returns the namespaces that an object of Istio's is visible in; * for all.
func (o *objectFacts) exportedTo() []string {
	list := textsOf(o.spec["exportTo"])
	if len(list) == 0 || slices.Contains(list, "*") {
		return []string{"*"}
	}
	for i, to := range list {
		if to == "." {
			list[i] = o.scope
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
