// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"time"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// endingOf is what rules on a set need of how a pod ends.
type ending struct {
	// closes is the container whose server closes its listeners at once, without a preStop hook, or empty if none
	// does.
	closes, closesPath string
	// gateway reports whether the proxy is a gateway, which ends after proxyEnd.
	gateway  bool
	proxyEnd time.Duration
}

func endingOf(p *pod) ending {
	var out ending
	if p.servesLocalApplication() && len(checkListenerClosesAtOnce(p)) == 0 {
		for _, c := range p.applicationContainers() {
			if c.closesAtOnce() && !c.lifecycleHook("preStop").exists {
				out.closes, out.closesPath = c.name, c.path
				break
			}
		}
	}
	if p.proxy != nil && slices.Contains(p.proxy.stringList("args"), "router") {
		h := p.proxy.lifecycleHook("preStop")
		out.gateway = !h.exists || h.wait > 0 // the duration of any other hook is unknown
		out.proxyEnd = h.wait + drainTime(p)
	}
	return out
}

func checkEndpointRemoval(s *workloadSet) []setFinding {
	seen := map[*Summary]bool{}
	var out []setFinding
	for _, f := range s.services {
		for _, pod := range f.selected {
			if pod.ending.closes == "" || seen[pod] {
				continue
			}
			seen[pod] = true
			path := pod.ending.closesPath
			if pod.template != "" {
				path = pod.template + "." + path
			}
			out = append(out, setFinding{
				ref: pod.ref, file: pod.file, ignored: pod.ignored, container: pod.ending.closes, field: &result.Field{Path: path},
				message: fmt.Sprintf("container %s stops listening on SIGTERM, and Service %s still sends requests there for some seconds", pod.ending.closes, f.Name),
			})
		}
	}
	return out
}

// podTargets are annotations of Services by which a cloud's load balancer sends clients to pods and not to nodes.
var podTargets = map[string]string{
	"service.beta.kubernetes.io/aws-load-balancer-nlb-target-type": "ip",
}

func checkLoadBalancerDelay(s *workloadSet) []setFinding {
	var out []setFinding
	for _, f := range s.services {
		if textOf(f.spec["type"]) != "LoadBalancer" {
			continue
		}
		meta, _ := f.Object.Object["metadata"].(map[string]any)
		how := ""
		if textOf(f.spec["externalTrafficPolicy"]) == "Local" {
			how = "externalTrafficPolicy: Local"
		}
		for key, value := range podTargets {
			if stringMap(meta["annotations"])[key] == value {
				how = key + ": " + value
			}
		}
		i := slices.IndexFunc(f.selected, func(pod *Summary) bool { return pod.ending.gateway && pod.ending.proxyEnd <= defaultTerminationDrain })
		if how == "" || i < 0 {
			continue
		}
		pod := f.selected[i]
		out = append(out, f.newFinding(&result.Field{Path: "spec"}, fmt.Sprintf("the load balancer sends clients to the gateways themselves (%s), and the proxy of %s ends %s after SIGTERM",
			how, pod.ref, formatSeconds(pod.ending.proxyEnd))))
	}
	return out
}

// checkDisruptionBudgets looks only at workloads with a proxy. Replicas count where they are written, or an autoscaler is among the objects.
func checkDisruptionBudgets(s *workloadSet) []setFinding {
	var out []setFinding
	for _, b := range s.objects["PodDisruptionBudget"] {
		selector := podmap.MapAt(b.spec, "selector")
		var pods []*Summary
		for _, pod := range s.index.byScope[b.scope] {
			if len(selector) > 0 && pod.proxy && selectsLabels(selector, pod.labels) {
				pods = append(pods, pod)
			}
		}
		if len(pods) == 0 {
			continue
		}
		field, said := s.blocksEviction(b, pods)
		if field == "" {
			continue
		}
		one := b.newFinding("spec."+field, fmt.Sprintf("%s allows no pod of %s to be evicted: nodes cannot be drained", said, pods[0].ref))
		one.field.CurrentValue = b.spec[field]
		out = append(out, one)
	}
	return out
}

// blocksEviction returns the field that prevents the eviction of any pod, and its value.
func (s *workloadSet) blocksEviction(b *objectFacts, pods []*Summary) (field, said string) {
	if n, ok := integerOf(b.spec["maxUnavailable"]); ok && n == 0 || textOf(b.spec["maxUnavailable"]) == "0%" {
		return "maxUnavailable", "maxUnavailable: 0"
	}
	if textOf(b.spec["minAvailable"]) == "100%" {
		return "minAvailable", "minAvailable: 100%"
	}
	least, ok := integerOf(b.spec["minAvailable"])
	if !ok || least < 1 {
		return "", ""
	}
	var sum int64
	for _, pod := range pods {
		n, known := s.replicasOf(pod)
		if !known {
			return "", ""
		}
		sum += n
	}
	if sum == 0 || least < sum {
		return "", ""
	}
	return "minAvailable", fmt.Sprintf("minAvailable: %d of %d", least, sum)
}

// Replicas returns the number of pods a workload asks for, for [Input], or nil if unset.
func Replicas(obj map[string]any) *int64 {
	n, ok := integerOf(podmap.MapAt(obj, "spec")["replicas"])
	if !ok {
		return nil
	}
	return &n
}

// replicasOf returns the minimum number of pods of a workload: by its autoscaler, or otherwise by its own field.
func (s *workloadSet) replicasOf(pod *Summary) (int64, bool) {
	for _, h := range s.objects["HorizontalPodAutoscaler"] {
		target := podmap.MapAt(h.spec, "scaleTargetRef")
		if h.scope != serviceLookupScope(pod.ref.Namespace, pod.file) || textOf(target["kind"]) != pod.ref.Kind || textOf(target["name"]) != pod.ref.Name {
			continue
		}
		if n, ok := integerOf(h.spec["minReplicas"]); ok {
			return n, true
		}
		return 1, true
	}
	if pod.replicas == nil {
		return 0, false
	}
	return *pod.replicas, true
}
