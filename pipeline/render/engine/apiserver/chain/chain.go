// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	defaults "github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/policy"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
	"github.com/prerig/prerig/pipeline/render/fields"
)

// Cluster holds the objects of a cluster that the plugins read. They are never changed.
type Cluster struct {
	// Server is the version of Kubernetes.
	Server defaults.Server
	// LimitRanges are those of each namespace, in the order of their names.
	LimitRanges map[string][]LimitRange
	// Accounts are the ServiceAccounts, by NAMESPACE/NAME.
	Accounts map[string]*corev1.ServiceAccount
	// Priorities are the PriorityClasses, and Runtimes the RuntimeClasses, by name.
	Priorities map[string]*PriorityClass
	Runtimes   map[string]*RuntimeClass
	// Namespaces are the Namespaces, by name.
	Namespaces map[string]*corev1.Namespace
	// Quotas are the ResourceQuotas of each namespace, in the order of their names.
	Quotas map[string][]*corev1.ResourceQuota
	// IsComplete reports whether all objects of a kind are known, so that a missing one does not exist. nil means that none is.
	IsComplete func(kind string) bool
	// NodeSelectors reports whether the plugin PodNodeSelector is on.
	NodeSelectors bool
	// Policies are the MutatingAdmissionPolicies.
	Policies *policy.MutatingSet
	// Ignored are the names of steps that are left out.
	Ignored []string
}

func (c *Cluster) ignores(step string) bool { return slices.Contains(c.Ignored, step) }

func (c *Cluster) isComplete(kind string) bool { return c.IsComplete != nil && c.IsComplete(kind) }

// plugin is one step of the API server's chain.
type plugin struct {
	name string
	// admit changes the pod. Its error is the reason for which the API server rejects it.
	admit func(a *Admission) error
	// validate returns the reason for which the API server rejects the pod after all changes, and may be nil.
	validate func(a *Admission) error
}

// plugins are the ones that change or reject pods, in the order of the API server.
var plugins = []plugin{
	{name: "LimitRanger", admit: applyLimitRanges, validate: checkLimitRanges},
	{name: "ServiceAccount", admit: applyAccount, validate: checkAccount},
	{name: "PodNodeSelector", admit: applyNodeSelector, validate: applyNodeSelector},
	{name: "Priority", admit: applyPriority},
	{name: "DefaultTolerationSeconds", admit: applyTolerations},
	{name: "RuntimeClass", admit: applyRuntimeClass, validate: checkRuntimeClass},
}

// Admission is one pod on its way through the chain.
type Admission struct {
	cluster *Cluster
	request *request.Request
	// Pod is the pod as it is now. It belongs to the Admission.
	Pod *corev1.Pod
	// Rejected is the reason for which the API server rejects the pod, with the step; empty if it does not.
	Rejected string
	// Missing lists the inputs that a step lacks, each once.
	Missing []string
	// Trace records the changes if it is not nil.
	Trace *Trace
	// Seen, if not nil, receives the pod as policies see it first in each round.
	Seen func(pod *corev1.Pod)
	// Ordered reports that orders which the API server does not fix need not be compared.
	Ordered bool

	policies *policy.Mutation
	reversed bool        // takes what has no fixed order in the opposite order
	again    bool        // the API server runs a second round
	first    *corev1.Pod // the pod as it was at the beginning, if orders are compared
	called   bool        // a webhook has changed the pod
}

// New returns the admission of a pod with the API server's defaults. The request is not changed.
func (c *Cluster) New(r *request.Request, trace *Trace) *Admission {
	a := &Admission{cluster: c, request: r, Trace: trace}
	a.Pod = r.Object.(*corev1.Pod).DeepCopy()
	if r.Name == "" {
		a.Pod.Name = "" // the API server generates it after admission
	}
	return a
}

// lack names an input that a step lacks.
func (a *Admission) lack(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(a.Missing, text) {
		a.Missing = append(a.Missing, text)
	}
}

