// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// CheckQuotas rejects a pod that lacks a request or limit that a ResourceQuota of its namespace demands, or that alone
// asks for more than one allows. How much other pods use is not known.
func (a *Admission) CheckQuotas() {
	if a.cluster.ignores("ResourceQuota") {
		return
	}
	for _, quota := range a.cluster.Quotas[a.request.Namespace] {
		name := a.request.Namespace + "/" + quota.Name
		if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
			a.lack("whether ResourceQuota %s applies: quotas with scopes are not evaluated", name)
			continue
		}
		if err := checkQuota(a.Pod, quota); err != nil {
			a.reject("ResourceQuota", err)
			return
		}
		a.lack("how much of ResourceQuota %s other pods use", name)
	}
}

// demanded are the resources that a quota demands of each container, by what the quota calls them.
var demanded = map[corev1.ResourceName]struct {
	limits bool
	name   corev1.ResourceName
}{
	corev1.ResourceCPU: {false, corev1.ResourceCPU}, corev1.ResourceRequestsCPU: {false, corev1.ResourceCPU},
	corev1.ResourceMemory: {false, corev1.ResourceMemory}, corev1.ResourceRequestsMemory: {false, corev1.ResourceMemory},
	corev1.ResourceLimitsCPU: {true, corev1.ResourceCPU}, corev1.ResourceLimitsMemory: {true, corev1.ResourceMemory},
}

func checkQuota(pod *corev1.Pod, quota *corev1.ResourceQuota) error {
	requests := func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }
	limits := func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }
	var missing, exceeded []string
	for _, hard := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
		what, ok := demanded[hard]
		if !ok {
			continue
		}
		of := requests
		if what.limits {
			of = limits
		}
		var without []string
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			if _, ok := of(c.Resources)[what.name]; !ok && !setsForPod(pod, of, what.name) {
				without = append(without, c.Name)
			}
		}
		if len(without) > 0 {
			missing = append(missing, string(hard)+" for: "+strings.Join(without, ","))
		}
		bound, total := quota.Spec.Hard[hard], totalOf(pod, of)[what.name]
		if total.Cmp(bound) > 0 {
			exceeded = append(exceeded, fmt.Sprintf("requested: %s=%s, limited: %s=%s", hard, total.String(), hard, bound.String()))
		}
	}
	switch {
	case len(missing) > 0:
		return fmt.Errorf("failed quota: %s: must specify %s", quota.Name, strings.Join(missing, "; "))
	case len(exceeded) > 0:
		return fmt.Errorf("exceeded quota: %s, %s", quota.Name, strings.Join(exceeded, ", "))
	}
	return nil
}

// setsForPod reports whether the pod as a whole sets an amount.
func setsForPod(pod *corev1.Pod, of func(corev1.ResourceRequirements) corev1.ResourceList, name corev1.ResourceName) bool {
	if pod.Spec.Resources == nil {
		return false
	}
	_, ok := of(*pod.Spec.Resources)[name]
	return ok
}
