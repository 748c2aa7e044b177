// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// hasResourceAmount reports whether the resources of a container or of a pod have a request or a limit. Kubernetes uses
// a limit as the request if none is set.
func hasResourceAmount(resources map[string]any, which, name string) bool {
	limit := podmap.MapAt(resources, "limits")[name] != nil
	return limit || which == "requests" && podmap.MapAt(resources, "requests")[name] != nil
}

// hasInjectedContainers reports whether something is injected into the pod.
func (s *Summary) hasInjectedContainers() bool {
	return slices.ContainsFunc(s.containers, func(c containerSummary) bool { return c.injected })
}

// hasDefault reports whether a LimitRange of the scope sets a value on containers without one: default (for limits
// and, if unset, for requests), defaultRequest, or max. Source: SetDefaults_LimitRangeItem in
// pkg/apis/core/v1/defaults.go of Kubernetes.
func (s *workloadSet) hasDefault(in, which, name string) bool {
	for _, l := range s.objects["LimitRange"] {
		if l.scope != in {
			continue
		}
		for _, item := range podmap.Maps(l.spec["limits"]) {
			if textOf(item["type"]) != "Container" {
				continue
			}
			fields := []string{"default", "max"}
			if which == "requests" {
				fields = append(fields, "defaultRequest", "min")
			}
			for _, field := range fields {
				if podmap.MapAt(item, field)[name] != nil {
					return true
				}
			}
		}
	}
	return false
}

func checkAutoscalers(s *workloadSet) []setFinding {
	var out []setFinding
	for _, h := range s.objects["HorizontalPodAutoscaler"] {
		target := podmap.MapAt(h.spec, "scaleTargetRef")
		for _, pod := range s.index.byName[h.scope+"\x00"+textOf(target["name"])] {
			if pod.ref.Kind != textOf(target["kind"]) || !pod.hasInjectedContainers() {
				continue
			}
			for _, name := range utilizationResourceNames(h.spec) {
				if who := pod.withoutRequest(name); who != "" && !s.hasDefault(h.scope, "requests", name) {
					out = append(out, h.newFinding("spec.scaleTargetRef", fmt.Sprintf("it scales by the utilization of %s, and %s no %s: nothing is scaled", name, who, name)))
				}
			}
		}
	}
	return out
}

// withoutRequest names what has no request for a resource, such as "container app of Deployment web requests", or
// returns "" if an autoscaler has all that it needs. For a pod with resources of its own it uses the pod's request,
// otherwise the sum of the containers' requests. Source: calculateRequests in
// pkg/controller/podautoscaler/replica_calculator.go of Kubernetes.
func (s *Summary) withoutRequest(name string) string {
	var missing []string
	requested := hasResourceAmount(s.resources, "requests", name)
	for _, c := range s.containers {
		switch {
		case hasResourceAmount(c.resources, "requests", name):
			requested = true
		case !c.init || c.native:
			missing = append(missing, c.name)
		}
	}
	if s.resources != nil {
		if requested {
			return ""
		}
		return s.ref.String() + " requests"
	}
	switch len(missing) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("container %s of %s requests", missing[0], s.ref)
	}
	return fmt.Sprintf("containers %s of %s request", strings.Join(missing, " and "), s.ref)
}

// utilizationResourceNames returns the resources whose utilization an autoscaler asks for, in all versions of the API:
// of the whole pod, not of one container. Without any metric it is that of cpu.
func utilizationResourceNames(spec map[string]any) []string {
	if len(podmap.Maps(spec["metrics"])) == 0 {
		return []string{"cpu"}
	}
	var out []string
	for _, m := range podmap.Maps(spec["metrics"]) {
		r := podmap.MapAt(m, "resource")
		if textOf(m["type"]) == "Resource" && (podmap.MapAt(r, "target")["averageUtilization"] != nil || r["targetAverageUtilization"] != nil) {
			out = append(out, textOf(r["name"]))
		}
	}
	return out
}

func checkLimitRanges(s *workloadSet) []setFinding {
	var out []setFinding
	for _, l := range s.objects["LimitRange"] {
		for _, item := range podmap.Maps(l.spec["limits"]) {
			if textOf(item["type"]) != "Container" {
				continue
			}
			for _, pod := range s.index.byScope[l.scope] {
				for _, c := range pod.containers {
					if message := describeLimitViolations(item, c); c.injected && message != "" {
						out = append(out, pod.newFinding(c, l, message))
					}
				}
			}
		}
	}
	return out
}

// newFinding is about the resources of a container, which an object of its namespace forbids. The object ends the message.
func (s *Summary) newFinding(c containerSummary, against *objectFacts, message string) setFinding {
	return setFinding{
		ref: s.ref, file: s.file, ignored: s.ignored, container: c.name, field: &result.Field{Path: c.path + ".resources"},
		message: fmt.Sprintf("%s %s: the API server refuses the pod", message, against),
	}
}

// describeLimitViolations describes which of a container's values are outside of a LimitRange's item, or returns "" if
// none are.
func describeLimitViolations(item map[string]any, c containerSummary) string {
	limits, requests := podmap.MapAt(c.resources, "limits"), podmap.MapAt(c.resources, "requests")
	for _, name := range []string{"cpu", "memory"} {
		if most, have := podmap.MapAt(item, "max")[name], limits[name]; exceedsQuantity(have, most) {
			return fmt.Sprintf("container %s has a %s limit of %v, above %v of", c.name, name, have, most)
		}
		have := requests[name]
		if have == nil {
			have = limits[name]
		}
		if least := podmap.MapAt(item, "min")[name]; exceedsQuantity(least, have) {
			return fmt.Sprintf("container %s requests %v of %s, below %v of", c.name, have, name, least)
		}
	}
	return ""
}

// exceedsQuantity reports whether a quantity exceeds another; false if one is missing or invalid.
func exceedsQuantity(a, b any) bool {
	x, ok1 := quantityOf(a)
	y, ok2 := quantityOf(b)
	return ok1 && ok2 && x.Cmp(y) > 0
}

// quotaKeys are the names of a quota's hard limits that every container has to set.
var quotaKeys = []struct{ key, which, resource string }{
	{"limits.cpu", "limits", "cpu"}, {"limits.memory", "limits", "memory"},
	{"requests.cpu", "requests", "cpu"}, {"cpu", "requests", "cpu"},
	{"requests.memory", "requests", "memory"}, {"memory", "requests", "memory"},
}

func checkQuotas(s *workloadSet) []setFinding {
	var out []setFinding
	for _, q := range s.objects["ResourceQuota"] {
		if q.spec["scopes"] != nil || q.spec["scopeSelector"] != nil {
			continue
		}
		hard := podmap.MapAt(q.spec, "hard")
		for _, pod := range s.index.byScope[q.scope] {
			if pod.resources != nil {
				continue // see Constraints in pkg/quota/v1/evaluator/core/pods.go of Kubernetes
			}
			for _, c := range pod.containers {
				var missing []string
				for _, k := range quotaKeys {
					if hard[k.key] != nil && c.injected && !hasResourceAmount(c.resources, k.which, k.resource) && !s.hasDefault(q.scope, k.which, k.resource) {
						missing = append(missing, k.key)
					}
				}
				if len(missing) > 0 {
					out = append(out, pod.newFinding(c, q, fmt.Sprintf("container %s does not say %s, as it has to by", c.name, strings.Join(missing, " and "))))
				}
			}
		}
	}
	return out
}