// reject records the rejection by a step.
func (a *Admission) reject(step string, err error) {
	if a.Rejected == "" {
		a.Rejected = step + ": " + err.Error()
	}
}

// Mutate runs the plugins and policies that come before webhooks.
func (a *Admission) Mutate(ctx context.Context) {
	if a.checksOrder() {
		a.first = a.Pod.DeepCopy()
	}
	a.mutate(ctx)
	if a.first != nil {
		a.compareOrders(ctx, a.first)
	}
}

// checksOrder reports whether the outcome may depend on an order that the API server does not fix.
func (a *Admission) checksOrder() bool {
	return !a.reversed && !a.Ordered && (len(a.cluster.LimitRanges[a.request.Namespace]) > 1 || a.cluster.Policies.Several())
}

// compareOrders runs both rounds in the two opposite orders, and names what the order decides.
func (a *Admission) compareOrders(ctx context.Context, first *corev1.Pod) {
	single := a.policies == nil || a.policies.Applied() < 2 && a.Rejected == "" // a policy that rejects comes before others
	if len(a.cluster.LimitRanges[a.request.Namespace]) < 2 && single {
		return
	}
	outcome := finishOrder(ctx, a)
	if outcome == nil {
		outcome = runOrder(ctx, a, first, false)
	}
	a.nameOrder(outcome, runOrder(ctx, a, first, true))
}

// ordersMatter reports whether an order may decide the outcome of the second round: steps that change nothing change nothing in any order.
func (a *Admission) ordersMatter(changed bool) bool {
	switch {
	case a.Rejected != "":
		return true
	case !changed:
		return false
	}
	return len(a.cluster.LimitRanges[a.request.Namespace]) > 1 || a.policies != nil && a.policies.Patched()
}

// compareSecondRounds runs both rounds in the opposite order, with the pod that webhooks have made between them, and names what the order
// decides. compareOrders does so without webhooks.
func (a *Admission) compareSecondRounds(ctx context.Context, called *corev1.Pod) {
	one := &Admission{cluster: a.cluster, request: a.request, Pod: a.first.DeepCopy(), reversed: true, Ordered: true, Seen: a.Seen}
	one.mutate(ctx)
	if one.Rejected != "" {
		return // the first round rejects it, which is named
	}
	*one.Pod, one.again = *called.DeepCopy(), true
	one.Again(ctx)
	a.nameOrder(a, one)
}

// nameOrder names in what the outcomes of two orders differ.
func (a *Admission) nameOrder(outcome, reversed *Admission) {
	const text = "the order of LimitRanges and MutatingAdmissionPolicies, which the API server does not fix: it decides "
	switch {
	case (outcome.Rejected == "") != (reversed.Rejected == ""):
		a.lack(text + "whether the pod is rejected")
	case outcome.Rejected != reversed.Rejected: // the first one that rejects is the reason
		a.lack(text + "why the pod is rejected")
	default:
		for _, what := range orderDecides(outcome.Pod, reversed.Pod) {
			a.lack("%s", text+what)
		}
	}
}

// orderDecides returns what differs between the outcomes of two orders: the fields, or otherwise the order of list elements.
func orderDecides(outcome, reversed *corev1.Pod) (out []string) {
	if reflect.DeepEqual(outcome, reversed) {
		return nil
	}
	one, other := Map(outcome), Map(reversed)
	for _, c := range fields.Differences(one, other) {
		out = append(out, c.Path)
	}
	if len(out) == 0 && !reflect.DeepEqual(one, other) {
		out = append(out, "the order of list elements")
	}
	return out
}

// runOrder returns the outcome of both rounds for the pod that an admission began with, in one of the two orders.
func runOrder(ctx context.Context, a *Admission, first *corev1.Pod, reversed bool) *Admission {
	one := &Admission{cluster: a.cluster, request: a.request, Pod: first.DeepCopy(), reversed: reversed, Ordered: true, Seen: a.Seen}
	one.mutate(ctx)
	one.Again(ctx)
	return one
}

