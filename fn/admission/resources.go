// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prerig/prerig/fn/quantity"
)

// canonicalizeFieldQuantities writes the quantities in a field of a map as Kubernetes writes them, 1000m as 1, and
// rounds them up to a thousandth, and null as the 0 that Kubernetes reads it as. What is no quantity stays.
func canonicalizeFieldQuantities(m map[string]any, key string) {
	list, _ := m[key].(map[string]any)
	for name, v := range list {
		if v == nil {
			list[name] = "0"
			continue
		}
		if q, ok := parseQuantityValue(v); ok {
			q.RoundUp(resource.Milli)
			list[name] = q.String()
		}
	}
}

// parseQuantityValue reads a value of a map as a quantity.
func parseQuantityValue(v any) (resource.Quantity, bool) {
	switch v.(type) {
	case string, int64, float64:
		q, err := quantity.Parse(fmt.Sprint(v))
		return q, err == nil
	}
	return resource.Quantity{}, false
}

// requestLimits sets missing requests of a container to its limits.
func requestLimits(c map[string]any) {
	resources, _ := c["resources"].(map[string]any)
	limits, _ := resources["limits"].(map[string]any)
	if len(limits) == 0 {
		return
	}
	requests, ok := resources["requests"].(map[string]any)
	if !ok {
		if resources["requests"] != nil {
			return
		}
		requests = map[string]any{}
		resources["requests"] = requests
	}
	for name, v := range limits {
		if _, ok := requests[name]; !ok {
			requests[name] = v
		}
	}
}

// hugePages begins the names of the resources that are big pages of memory.
const hugePages = "hugepages-"

// defaultPodResources sets requests, and limits of huge pages, of the pod as a whole from those of its containers, if
// it has limits of its own (source: defaultPodRequests and defaultHugePagePodLimits in defaults.go).
func defaultPodResources(spec, own map[string]any) {
	limits, _ := own["limits"].(map[string]any)
	requests, _ := own["requests"].(map[string]any)
	if len(limits)+len(requests) == 0 {
		return
	}
	add := func(key string, to *map[string]any, name string, v any) {
		if _, ok := (*to)[name]; ok {
			return
		}
		if *to == nil {
			*to = map[string]any{}
		}
		(*to)[name] = v
		own[key] = *to
	}
	for name, sum := range sumOfContainers(spec, "limits") {
		if _, asked := requests[name]; !asked && strings.HasPrefix(name, hugePages) {
			add("limits", &limits, name, sum.String())
		}
	}
	if len(limits) == 0 {
		return
	}
	for name, sum := range sumOfContainers(spec, "requests") {
		if name == "cpu" || name == "memory" {
			add("requests", &requests, name, sum.String())
		}
	}
	for name, v := range limits {
		if name == "cpu" || name == "memory" || strings.HasPrefix(name, hugePages) {
			add("requests", &requests, name, v)
		}
	}
}

// sumOfContainers is what a pod needs of each resource at its most: all its containers and sidecars together, or an
// init container with the sidecars that have started before it (source: AggregateContainerRequests in
// k8s.io/component-helpers/resource).
func sumOfContainers(spec map[string]any, key string) map[string]resource.Quantity {
	total, sidecars, start := map[string]resource.Quantity{}, map[string]resource.Quantity{}, map[string]resource.Quantity{}
	forEachMapElement(spec["containers"], func(c map[string]any) { addContainerResources(total, c, key) })
	forEachMapElement(spec["initContainers"], func(c map[string]any) {
		at := map[string]resource.Quantity{}
		if c["restartPolicy"] == "Always" {
			addContainerResources(total, c, key)
			addContainerResources(sidecars, c, key)
		} else {
			addContainerResources(at, c, key)
		}
		for name, q := range sidecars {
			sum := at[name]
			sum.Add(q)
			at[name] = sum
		}
		atLeast(start, at)
	})
	atLeast(total, start)
	return total
}

// addContainerResources adds a container's limits or requests.
func addContainerResources(sum map[string]resource.Quantity, c map[string]any, key string) {
	resources, _ := c["resources"].(map[string]any)
	list, _ := resources[key].(map[string]any)
	for name, v := range list {
		q, ok := parseQuantityValue(v)
		if !ok {
			continue
		}
		if had, ok := sum[name]; ok {
			had.Add(q)
			q = had
		}
		sum[name] = q
	}
}

// atLeast raises quantities to those of another list.
func atLeast(to, other map[string]resource.Quantity) {
	for name, q := range other {
		if had, ok := to[name]; !ok || q.Cmp(had) > 0 {
			to[name] = q
		}
	}
}
