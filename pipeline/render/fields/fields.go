// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package fields finds the fields in which two states of a pod differ, and names them by paths with the names of list
// elements: spec.containers[web].image.
package fields

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

const (
	// TokenVolume is what the volume with the token of a service account is called; the API server draws the letters behind it.
	TokenVolume = "kube-api-access-"
	// DrawnSuffix replaces the letters that an API server draws.
	DrawnSuffix = "x2n4b"
)

// Change is a field in which two states differ.
type Change struct {
	// Path of the field, with the names of list elements.
	Path string
	// Before and After are the values; nil for none.
	Before, After any
}

// Differences returns the fields in which two pods differ, in their order.
func Differences(before, after map[string]any) []Change {
	old, now := map[string]any{}, map[string]any{}
	flatten(old, "", before)
	flatten(now, "", after)
	var out []Change
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if was, ok := old[path]; (!ok || !reflect.DeepEqual(was, now[path])) && !isFilled(now[path], path, old) {
			out = append(out, Change{Path: path, Before: was, After: now[path]})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(old)) {
		if _, ok := now[path]; !ok && !isFilled(old[path], path, now) {
			out = append(out, Change{Path: path, Before: old[path]})
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// isFilled reports whether a value is a map without fields, and the other state has fields in it: they are the difference.
func isFilled(value any, path string, other map[string]any) bool {
	if m, ok := value.(map[string]any); !ok || len(m) > 0 {
		return false
	}
	for field := range other {
		if below, ok := strings.CutPrefix(field, path); ok && below != "" && strings.ContainsRune(".[", rune(below[0])) {
			return true
		}
	}
	return false
}

// identities are the fields that tell the elements of lists apart, by the name of the list.
var identities = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "ephemeralContainers": {"name"}, "volumes": {"name"}, "env": {"name"},
	"volumeMounts": {"mountPath"}, "volumeDevices": {"devicePath"}, "ports": {"containerPort", "protocol"}, "imagePullSecrets": {"name"},
	"hostAliases": {"ip"}, "topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"}, "readinessGates": {"conditionType"},
	"schedulingGates": {"name"}, "resourceClaims": {"name"}, "sysctls": {"name"}, "resizePolicy": {"resourceName"},
	"tolerations": {"key", "operator", "value", "effect"}, "ownerReferences": {"kind", "name"},
}

// flatten notes the leaves of a value by their paths.
func flatten(out map[string]any, path string, value any) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		if len(v) == 0 && path != "" {
			out[path] = v
		}
		for key, child := range v {
			flatten(out, joinPath(path, key), child)
		}
	case []any:
		flattenList(out, path, v)
	default:
		out[path] = v
	}
}

func flattenList(out map[string]any, path string, list []any) {
	keys := identities[path[strings.LastIndexByte(path, '.')+1:]]
	seen := map[string]int{}
	for i, child := range list {
		name := fmt.Sprint(i)
		if fields, ok := child.(map[string]any); ok && len(keys) > 0 {
			var parts []string
			for _, key := range keys {
				switch {
				case fields[key] != nil:
					parts = append(parts, fmt.Sprint(fields[key]))
				case key == "protocol":
					parts = append(parts, "TCP") // its default, so that a defaulted port is the same element
				}
			}
			name = strings.Join(parts, "/")
			if seen[name]++; seen[name] > 1 {
				name += fmt.Sprintf("#%d", seen[name])
			}
		}
		flatten(out, path+"["+name+"]", child)
	}
}

func joinPath(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]"):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	}
	return path + "." + key
}