// finishOrder returns the outcome of both rounds for an admission whose first round has run, or nil if a policy may change the pod in
// the second round too. Policies that may not are evaluated there without a change: their conditions can still fail.
func finishOrder(ctx context.Context, a *Admission) *Admission {
	if a.cluster.Policies.Reinvokes() {
		return nil
	}
	one := &Admission{
		cluster: a.cluster, request: a.request, Pod: a.Pod.DeepCopy(), Rejected: a.Rejected, Ordered: true, again: a.again, Seen: a.Seen,
	}
	if a.policies != nil {
		one.policies = a.cluster.Policies.NewMutation(a.request, one.Pod, false)
		one.policies.Seen = a.Seen
	}
	one.Again(ctx)
	return one
}

func (a *Admission) mutate(ctx context.Context) {
	for _, p := range plugins {
		if a.Rejected != "" {
			return
		}
		if a.cluster.ignores(p.name) {
			continue
		}
		if err := a.traced(p.name, func() error { return p.admit(a) }); err != nil {
			a.reject(p.name, err)
		}
	}
	a.runPolicies(ctx)
}

// traced runs a step, and records what it has changed under its name unless the step records that itself.
func (a *Admission) traced(step string, do func() error) error {
	defer a.Trace.begin(a, Cause{Step: step})()
	return do()
}

// runPolicies evaluates the MutatingAdmissionPolicies.
func (a *Admission) runPolicies(ctx context.Context) {
	if a.Rejected != "" || a.cluster.Policies.Empty() || a.cluster.ignores("MutatingAdmissionPolicy") {
		return
	}
	if a.policies == nil {
		a.policies = a.cluster.Policies.NewMutation(a.request, a.Pod, a.reversed)
		a.policies.Seen = a.Seen
		if a.Trace != nil {
			a.policies.Observe = a.Trace.policy
		}
	}
	err := a.policies.Run(ctx)
	for _, one := range a.policies.Missing {
		a.lack("%s", one)
	}
	if err != nil {
		a.reject("MutatingAdmissionPolicy", err)
	}
	a.again = a.again || a.policies.WantsReinvocation()
}

// Webhook replaces the pod by the answer of a webhook, which the API server defaults. The second round follows if that
// changes the pod.
func (a *Admission) Webhook(pod *corev1.Pod) {
	if !equality.Semantic.DeepEqual(a.Pod, pod) {
		a.again, a.called = true, true
	}
	*a.Pod = *pod
}

// Again runs the second round, if there is one. It reports whether that changed the pod.
func (a *Admission) Again(ctx context.Context) bool {
	if !a.again || a.Rejected != "" {
		return false
	}
	before := a.Pod.DeepCopy()
	if a.policies != nil {
		a.policies.Reinvoke()
	}
	a.Trace.round(2)
	a.mutate(ctx)
	changed := !equality.Semantic.DeepEqual(before, a.Pod)
	if a.first != nil && a.called && a.ordersMatter(changed) {
		a.compareSecondRounds(ctx, before)
	}
	return changed
}

// Finish makes of the pod what the API server stores, and runs the plugins that validate.
func (a *Admission) Finish() {
	_ = a.traced("storage", func() error { a.prepare(); return nil })
	for _, p := range plugins {
		if p.validate == nil || a.Rejected != "" || a.cluster.ignores(p.name) {
			continue
		}
		if err := p.validate(a); err != nil {
			a.reject(p.name, err)
		}
	}
}

// NotEvaluated returns the policies and bindings that were not evaluated.
func (a *Admission) NotEvaluated() []policy.Lack {
	if a.policies == nil {
		return nil
	}
	return a.policies.Missing
}

// Request returns the request as validating admission receives it.
func (a *Admission) Request() *request.Request {
	r := *a.request
	r.Object = a.Pod
	return &r
}
