// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/policy"
	"github.com/prerig/prerig/pipeline/render/fields"
)

// Cause is what has changed a field.
type Cause struct {
	// Step is the plugin or webhook.
	Step string `json:"step"`
	// Object is the object that decided it, such as LimitRange shop/limits, and Path the field of it, if known.
	Object string `json:"object,omitempty"`
	Path   []any  `json:"path,omitempty"`
	// Detail is the annotation or value that decided it.
	Detail string `json:"detail,omitempty"`
	// Round is 2 in the second round.
	Round int `json:"round,omitempty"`
}

// Change is a field that a step has changed.
type Change struct {
	fields.Change

	Cause Cause
}

// Trace records the changes of a pod. A nil Trace records nothing.
type Trace struct {
	Changes []Change
	current *Cause
	second  bool
}

// begin notes the pod, and returns what records its changes.
func (t *Trace) begin(a *Admission, cause Cause) func() {
	if t == nil {
		return func() {}
	}
	before := a.Pod.DeepCopy()
	outer := t.current
	t.current = &cause
	recorded := len(t.Changes)
	return func() {
		if len(t.Changes) == recorded { // otherwise a part of the step has recorded them
			t.record(before, a.Pod, *t.current)
		}
		t.current = outer
	}
}

// cause names what decides the changes of the current step.
func (t *Trace) cause(cause Cause) {
	if t != nil && t.current != nil {
		*t.current = cause
	}
}

func (t *Trace) round(n int) {
	if t != nil {
		t.second = n > 1
	}
}

// policy records what a mutation of a policy has changed.
func (t *Trace) policy(by policy.By, before, after *corev1.Pod) {
	detail := "binding " + by.Binding
	if by.Param != "" {
		detail += ", parameter " + by.Param
	}
	t.record(before, after, Cause{
		Step: "MutatingAdmissionPolicy", Object: "MutatingAdmissionPolicy " + by.Policy, Path: []any{"spec", "mutations", by.Mutation}, Detail: detail,
	})
}

func (t *Trace) record(before, after *corev1.Pod, cause Cause) {
	if !equality.Semantic.DeepEqual(before, after) {
		t.Record(Map(before), Map(after), cause)
	}
}

// Record records in what two states of a pod differ.
func (t *Trace) Record(before, after map[string]any, cause Cause) {
	if t == nil {
		return
	}
	if t.second {
		cause.Round = 2
	}
	for _, c := range fields.Differences(before, after) {
		t.Changes = append(t.Changes, Change{c, cause})
	}
}

// Objects returns the objects that have changed the pod, in their order.
func (t *Trace) Objects() []string {
	seen := map[string]bool{}
	for _, c := range t.Changes {
		if c.Cause.Object != "" {
			seen[c.Cause.Object] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Reasons returns the fields in which the stored pod differs from the one of the file, each with the last change of it.
// A field that no step has changed has no cause, which would be a defect.
func (t *Trace) Reasons(file, stored map[string]any) []Change {
	last := map[string]Change{}
	for _, c := range t.Changes {
		last[c.Path] = c
	}
	var out []Change
	for _, c := range fields.Differences(file, stored) {
		out = append(out, Change{c, last[c.Path].Cause})
	}
	return out
}
