// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
)

const meshGateway = "mesh"

// isForMesh reports whether a VirtualService is for the calls of pods.
func isForMesh(v *object) bool {
	gateways := textList(v.spec["gateways"])
	return len(gateways) == 0 || slices.Contains(gateways, meshGateway)
}

// changesNothing reports whether calls go where they go without a VirtualService.
func changesNothing(t *tree, v *object) bool {
	hosts := textList(v.spec["hosts"])
	return len(hosts) == 1 && ambient.ChangesNothing(v.spec, func(to map[string]any) bool {
		s := t.serviceOf(v, hosts[0])
		one := to["port"] == nil || s == nil || len(podmap.Maps(s.spec["ports"])) < 2
		return one && (text(to["host"]) == hosts[0] || s != nil && t.serviceOf(v, text(to["host"])) == s)
	})
}

// routesTo reports whether a VirtualService has routes for calls of pods to a Service of a namespace.
func routesTo(t *tree, v *object, namespace string) bool {
	return isForMesh(v) && !changesNothing(t, v) && slices.ContainsFunc(textList(v.spec["hosts"]), func(host string) bool {
		return isServed(t, v, host, namespace)
	})
}

// isServed reports whether a host of an object means a Service of a namespace that a waypoint can serve. A Service that no file has is taken for one.
func isServed(t *tree, o *object, host, namespace string) bool {
	if s := t.serviceOf(o, host); s != nil {
		return s.namespace == namespace && ambient.HasAddress(s.spec)
	}
	isEntry := slices.ContainsFunc(t.byKind["ServiceEntry.networking.istio.io"], func(e *object) bool { return slices.Contains(textList(e.spec["hosts"]), host) })
	name, of, ok := splitHost(o, host)
	return ok && of == namespace && name != "" && !strings.Contains(host, "*") && !isEntry
}

// splitHost returns the name and the namespace of the Service that a host of an object means; ok is false for hosts outside of the cluster.
func splitHost(o *object, host string) (name, namespace string, ok bool) {
	name, rest, dotted := strings.Cut(host, ".")
	if !dotted {
		return name, o.namespace, true
	}
	namespace, domain, _ := strings.Cut(rest, ".")
	return name, namespace, domain == "" || domain == "svc" || strings.HasPrefix(domain, "svc.")
}

// serviceOf returns the Service among the files that a host of an object means, or nil.
func (t *tree) serviceOf(o *object, host string) *object {
	name, namespace, ok := splitHost(o, host)
	if !ok {
		return nil
	}
	for _, s := range t.in(namespace, "Service") {
		if s.name == name {
			return s
		}
	}
	return nil
}

// converted is what takes the place of a VirtualService.
type converted struct {
	route    map[string]any
	services []subset
}

// subset is a Service for a subset of a DestinationRule, and the DestinationRule for it, which may be nil.
type subset struct {
	name    string
	service map[string]any
	rule    map[string]any
	of      *object // the Service that it is a part of
}

// errUnequal is why an HTTPRoute would mean something else.
func errUnequal(field, format string, args ...any) error {
	return &unequalError{field: field, message: fmt.Sprintf(format, args...)}
}

type unequalError struct{ field, message string }

func (e *unequalError) Error() string { return e.message }

