// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/policy"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
)

// PolicyChange is what MutatingAdmissionPolicies change of a pod.
type PolicyChange struct {
	// Before is the pod with what the plugins before the policies set, and After the pod with the changes of the policies.
	Before, After *corev1.Pod
	// By are the names of the policies that changed it.
	By []string
	// Unknown is why the change is not known, or why the API server rejects the pod; empty if neither is the case.
	Unknown string

	applied int // how many policies, bindings and parameters were evaluated
}

// ChangeByPolicies returns what the policies change of the pod of a request, in both rounds, if no webhook changes it.
func (c *Cluster) ChangeByPolicies(ctx context.Context, r *request.Request) PolicyChange {
	out := c.changeInOrder(ctx, r, false)
	if out.Unknown != "" || out.applied < 2 {
		return out
	}
	reversed := c.changeInOrder(ctx, r, true)
	if reversed.Unknown != "" {
		return reversed
	}
	if found := orderDecides(out.After, reversed.After); len(found) > 0 {
		out.Unknown = "the order of MutatingAdmissionPolicies decides " + found[0] + ", and the API server does not fix it"
	}
	return out
}

// changeInOrder takes the policies in one of the two orders.
func (c *Cluster) changeInOrder(ctx context.Context, r *request.Request, reversed bool) PolicyChange {
	a := c.New(r, nil)
	a.reversed = reversed
	for _, p := range plugins {
		if c.ignores(p.name) {
			continue
		}
		if err := p.admit(a); err != nil {
			return PolicyChange{Unknown: p.name + ": " + err.Error()}
		}
	}
	out := PolicyChange{Before: a.Pod.DeepCopy(), After: a.Pod}
	a.policies = c.Policies.NewMutation(r, a.Pod, reversed)
	a.policies.Observe = func(by policy.By, before, after *corev1.Pod) {
		if !slices.Contains(out.By, by.Policy) && !equality.Semantic.DeepEqual(before, after) {
			out.By = append(out.By, by.Policy)
		}
	}
	a.runPolicies(ctx)
	if a.again && a.Rejected == "" {
		a.policies.Reinvoke()
		a.runPolicies(ctx)
	}
	slices.Sort(out.By)
	out.applied = a.policies.Applied()
	out.Unknown = a.Rejected
	for _, one := range a.NotEvaluated() {
		out.Unknown = one.String()
	}
	return out
}
