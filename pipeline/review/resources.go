// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// usage is what containers ask for together.
type usage struct{ requests, limits amounts }

// pair is a figure before and after.
type pair struct{ before, after float64 }

// resourceSums are what the workloads that change ask for.
type resourceSums struct {
	// proxies and applications are of all pods; nodeProxies and nodeApplications of one pod of each DaemonSet.
	proxies, applications, nodeProxies, nodeApplications [2]usage
	pods                                                 [2]float64
	workloads                                            int
	scaled, unset, onDemand, perNode                     int
}

// resourceChangesSection shows requests and limits before and after.
func (r *review) resourceChangesSection() section {
	sums := r.sumResources()
	s := section{title: "Requests and limits", what: "table"}
	rows, head := resourceRows("proxies", sums.proxies)
	more, _ := resourceRows("applications", sums.applications)
	rows = append(rows, more...)
	more, _ = resourceRows("proxies, on each node", sums.nodeProxies)
	rows = append(rows, more...)
	more, _ = resourceRows("applications, on each node", sums.nodeApplications)
	rows = append(rows, more...)
	if len(rows) == 0 {
		return s
	}
	var out strings.Builder
	out.WriteString("\n")
	if head != "" {
		fmt.Fprintf(&out, "**Proxies: %s requested**\n\n", head)
	}
	out.WriteString("| | before | after | change |\n|---|---|---|---|\n" + strings.Join(rows, ""))
	fmt.Fprintf(&out, "\nSum over %s that changed: %s before, %s after.%s\n", countWithNoun(sums.workloads, "workload"),
		countWithNoun(int(min(sums.pods[0], math.MaxInt32)),
			"pod"), formatNumber(sums.pods[1]), sums.describeUnknownReplicas())
	s.pieces = []piece{{rank: rankResources, forms: []string{out.String()}}}
	return s
}

// describeUnknownReplicas describes the workloads whose number of pods manifests do not specify.
func (s *resourceSums) describeUnknownReplicas() string {
	var parts []string
	add := func(n int, what, how string) {
		if n > 0 {
			parts = append(parts, countWithNoun(n, what)+" "+how)
		}
	}
	add(s.scaled, "workload", "with an autoscaler: counted with its least number of pods")
	add(s.unset, "workload", "without a number of replicas: counted as one pod")
	add(s.onDemand, "workload", "that runs at times (Job, CronJob): counted as running")
	add(s.perNode, "DaemonSet", "not in the sums: one pod on each node")
	if len(parts) == 0 {
		return ""
	}
	return " Not known exactly: " + strings.Join(parts, "; ") + "."
}

func (r *review) sumResources() *resourceSums {
	sums := &resourceSums{}
	pick := []func(*object) *side{func(o *object) *side { return o.before }, func(o *object) *side { return o.after }}
	least := []map[string]float64{r.minimumAutoscaledReplicas(pick[0]), r.minimumAutoscaledReplicas(pick[1])}
	for _, o := range r.objects {
		counted := false
		for i := range pick {
			s := pick[i](o)
			containers := containersOfObject(r.registry, s)
			if len(containers) == 0 {
				continue
			}
			m := s.meta
			var scaledTo *float64
			if n, ok := least[i][scaleKey(o.pipeline, m.Namespace, m.Kind, m.Name)]; ok {
				scaledTo = &n
			}
			scale := scaleOf(s, scaledTo)
			sums.addContainers(i, containers, scale)
			if !counted {
				sums.countWorkloadScale(scale)
				counted = true
			}
		}
	}
	return sums
}

func (s *resourceSums) countWorkloadScale(one scale) {
	s.workloads++
	switch {
	case one.scaled:
		s.scaled++
	case one.unset:
		s.unset++
	case one.onDemand:
		s.onDemand++
	case one.perNode:
		s.perNode++
	}
}

func (s *resourceSums) addContainers(side int, containers []container, one scale) {
	proxies, applications := &s.proxies[side], &s.applications[side]
	if one.perNode {
		proxies, applications = &s.nodeProxies[side], &s.nodeApplications[side]
	} else {
		s.pods[side] += one.pods
	}
	for _, c := range containers {
		if !c.runs {
			continue
		}
		to := applications
		if c.injected {
			to = proxies
		}
		to.requests.addScaledAmounts(c.requests, one.pods)
		to.limits.addScaledAmounts(c.limits, one.pods)
	}
}

// resourceRows returns the rows of a table that differ; head summarizes the increase or decrease of requests.
func resourceRows(who string, u [2]usage) (rows []string, head string) {
	cpu := func(v float64) string { return formatNumber(v) + " vCPU" }
	var heads []string
	for _, row := range []struct {
		what   string
		pair   pair
		format func(float64) string
		asked  bool
	}{
		{"CPU requested", pair{u[0].requests.cpu, u[1].requests.cpu}, cpu, true},
		{"memory requested", pair{u[0].requests.memory, u[1].requests.memory}, formatBytes, true},
		{"CPU limits", pair{u[0].limits.cpu, u[1].limits.cpu}, cpu, false},
		{"memory limits", pair{u[0].limits.memory, u[1].limits.memory}, formatBytes, false},
	} {
		before, after := row.format(row.pair.before), row.format(row.pair.after)
		by := row.pair.after - row.pair.before
		if before == after && math.Abs(by) < 1e-9*math.Abs(row.pair.after) || by == 0 {
			continue
		}
		change := "+" + row.format(by)
		if by < 0 {
			change = "−" + row.format(-by)
		}
		rows = append(rows, fmt.Sprintf("| %s: %s | %s | %s | %s |\n", who, row.what, before, after, change))
		if row.asked {
			heads = append(heads, change)
		}
	}
	return rows, strings.Join(heads, ", ")
}

// formatNumber writes a number with at most three digits after the point, and rounds large ones to two.
func formatNumber(v float64) string {
	digits := 2
	if v < 1 {
		digits = 3
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func formatBytes(v float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return formatNumber(v) + " " + units[i]
}
