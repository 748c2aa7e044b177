// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import "maps"

// LimitRange is what a LimitRange object makes the API server fill in for the containers of its namespace. It does
// not cover what the object rejects, or its rules for whole pods and claims.
type LimitRange struct {
	// Limits and Requests are quantities by the name of their resource.
	Limits, Requests map[string]any
}

// NewLimitRange reads a LimitRange object, which may lack the defaults that the API server sets on it: a limit is
// then the maximum, a request the limit or otherwise the minimum (source: SetDefaults_LimitRangeItem in
// pkg/apis/core/v1/defaults.go and defaultContainerResourceRequirements in
// plugin/pkg/admission/limitranger/admission.go of k8s.io/kubernetes). A value of a wrong type counts as missing.
func NewLimitRange(obj map[string]any) LimitRange {
	out := LimitRange{Limits: map[string]any{}, Requests: map[string]any{}}
	spec, _ := obj["spec"].(map[string]any)
	forEachMapElement(spec["limits"], func(item map[string]any) {
		if item["type"] != "Container" {
			return
		}
		field := func(key string) map[string]any {
			canonicalizeFieldQuantities(item, key)
			values, _ := item[key].(map[string]any)
			return values
		}
		limits := map[string]any{}
		for _, key := range []string{"max", "default"} {
			maps.Copy(limits, field(key))
		}
		requests := maps.Clone(field("min"))
		if requests == nil {
			requests = map[string]any{}
		}
		maps.Copy(requests, limits)
		maps.Copy(requests, field("defaultRequest"))
		maps.Copy(out.Limits, limits)
		maps.Copy(out.Requests, requests)
	})
	return out
}

// WithLimits returns the same server for a namespace that has these LimitRanges. Of several that name the same resource
// the first one counts; an API server has them in no order.
func (s Server) WithLimits(ranges []LimitRange) Server {
	s.limits = ranges
	return s
}

// fillResources sets the missing requests and limits of a container for which a LimitRange has a value (source:
// mergeContainerResources in plugin/pkg/admission/limitranger/admission.go of k8s.io/kubernetes).
func (l LimitRange) fillResources(c map[string]any) {
	resources, ok := c["resources"].(map[string]any)
	if !ok {
		return
	}
	for key, values := range map[string]map[string]any{"limits": l.Limits, "requests": l.Requests} {
		own, ok := resources[key].(map[string]any)
		if !ok {
			if resources[key] != nil || len(values) == 0 {
				continue
			}
			own = map[string]any{}
			resources[key] = own
		}
		for name, v := range values {
			setValueIfAbsent(own, name, v)
		}
	}
}
