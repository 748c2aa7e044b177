// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// layer4Keys are the keys of conditions that ztunnel reads. connection.sni is not among them, although it is no attribute of a request.
// Source: l4WhenAttributes in pilot/pkg/serviceregistry/ambient/authorization.go.
var layer4Keys = []string{"source.ip", "source.namespace", "source.principal", "destination.ip", "destination.port"}

// The fields of operations and sources that need layer 7. Source: httpOperations and httpSources in the same file.
var (
	layer7Operations = []string{"hosts", "notHosts", "methods", "notMethods", "paths", "notPaths"}
	layer7Sources    = []string{"remoteIpBlocks", "notRemoteIpBlocks", "requestPrincipals", "notRequestPrincipals"}
	// peerFields describe the peer of the connection, which behind a waypoint is the waypoint.
	peerFields = []string{
		"principals", "notPrincipals", "namespaces", "notNamespaces", "serviceAccounts", "notServiceAccounts", "ipBlocks", "notIpBlocks",
	}
	portFields = []string{"ports", "notPorts"}
)

// TargetReference is one of a policy's targetRefs.
type TargetReference struct{ Group, Kind, Name, Namespace, Path string }

// Targets returns the targetRefs of a policy's spec, or the older targetRef.
func Targets(spec map[string]any) []TargetReference {
	var out []TargetReference
	for i, m := range podmap.Maps(spec["targetRefs"]) {
		out = append(out, newTarget(m, fmt.Sprintf("spec.targetRefs[%d]", i)))
	}
	if m, ok := spec["targetRef"].(map[string]any); ok && len(out) == 0 {
		out = append(out, newTarget(m, "spec.targetRef"))
	}
	return out
}

func newTarget(m map[string]any, path string) TargetReference {
	text := func(key string) string { s, _ := m[key].(string); return s }
	t := TargetReference{Group: text("group"), Kind: text("kind"), Name: text("name"), Namespace: text("namespace"), Path: path}
	if t.Group == "core" {
		t.Group = ""
	}
	return t
}

// Action returns the action of an AuthorizationPolicy; ALLOW without one.
func Action(spec map[string]any) string {
	if action, _ := spec["action"].(string); action != "" {
		return action
	}
	return "ALLOW"
}

// Layer7Fields returns the paths of what an AuthorizationPolicy has that ztunnel cannot check, in the order of the rules.
func Layer7Fields(spec map[string]any) []string {
	return conditions(spec, layer7Operations, layer7Sources, func(key string) bool { return !slices.Contains(layer4Keys, key) })
}

// MatchesNothing reports whether ztunnel applies a DENY rule to no connection: of what it cannot check, an empty match is left, which it takes for
// one that matches nothing. Source: src/rbac.rs of ztunnel, and istio/istio#61126.
func MatchesNothing(rule map[string]any) bool {
	for _, when := range podmap.Maps(rule["when"]) {
		if key, _ := when["key"].(string); !slices.Contains(layer4Keys, key) {
			return true
		}
	}
	return onlyLayer7(rule["from"], "source", peerFields) || onlyLayer7(rule["to"], "operation", portFields)
}

// onlyLayer7 reports whether no item of a list has one of the fields.
func onlyLayer7(list any, item string, fields []string) bool {
	items := podmap.Maps(list)
	return len(items) > 0 && !slices.ContainsFunc(items, func(m map[string]any) bool {
		have, _ := m[item].(map[string]any)
		return slices.ContainsFunc(fields, func(name string) bool {
			values, _ := have[name].([]any)
			return len(values) > 0
		})
	})
}

// PeerFields returns the paths of what an AuthorizationPolicy has about the peer of a connection.
func PeerFields(spec map[string]any) []string {
	return conditions(spec, nil, peerFields, func(key string) bool {
		return key == "source.ip" || key == "source.namespace" || key == "source.principal"
	})
}

// PortFields returns the paths of what an AuthorizationPolicy has about the port of a connection: that of the pod at a sidecar and ztunnel,
// and that of the Service at a waypoint.
func PortFields(spec map[string]any) []string {
	return conditions(spec, portFields, nil, func(key string) bool {
		return key == "destination.port" || key == "destination.ip"
	})
}

func conditions(spec map[string]any, operations, sources []string, when func(string) bool) []string {
	var out []string
	for i, rule := range podmap.Maps(spec["rules"]) {
		at := fmt.Sprintf("spec.rules[%d]", i)
		for _, part := range []struct {
			list, item string
			fields     []string
		}{{"from", "source", sources}, {"to", "operation", operations}} {
			for j, m := range podmap.Maps(rule[part.list]) {
				fields, _ := m[part.item].(map[string]any)
				for _, name := range part.fields {
					if list, _ := fields[name].([]any); len(list) > 0 {
						out = append(out, fmt.Sprintf("%s.%s[%d].%s.%s", at, part.list, j, part.item, name))
					}
				}
			}
		}
		for j, m := range podmap.Maps(rule["when"]) {
			if key, _ := m["key"].(string); key != "" && when(key) {
				out = append(out, fmt.Sprintf("%s.when[%d].key", at, j))
			}
		}
	}
	return out
}
