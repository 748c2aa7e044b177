// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// converter converts the routes of one VirtualService.
type converter struct {
	tree    *tree
	of      *object
	subsets []subset
}

// convertible are the fields of a route that an HTTPRoute has with the same meaning; others are errors.
var convertible = []string{"name", "match", "route", "redirect", "timeout", "headers", "mirror", "mirrors", "mirrorPercentage"}

// reasons are why a field is not converted that an HTTPRoute has in some form.
var reasons = map[string]string{
	"retries":    "the field retry of HTTPRoutes is in the experimental channel of the Gateway API only",
	"corsPolicy": "the filter CORS of HTTPRoutes is not in every version of the Gateway API",
	"rewrite":    "a rewrite of an HTTPRoute replaces a prefix that ends at a slash, or the whole path",
}

func checkFields(fields map[string]any, known []string, at string) error {
	for _, key := range podmap.SortedKeys(fields) {
		if !slices.Contains(known, key) {
			if reason := reasons[key]; reason != "" {
				return errUnequal(at+"."+key, "%s", reason)
			}
			return errUnequal(at+"."+key, "an HTTPRoute has nothing that means the same as %s", key)
		}
	}
	return nil
}

func (c *converter) rule(route map[string]any, at string) (map[string]any, error) {
	if err := checkFields(route, convertible, at); err != nil {
		return nil, err
	}
	rule := map[string]any{}
	var matches []any
	for i, m := range podmap.Maps(route["match"]) {
		match, err := matchOf(m, fmt.Sprintf("%s.match[%d]", at, i))
		if err != nil {
			return nil, err
		}
		matches = append(matches, match)
	}
	if len(matches) > 0 {
		rule["matches"] = matches
	}
	if timeout, ok := route["timeout"]; ok {
		d, err := duration(timeout)
		if err != nil {
			return nil, errUnequal(at+".timeout", "%v", err)
		}
		rule["timeouts"] = map[string]any{"request": d}
	}
	filters, err := c.filters(route, at)
	if err != nil {
		return nil, err
	}
	if len(filters) > 0 {
		rule["filters"] = filters
	}
	if route["redirect"] != nil {
		return rule, nil
	}
	backends, err := c.backends(route, at)
	if err != nil {
		return nil, err
	}
	rule["backendRefs"] = backends
	return rule, nil
}

// matchOf converts one match. A prefix of VirtualServices is any text; one of the Gateway API ends at a slash.
func matchOf(m map[string]any, at string) (map[string]any, error) {
	if err := checkFields(m, []string{"name", "uri", "headers", "queryParams", "method"}, at); err != nil {
		return nil, err
	}
	out := map[string]any{}
	if uri := podmap.MapAt(m, "uri"); uri != nil {
		switch {
		case uri["exact"] != nil:
			out["path"] = map[string]any{"type": "Exact", "value": uri["exact"]}
		case text(uri["prefix"]) == "/":
		case uri["prefix"] != nil:
			out["path"] = map[string]any{"type": "RegularExpression", "value": regexp.QuoteMeta(text(uri["prefix"])) + ".*"}
		case uri["regex"] != nil:
			out["path"] = map[string]any{"type": "RegularExpression", "value": uri["regex"]}
		}
		if path := podmap.MapAt(out, "path"); path != nil && text(path["type"]) == "Exact" && text(path["value"])[:1] != "/" {
			return nil, errUnequal(at+".uri", "a path of the Gateway API begins with a slash")
		}
	}
	if method := podmap.MapAt(m, "method"); method != nil {
		if method["exact"] == nil {
			return nil, errUnequal(at+".method", "an HTTPRoute compares methods as a whole")
		}
		out["method"] = method["exact"]
	}
	for _, key := range []string{"headers", "queryParams"} {
		var list []any
		fields := podmap.MapAt(m, key)
		for _, name := range podmap.SortedKeys(fields) {
			one, err := valueMatch(name, podmap.MapAt(fields, name), at+"."+key)
			if err != nil {
				return nil, err
			}
			list = append(list, one)
		}
		if len(list) > 0 {
			out[key] = list
		}
	}
	return out, nil
}

