// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/quantity"
	"github.com/prerig/prerig/fn/strict"
)

// overrideCheck describes which values an override may have.
type overrideCheck struct {
	path  []string
	right func(string) bool
	want  string
	words []string // the single words that it may be, for suggestions
}

var pullPolicies = []string{"Always", "IfNotPresent", "Never"}

// overrideChecks are the values with a closed set. The templates print them as they are, and what reads them in the cluster
// rejects others: Envoy, Istio's agent, and the API server.
var overrideChecks = []overrideCheck{
	{[]string{"global", "proxy", "logLevel"}, feature.IsProxyLevel, "one of " + strings.Join(feature.ProxyLevels, ", "), feature.ProxyLevels},
	{[]string{"global", "proxy", "componentLogLevel"}, feature.AreProxyLevels,
		"COMPONENT:LEVEL, such as misc:error, with a level of " + strings.Join(feature.ProxyLevels, ", "), nil},
	{[]string{"global", "logging", "level"}, feature.AreAgentLevels,
		"SCOPE:LEVEL, such as default:info, with a level of " + strings.Join(feature.AgentLevels, ", "), nil},
	{[]string{"global", "imagePullPolicy"}, isPullPolicy, "one of " + strings.Join(pullPolicies, ", "), pullPolicies},
}

func isPullPolicy(s string) bool { return s == "" || slices.Contains(pullPolicies, s) }

// resourceOverrides are the overrides with the resources of a container.
var resourceOverrides = [][]string{{"global", "proxy", "resources"}, {"global", "proxy_init", "resources"}}

// checkOverrideValues rejects overrides that no cluster accepts. The error names the override, where a check of the injected
// pod would name each workload.
func checkOverrideValues(overrides map[string]any) error {
	for _, check := range overrideChecks {
		value, ok := valueAt(overrides, check.path)
		if !ok || value == nil {
			continue
		}
		if text, isText := value.(string); !isText || !check.right(text) {
			return overrideError(check.path, "must be %s, is %s%s", check.want, strict.Describe(value),
				strict.DidYouMean(fmt.Sprint(value), check.words))
		}
	}
	for _, path := range resourceOverrides {
		value, _ := valueAt(overrides, path)
		resources, _ := value.(map[string]any)
		if err := checkResourceOverrides(resources, path); err != nil {
			return err
		}
	}
	return nil
}

// containerResources are the resources of containers whose names have no domain.
var containerResources = []string{"cpu", "memory", "ephemeral-storage"}

// checkResourceOverrides checks the requests and limits of a container.
func checkResourceOverrides(resources map[string]any, at []string) error {
	for _, kind := range []string{"requests", "limits"} {
		amounts, _ := resources[kind].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			path := slices.Concat(at, []string{kind, name})
			if !slices.Contains(containerResources, name) && !strings.Contains(name, "/") && !strings.HasPrefix(name, "hugepages-") {
				return overrideError(path, "is not a resource of a container%s; the resources are %s",
					strict.DidYouMean(name, containerResources), strings.Join(containerResources, ", "))
			}
			if amounts[name] == nil {
				continue
			}
			if _, err := quantity.Parse(fmt.Sprint(amounts[name])); err != nil {
				return overrideError(path, "must be a quantity such as 100m or 128Mi, is %s", strict.Describe(amounts[name]))
			}
		}
	}
	return nil
}

// valueAt returns the value at a path of keys.
func valueAt(values map[string]any, path []string) (value any, ok bool) {
	value = values
	for _, key := range path {
		below, isMap := value.(map[string]any)
		if !isMap {
			return nil, false
		}
		if value, ok = below[key]; !ok {
			return nil, false
		}
	}
	return value, true
}

// dottedKey returns the mapping that a key with dots means to helm --set, or "".
func dottedKey(key string) string {
	parts := strings.Split(key, ".")
	if len(parts) < 2 || slices.Contains(parts, "") {
		return ""
	}
	return strings.Join(parts, ": {") + ": …" + strings.Repeat("}", len(parts)-1)
}