// convert returns the HTTPRoute that means the same as a VirtualService at a waypoint, or an unequalError.
func convert(t *tree, v *object) (*converted, error) {
	if err := checkHosts(t, v); err != nil {
		return nil, err
	}
	c := &converter{tree: t, of: v}
	spec := map[string]any{}
	var parents []any
	for _, host := range textList(v.spec["hosts"]) {
		parents = append(parents, map[string]any{"group": "", "kind": "Service", "name": t.serviceOf(v, host).name})
	}
	spec["parentRefs"] = parents
	var rules []any
	for i, route := range podmap.Maps(v.spec["http"]) {
		rule, err := c.rule(route, fmt.Sprintf("spec.http[%d]", i))
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	if len(rules) > 16 {
		return nil, errUnequal("spec.http", "an HTTPRoute has at most 16 rules")
	}
	if err := keepsOrder(rules); err != nil {
		return nil, err
	}
	spec["rules"] = rules
	meta := map[string]any{"name": v.name}
	if v.ownNamespace {
		meta["namespace"] = v.namespace
	}
	route := map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": meta, "spec": spec}
	return &converted{route: route, services: c.subsets}, nil
}

// checkHosts reports what keeps a VirtualService from being a route of Services.
func checkHosts(t *tree, v *object) error {
	for _, key := range []string{"tcp", "tls"} {
		if v.spec[key] != nil {
			return errUnequal("spec."+key, "an HTTPRoute has no %s routes", key)
		}
	}
	if exported := textList(v.spec["exportTo"]); len(exported) > 0 && !slices.Equal(exported, []string{"*"}) {
		return errUnequal("spec.exportTo", "an HTTPRoute is for all callers of the Service")
	}
	for _, other := range t.byKind[virtualServices] {
		if other != v && other.namespace == v.namespace && other.name == v.name {
			return errUnequal("metadata.name", "the files contain it more than once, and one of these is in the cluster")
		}
		if other != v && isForMesh(other) && sameService(t, v, other) {
			return errUnequal("spec.hosts", "%s is for the same Service, and sidecars follow one of the two", other)
		}
	}
	if len(podmap.Maps(v.spec["http"])) == 0 {
		return errUnequal("spec.http", "there are no HTTP routes")
	}
	for i, host := range textList(v.spec["hosts"]) {
		s := t.serviceOf(v, host)
		if s == nil || s.namespace != v.namespace {
			return errUnequal(fmt.Sprintf("spec.hosts[%d]", i), "%s is no Service of the namespace among the files", host)
		}
		if len(httpPorts(s)) != len(podmap.Maps(s.spec["ports"])) {
			return errUnequal(fmt.Sprintf("spec.hosts[%d]", i), "not every port of %s is known to be HTTP by name or appProtocol", s)
		}
	}
	return nil
}

// sameService reports whether two VirtualServices have a Service in common.
func sameService(t *tree, a, b *object) bool {
	return slices.ContainsFunc(textList(a.spec["hosts"]), func(host string) bool {
		s := t.serviceOf(a, host)
		return s != nil && slices.ContainsFunc(textList(b.spec["hosts"]), func(other string) bool { return t.serviceOf(b, other) == s })
	})
}

// httpPorts returns the ports of a Service that are HTTP by their name or appProtocol.
func httpPorts(s *object) (out []int64) {
	for _, p := range podmap.Maps(s.spec["ports"]) {
		protocol, _, _ := strings.Cut(strings.ToLower(text(p["name"])), "-")
		if app := text(p["appProtocol"]); app != "" {
			protocol = strings.TrimPrefix(app, "kubernetes.io/")
		}
		if slices.Contains([]string{"http", "http2", "h2c", "grpc", "ws"}, protocol) {
			n, _ := number(p["port"])
			out = append(out, n)
		}
	}
	return out
}

// keepsOrder reports an error if istiod would sort the matches of the rules into another order, in which another rule could win. Source:
// sortHTTPRoutes in pilot/pkg/config/kube/gateway/conversion.go.
func keepsOrder(rules []any) error {
	last := [5]int{1 << 30}
	for i, rule := range podmap.Maps(rules) {
		matches := podmap.Maps(rule["matches"])
		if len(matches) == 0 {
			matches = []map[string]any{{}}
		}
		for _, m := range matches {
			rank := rankOf(m)
			if compareRanks(rank, last) > 0 {
				return errUnequal(fmt.Sprintf("spec.http[%d].match", i), "routes of the Gateway API are sorted: this one would come before the one above it")
			}
			last = rank
		}
	}
	return nil
}

func rankOf(m map[string]any) (rank [5]int) {
	rank[0] = -1
	if path := podmap.MapAt(m, "path"); path != nil {
		rank[0] = map[string]int{"Exact": 3, "PathPrefix": 2, "RegularExpression": 1}[text(path["type"])]
		rank[1] = len(text(path["value"]))
	}
	if m["method"] != nil {
		rank[2] = 1
	}
	rank[3], rank[4] = len(podmap.Maps(m["headers"])), len(podmap.Maps(m["queryParams"]))
	return rank
}

func compareRanks(a, b [5]int) int { return slices.Compare(a[:], b[:]) }

// duration returns a duration as the Gateway API writes it.
func duration(v any) (string, error) {
	d, err := time.ParseDuration(text(v))
	if err != nil || d < 0 || d%time.Millisecond != 0 {
		return "", errors.New("the duration has no form in the Gateway API")
	}
	if d == 0 {
		return "0s", nil
	}
	if d%time.Second == 0 && d/time.Second < 100000 {
		return fmt.Sprintf("%ds", d/time.Second), nil
	}
	if d/time.Millisecond < 100000 {
		return fmt.Sprintf("%dms", d/time.Millisecond), nil
	}
	return "", errors.New("the duration has no form in the Gateway API")
}

// withoutMesh returns a VirtualService that is for gateways only, and whether any is left.
func withoutMesh(v *object) (map[string]any, bool) {
	out := podmap.CopyMap(v.value)
	var kept []any
	for _, g := range textList(v.spec["gateways"]) {
		if g != meshGateway {
			kept = append(kept, g)
		}
	}
	child(out, "spec")["gateways"] = kept
	return out, len(kept) > 0
}
