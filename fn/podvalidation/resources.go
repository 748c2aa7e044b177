// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podvalidation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/quantity"
)

// checkResources checks the requests and limits of a container by themselves.
func (c *containerChecker) checkResources() {
	at, m := c.at.field("resources"), mapOf(c.container["resources"])
	limits, requests := mapOf(m["limits"]), mapOf(m["requests"])
	for _, list := range []struct {
		name   string
		values map[string]any
	}{{"limits", limits}, {"requests", requests}} {
		for _, name := range podmap.SortedKeys(list.values) {
			c.checkResourceQuantity(at.field(list.name), list.name, name, list.values[name])
		}
	}
	for _, name := range podmap.SortedKeys(requests) {
		if requests[name] == limits[name] || requests[name] == nil {
			continue
		}
		request, ok := parseQuantity(requests[name])
		limit, has := parseQuantity(limits[name])
		switch {
		case !ok:
		case has && request.Cmp(limit) > 0:
			c.addProblem(CodeAboveLimit, at, fmt.Sprint(requests[name]),
				"container %s requests %v of %s, above its limit of %v: the API server refuses the pod",
				at.container, requests[name], name, limits[name])
		case !allowsOvercommit(name) && (!has || request.Cmp(limit) != 0):
			c.rejectField(at.field("requests").key(name), requests[name],
				"the request %v of %s has to have an equal limit", requests[name], name)
		}
	}
}

// checkResourceQuantity checks one request or limit.
func (c *checker) checkResourceQuantity(at place, kind, name string, v any) {
	if v == nil {
		return
	}
	q, ok := parseQuantity(v)
	switch {
	case !ok:
		c.addProblem(CodeQuantity, place{path: at.path, container: at.container, named: at.named + name}, v,
			"container %s: %s of %s is %v, which is not a quantity", at.container, kind, name, v)
	case q.Sign() < 0:
		c.rejectField(at.key(name), v, "%s of %s is %v, which is negative", kind, name, v)
	}
	if strings.Contains(name, "/") || strings.HasPrefix(name, "hugepages-") {
		return
	}
	switch name {
	case "cpu", "memory", "ephemeral-storage":
	default:
		c.rejectField(at.key(name), nil, "%s is not a resource of a container", name)
	}
}

// parseQuantity reads a quantity as manifests have it.
func parseQuantity(v any) (resource.Quantity, bool) {
	switch v := v.(type) {
	case string:
		q, err := quantity.Parse(v)
		return q, err == nil
	case int64, float64, int:
		q, err := quantity.Parse(fmt.Sprint(v))
		return q, err == nil
	}
	return resource.Quantity{}, false
}

// allowsOvercommit reports whether a request may be lower than the limit: for Kubernetes' own resources but huge pages.
func allowsOvercommit(name string) bool {
	return (!strings.Contains(name, "/") || strings.Contains(name, "kubernetes.io/")) &&
		!strings.HasPrefix(name, "hugepages-")
}

// podLevel is the first minor version in which a pod has resources of its own by default.
const podLevel = 34

// podResources checks the resources of the pod as a whole against those of its containers (source:
// validatePodResourceConsistency, and AggregateContainerRequests in k8s.io/component-helpers/resource). A request that
// the pod does not have is defaulted from those of its containers.
func (c *checker) podResources(pod map[string]any) {
	if c.isBeforeMinor(podLevel) || len(mapOf(c.spec["resources"])) == 0 {
		return
	}
	version := ""
	if c.Minor != 0 {
		version = fmt.Sprintf("1.%d", c.Minor)
	}
	server, err := admission.NewServer(version)
	if err != nil {
		return
	}
	spec := podmap.CopyMap(c.spec)
	server.Default(map[string]any{"metadata": pod["metadata"], "spec": spec})
	own := mapOf(spec["resources"])
	requests, limits := mapOf(own["requests"]), mapOf(own["limits"])
	at := podPlace.field("resources")
	sums := sumPodResources(spec, "requests")
	for _, name := range podmap.SortedKeys(requests) {
		request, ok := parseQuantity(requests[name])
		if sum, has := sums[name]; ok && has && sum.Cmp(request) > 0 {
			c.addProblem(CodePodResources, at.field("requests").key(name), requests[name],
				"the containers request %s of %s together, and the pod as a whole requests %v: the API server refuses the pod",
				sum.String(), name, requests[name])
		}
		if limit, has := parseQuantity(limits[name]); ok && has && request.Cmp(limit) > 0 {
			c.addProblem(CodePodResources, at.field("limits").key(name), limits[name],
				"the containers request %s of %s together, and the limit of the pod as a whole is %v: the API server refuses the pod",
				request.String(), name, limits[name])
		}
	}
	pages := sumPodResources(spec, "limits")
	for _, name := range podmap.SortedKeys(limits) {
		limit, ok := parseQuantity(limits[name])
		if sum, has := pages[name]; ok && has && strings.HasPrefix(name, "hugepages-") && sum.Cmp(limit) > 0 {
			c.addProblem(CodePodResources, at.field("limits").key(name), limits[name],
				"the limits of the containers are %s of %s together, and that of the pod as a whole is %v: the API server refuses the pod",
				sum.String(), name, limits[name])
		}
		for i, e := range listOf(spec[podmap.Containers]) {
			m := mapOf(e)
			value := mapOf(mapOf(m["resources"])["limits"])[name]
			if one, has := parseQuantity(value); ok && has && one.Cmp(limit) > 0 {
				at := placeOfContainer(podmap.Containers, i, m).field("resources").field("limits").key(name)
				c.addProblem(CodePodResources, at, value,
					"the limit of container %s is %v of %s, and that of the pod as a whole is %v: the API server refuses the pod",
					at.container, value, name, limits[name])
			}
		}
	}
}

// sumPodResources sums requests or limits: those of the containers and of native sidecars, or what an init container
// needs beside the native sidecars before it, where that is more.
func sumPodResources(spec map[string]any, which string) map[string]resource.Quantity {
	sums, native, most := map[string]resource.Quantity{}, map[string]resource.Quantity{}, map[string]resource.Quantity{}
	add := func(to map[string]resource.Quantity, name string, q resource.Quantity) {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
	of := func(e any, do func(name string, q resource.Quantity)) {
		for name, v := range mapOf(mapOf(mapOf(e)["resources"])[which]) {
			if q, ok := parseQuantity(v); ok {
				do(name, q)
			}
		}
	}
	for _, e := range listOf(spec[podmap.Containers]) {
		of(e, func(name string, q resource.Quantity) { add(sums, name, q) })
	}
	for _, e := range listOf(spec[podmap.InitContainers]) {
		restarts := text(mapOf(e)["restartPolicy"]) == "Always"
		of(e, func(name string, q resource.Quantity) {
			if restarts {
				add(sums, name, q)
				add(native, name, q)
				return
			}
			need := native[name].DeepCopy()
			need.Add(q)
			if have := most[name]; need.Cmp(have) > 0 {
				most[name] = need
			}
		})
	}
	for name, need := range most {
		if have, ok := sums[name]; !ok || need.Cmp(have) > 0 {
			sums[name] = need
		}
	}
	return sums
}
