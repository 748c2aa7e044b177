// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// HasAddress reports whether a Service has an address of its own, which calls by a waypoint need: those of a headless Service go to the pod's
// address. Source: findServiceWaypoint in pilot/pkg/xds/endpoints/endpoint_builder.go of Istio.
func HasAddress(service map[string]any) bool {
	address, _ := service["clusterIP"].(string)
	sort, _ := service["type"].(string)
	return address != "None" && sort != "ExternalName"
}

// NeedsProxy reports whether a trafficPolicy of a DestinationRule has something that only Envoy does.
func NeedsProxy(traffic map[string]any) bool { return len(ProxySettings(traffic)) > 0 }

// ProxySettings returns the fields of a trafficPolicy that only Envoy follows, in order. Mutual TLS of the mesh is what ztunnel uses in any case,
// plain text is what it uses where the other end is not in the mesh, and a simple load balancing spreads load as ztunnel does.
func ProxySettings(traffic map[string]any) (out []string) {
	for _, key := range podmap.SortedKeys(traffic) {
		fields, _ := traffic[key].(map[string]any)
		switch key {
		case "port":
		case "tls":
			if OriginatesTLS(map[string]any{"tls": fields}) {
				out = append(out, key)
			}
		case "loadBalancer":
			if !spreadsLoad(fields) {
				out = append(out, key)
			}
		case "portLevelSettings":
			for _, one := range podmap.Maps(traffic[key]) {
				out = append(out, ProxySettings(one)...)
			}
		default:
			if len(fields) > 0 {
				out = append(out, key)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// spreadsLoad reports whether a load balancer has nothing but an algorithm by which all pods get a share.
func spreadsLoad(fields map[string]any) bool {
	for key, value := range fields {
		if key != "simple" || value == "PASSTHROUGH" {
			return false
		}
	}
	return true
}

// OriginatesTLS reports whether a trafficPolicy makes clients use TLS that is not that of the mesh.
func OriginatesTLS(traffic map[string]any) bool {
	mode, _ := podmap.MapAt(traffic, "tls")["mode"].(string)
	return mode == "SIMPLE" || mode == "MUTUAL" || slices.ContainsFunc(podmap.Maps(traffic["portLevelSettings"]), OriginatesTLS)
}

// SharedLimits returns the fields of a trafficPolicy that a waypoint applies to the requests of all clients together, by its own place in the
// cluster, where sidecars applied them to those of one client.
func SharedLimits(traffic map[string]any) (out []string) {
	for _, key := range []string{"connectionPool", "outlierDetection"} {
		if len(podmap.MapAt(traffic, key)) > 0 {
			out = append(out, key)
		}
	}
	if len(podmap.MapAt(traffic, "loadBalancer", "localityLbSetting")) > 0 {
		out = append(out, "loadBalancer.localityLbSetting")
	}
	for _, one := range podmap.Maps(traffic["portLevelSettings"]) {
		if len(SharedLimits(one)) > 0 {
			return append(out, "portLevelSettings")
		}
	}
	return out
}

// ChangesNothing reports whether the routes of a VirtualService send all requests where they go without it: to the same Service, which same
// recognises by its host and port.
func ChangesNothing(spec map[string]any, same func(destination map[string]any) bool) bool {
	routes := podmap.Maps(spec["http"])
	if len(routes) == 0 || spec["tcp"] != nil || spec["tls"] != nil {
		return false
	}
	return !slices.ContainsFunc(routes, func(route map[string]any) bool {
		for key := range route {
			if key != "name" && key != "route" && (key != "match" || !matchesAll(podmap.Maps(route[key]))) {
				return true
			}
		}
		to := podmap.Maps(route["route"])
		if len(to) != 1 || len(podmap.MapAt(to[0], "headers")) > 0 {
			return true
		}
		destination := podmap.MapAt(to[0], "destination")
		return destination["subset"] != nil || !same(destination)
	})
}

// matchesAll reports whether one of the matches of a route takes every request, since each path begins with a slash.
func matchesAll(matches []map[string]any) bool {
	return slices.ContainsFunc(matches, func(match map[string]any) bool {
		for key := range match {
			if key != "name" && key != "uri" {
				return false
			}
		}
		uri := podmap.MapAt(match, "uri")
		return len(uri) == 0 || len(uri) == 1 && uri["prefix"] == "/"
	})
}