func valueMatch(name string, m map[string]any, at string) (map[string]any, error) {
	switch {
	case text(m["exact"]) != "":
		return map[string]any{"name": name, "value": m["exact"]}, nil
	case text(m["prefix"]) != "":
		return map[string]any{"name": name, "type": "RegularExpression", "value": regexp.QuoteMeta(text(m["prefix"])) + ".*"}, nil
	case text(m["regex"]) != "":
		return map[string]any{"name": name, "type": "RegularExpression", "value": m["regex"]}, nil
	}
	return nil, errUnequal(at, "an HTTPRoute has no match for any value of %s", name)
}

func (c *converter) filters(route map[string]any, at string) (out []any, err error) {
	for _, direction := range []struct{ key, kind, field string }{
		{"request", "RequestHeaderModifier", "requestHeaderModifier"}, {"response", "ResponseHeaderModifier", "responseHeaderModifier"},
	} {
		changes := podmap.MapAt(route, "headers", direction.key)
		if len(changes) == 0 {
			continue
		}
		modifier := map[string]any{}
		for _, key := range []string{"set", "add"} {
			var list []any
			fields := podmap.MapAt(changes, key)
			for _, name := range podmap.SortedKeys(fields) {
				if regexp.MustCompile(`%`).MatchString(text(fields[name])) || name == "host" || name[:1] == ":" {
					return nil, errUnequal(at+".headers", "the header %s has a value that the Gateway API writes as it is", name)
				}
				list = append(list, map[string]any{"name": name, "value": fields[name]})
			}
			if len(list) > 0 {
				modifier[key] = list
			}
		}
		if remove, ok := changes["remove"]; ok {
			modifier["remove"] = remove
		}
		out = append(out, map[string]any{"type": direction.kind, direction.field: modifier})
	}
	mirrors, err := c.mirrors(route, at)
	if err != nil {
		return nil, err
	}
	out = append(out, mirrors...)
	if redirect := podmap.MapAt(route, "redirect"); redirect != nil {
		one, err := redirectOf(redirect, at+".redirect")
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func (c *converter) mirrors(route map[string]any, at string) (out []any, err error) {
	if share := podmap.MapAt(route, "mirrorPercentage"); share != nil {
		if n, ok := number(share["value"]); !ok || n != 100 {
			return nil, errUnequal(at+".mirrorPercentage", mirrorShare)
		}
	}
	list := podmap.Maps(route["mirrors"])
	if mirror := podmap.MapAt(route, "mirror"); mirror != nil {
		list = append(list, map[string]any{"destination": mirror})
	}
	for _, m := range list {
		if m["percentage"] != nil {
			return nil, errUnequal(at+".mirrors", mirrorShare)
		}
		ref, err := c.backend(podmap.MapAt(m, "destination"), at+".mirror")
		if err != nil {
			return nil, err
		}
		out = append(out, map[string]any{"type": "RequestMirror", "requestMirror": map[string]any{"backendRef": ref}})
	}
	return out, nil
}

const mirrorShare = "an HTTPRoute mirrors a share of requests from the Gateway API 1.3 on only, and older definitions drop the share"

func redirectOf(r map[string]any, at string) (map[string]any, error) {
	if err := checkFields(r, []string{"uri", "authority", "scheme", "redirectCode", "port"}, at); err != nil {
		return nil, err
	}
	code, ok := number(r["redirectCode"])
	if !ok {
		code = 301
	}
	if !slices.Contains([]int64{301, 302, 303, 307, 308}, code) {
		return nil, errUnequal(at+".redirectCode", "the Gateway API has no redirect with %d", code)
	}
	out := map[string]any{"statusCode": code}
	if uri, ok := r["uri"]; ok {
		out["path"] = map[string]any{"type": "ReplaceFullPath", "replaceFullPath": uri}
	}
	for from, to := range map[string]string{"authority": "hostname", "scheme": "scheme", "port": "port"} {
		if v, ok := r[from]; ok {
			out[to] = v
		}
	}
	return map[string]any{"type": "RequestRedirect", "requestRedirect": out}, nil
}

func (c *converter) backends(route map[string]any, at string) (out []any, err error) {
	list := podmap.Maps(route["route"])
	for i, to := range list {
		where := fmt.Sprintf("%s.route[%d]", at, i)
		if err := checkFields(to, []string{"destination", "weight"}, where); err != nil {
			return nil, err
		}
		ref, err := c.backend(podmap.MapAt(to, "destination"), where+".destination")
		if err != nil {
			return nil, err
		}
		if len(list) > 1 {
			weight, _ := number(to["weight"])
			ref["weight"] = weight
		}
		out = append(out, ref)
	}
	if len(out) == 0 {
		return nil, errUnequal(at+".route", "the route has no destination")
	}
	return out, nil
}

// backend converts a destination. A subset becomes a Service of its own.
func (c *converter) backend(to map[string]any, at string) (map[string]any, error) {
	s := c.tree.serviceOf(c.of, text(to["host"]))
	if s == nil || s.namespace != c.of.namespace {
		return nil, errUnequal(at+".host", "%s is no Service of the namespace among the files", text(to["host"]))
	}
	port, ok := number(podmap.MapAt(to, "port")["number"])
	if !ok {
		ports := podmap.Maps(s.spec["ports"])
		if len(ports) != 1 {
			return nil, errUnequal(at+".port", "%s has several ports, and an HTTPRoute names one", s)
		}
		port, _ = number(ports[0]["port"])
	}
	name := s.name
	if wanted := text(to["subset"]); wanted != "" {
		var err error
		if name, err = c.subsetOf(s, wanted, at+".subset"); err != nil {
			return nil, err
		}
	}
	return map[string]any{"name": name, "port": port}, nil
}

// subsetOf returns the name of the Service for a subset, which it makes if it is not among the files.
func (c *converter) subsetOf(s *object, wanted, at string) (string, error) {
	for _, d := range c.tree.in(s.namespace, destinationRules) {
		if c.tree.serviceOf(d, text(d.spec["host"])) != s {
			continue
		}
		for _, one := range podmap.Maps(d.spec["subsets"]) {
			if text(one["name"]) == wanted {
				return c.addSubset(s, d, one), nil
			}
		}
	}
	return "", errUnequal(at, "no DestinationRule among the files has subset %s of %s", wanted, s)
}

func (c *converter) addSubset(s, d *object, one map[string]any) string {
	name := s.name + "-" + text(one["name"])
	exists := slices.ContainsFunc(c.subsets, func(have subset) bool { return have.name == name }) ||
		slices.ContainsFunc(c.tree.in(s.namespace, "Service"), func(o *object) bool { return o.name == name })
	if exists {
		return name
	}
	selector := podmap.CopyMap(podmap.MapAt(s.spec, "selector"))
	for k, v := range podmap.MapAt(one, "labels") {
		selector[k] = v
	}
	var ports []any
	for _, p := range podmap.Maps(s.spec["ports"]) {
		p = podmap.CopyMap(p)
		delete(p, "nodePort")
		ports = append(ports, p)
	}
	meta := map[string]any{"name": name}
	if s.ownNamespace {
		meta["namespace"] = s.namespace
	}
	made := subset{name: name, of: s, service: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": map[string]any{"selector": selector, "ports": ports},
	}}
	traffic := podmap.CopyMap(podmap.MapAt(d.spec, "trafficPolicy"))
	for k, v := range podmap.MapAt(one, "trafficPolicy") {
		if traffic == nil {
			traffic = map[string]any{}
		}
		traffic[k] = v
	}
	if len(traffic) > 0 {
		made.rule = map[string]any{
			"apiVersion": d.apiVersion, "kind": "DestinationRule", "metadata": podmap.CopyMap(meta), "spec": map[string]any{"host": name, "trafficPolicy": traffic},
		}
	}
	c.subsets = append(c.subsets, made)
	return name
}
