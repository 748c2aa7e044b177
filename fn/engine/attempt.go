// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/sidecar"
)

// attempt is one way through the policies, from one original. What it reports and adds counts once the unit has it.
type attempt struct {
	of *podInjection
	podReport
	outcome Outcome
	// original is the pod without any injection, before the one that Istio's injection begins with, and after the
	// result.
	original, before, after map[string]any
	// chosen are the sidecars that the pod gets, in the order of the policies, and records those that it leaves with.
	chosen  []chosenSidecar
	records []sidecar.Record
	objects []wantedObject
	// unquoted lists the annotations that write YAML into the pod, as in inject.Result; nil if no injection took
	// place.
	unquoted map[string][]string
}

func (w *podInjection) newAttempt(original map[string]any) *attempt {
	return &attempt{
		of: w, podReport: podReport{unit: w.unit, field: w.template.Field}, original: original,
		outcome: w.in.newOutcome(w.unit, w.template.Field, Skipped, "no policy injects anything"),
	}
}

// applyPolicies applies the policies to an original.
//
// A bare Pod may have a status annotation that no injection wrote: the injection replaces it, as the webhook does,
// and has no other place to remember it. If injecting again would therefore produce a different Pod, the original
// is recorded in it. So it is if a template deletes a container or volume of the Pod.
func (w *podInjection) applyPolicies(original map[string]any) (*attempt, error) {
	a := w.newAttempt(original)
	if err := misspelledContainers(original); err != nil {
		return a, err
	}
	err := a.applyAllPolicies()
	if err != nil || !w.isBarePod() || a.outcome.Action != Injected || !anyPolicyRecords(w.plans) {
		return a, err
	}
	if losesElement(original, a.after) {
		a.after, err = inject.RecordOriginal(original, a.after)
		return a, err
	}
	if !hasStatus(original) {
		return a, nil
	}
	_, found, err := restorePod(a.after, w.template.Owner, nil, w.restoreOptions())
	if err != nil {
		return a, err
	}
	again := w.newAttempt(found)
	if err := again.applyAllPolicies(); err == nil && podmap.Equal(again.after, a.after) {
		return a, nil
	}
	a.after, err = inject.RecordOriginal(original, a.after)
	return a, err
}

// applyAllPolicies applies all policies, in their order.
func (a *attempt) applyAllPolicies() error {
	if err := a.chooseSidecars(); err != nil {
		return err
	}
	pod, err := a.writePolicies(a.original)
	if err != nil {
		return err
	}
	if pod, err = a.injectSidecars(pod, false); err != nil {
		return err
	}
	a.before = pod
	record := false
	for _, pl := range a.of.plans {
		if pod, err = a.applyPlan(pl, pod); err != nil {
			return err
		}
		record = record || pl.policy.Spec.Record == v1alpha1.RecordAnnotation
	}
	if pod, err = a.injectSidecars(pod, true); err != nil {
		return err
	}
	if err = a.checkMounts(pod); err != nil {
		return err
	}
	if err = a.checkAccepted(pod); err != nil {
		return err
	}
	if a.after, err = a.finishSidecars(pod); err != nil {
		return err
	}
	if a.outcome.Action == Injected && record {
		a.after, err = inject.RecordOriginal(a.original, a.after)
	}
	return err
}
