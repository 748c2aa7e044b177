// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/strict"
)

func isConfigMap(obj map[string]any) bool {
	return obj["apiVersion"] == "v1" && obj["kind"] == "ConfigMap"
}

// configMapPaths are the keys that a v1 ConfigMap may have as the functionConfig, with the path of the field of the policy that each of
// them sets. kpt makes such a ConfigMap from "kpt fn eval -- key=value" and from configMap in a Kptfile. One without any
// key is rejected. If neither builtIn nor configMap is set, builtIn is istio.
var configMapPaths = map[string][]string{
	"mode":              {"spec", "mode"},
	"record":            {"spec", "record"},
	"defaultNamespace":  {"spec", "defaultNamespace"},
	"targetNamespace":   {"spec", "targetNamespace"},
	"unknownNamespace":  {"spec", "unknownNamespace"},
	"version":           {"spec", "istio", "version"},
	"revision":          {"spec", "istio", "revision"},
	"cluster":           {"spec", "istio", "cluster"},
	"network":           {"spec", "istio", "network"},
	"nativeSidecars":    {"spec", "istio", "nativeSidecars"},
	"kubernetesVersion": {"spec", "istio", "kubernetesVersion"},
	"admission":         {"spec", "istio", "admission"},
	"runtimeWebhook":    {"spec", "istio", "runtimeWebhook"},
	"builtIn":           {"spec", "istio", "injector", "builtIn"},
	"configMap":         {"spec", "istio", "injector", "configMap", "name"},
	"hub":               {"spec", "istio", "injector", "overrides", "global", "hub"},
	"tag":               {"spec", "istio", "injector", "overrides", "global", "tag"},
}

// fromConfigMap builds the policy that the keys of a ConfigMap describe.
func (ps *problems) fromConfigMap(obj map[string]any) *InjectionPolicy {
	p := &InjectionPolicy{}
	policy := map[string]any{"apiVersion": APIVersion, "kind": Kind}
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if name == "" {
		name = "function-input"
	}
	policy["metadata"] = map[string]any{"name": name}
	setNestedValue(policy, []string{"spec", "istio"}, map[string]any{})
	data, ok := obj["data"].(map[string]any)
	if !ok && obj["data"] != nil {
		ps.WrongType([]any{"data"}, obj["data"], "a map")
		return p
	}
	if len(data) == 0 {
		ps.Add([]any{"data"}, "is empty: a ConfigMap is a policy only with at least one of the keys %s; for anything else write an %s",
			strings.Join(slices.Sorted(maps.Keys(configMapPaths)), ", "), Kind)
		return p
	}
	if data["builtIn"] == nil && data["configMap"] == nil {
		setNestedValue(policy, configMapPaths["builtIn"], "istio")
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		path, ok := configMapPaths[key]
		text, isText := data[key].(string)
		switch {
		case !ok:
			suggestion := strict.DidYouMean(key, slices.Sorted(maps.Keys(configMapPaths)))
			if suggestion == "" {
				suggestion = "; known keys are " + strings.Join(slices.Sorted(maps.Keys(configMapPaths)), ", ") + "; for anything else write an " + Kind
			}
			ps.Add([]any{"data", key}, "unknown key%s", suggestion)
		case !isText:
			ps.WrongType([]any{"data", key}, data[key], "a string")
		case text == "":
			ps.Add([]any{"data", key}, "is empty")
		default:
			setNestedValue(policy, path, text)
		}
	}
	before := len(ps.List)
	ps.decodeAPIObject(nil, policy, p)
	for i := range ps.List[before:] { // What is wrong with a value is wrong with the key that gave it.
		problem := &ps.List[before+i]
		for key, path := range configMapPaths {
			if problem.Field() == strings.Join(path, ".") {
				problem.Path = []any{"data", key}
			}
		}
	}
	return p
}

// setNestedValue puts a value at a path of maps, which are made where they are missing.
func setNestedValue(m map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		next, ok := m[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[key] = next
		}
		m = next
	}
	m[path[len(path)-1]] = value
}
