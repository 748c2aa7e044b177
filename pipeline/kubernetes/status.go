// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/kubernetes/mesh"
)

// reportPipeline brings a pipeline's finalizer and status up to date, and reports its runs.
func (r *Reporter) reportPipeline(ctx context.Context, key string, known *known) error {
	entry, ok := r.Catalog.Get(key)
	if !ok {
		return nil // it is read in a moment
	}
	if !isRead(entry, known.object) {
		return r.writeStatus(ctx, pipelines, known.object, statusForUnreadSpec(known.object))
	}
	if changed, err := r.setFinalizer(ctx, known.object, entry); changed || err != nil {
		return err // the changed object comes again
	}
	before := statusOf(known.object)
	state := r.Store.Get(key)
	after := r.statusAfter(before, known.object.GetGeneration(), entry, state)
	err := r.writeStatus(ctx, pipelines, known.object, after)
	if apierrors.IsConflict(err) {
		return err // the changed object comes again
	}
	r.enqueueRunEvents(known.object, before, state)
	if entry.Err != nil {
		r.enqueueProblemEvent(known.object, before.Conditions, after.Conditions, entry.Err)
	}
	return err
}

// isRead reports whether the catalog's entry matches the current object: while any namespace cannot be read, the
// catalog does not change.
func isRead(entry catalog.Entry, object *unstructured.Unstructured) bool {
	return entry.Object == objectVersion(object)
}

// statusForUnreadSpec returns the status of a pipeline whose current specification differs from the known one.
func statusForUnreadSpec(object *unstructured.Unstructured) v1alpha1.RenderPipelineStatus {
	after := statusOf(object)
	own := conditionsOf(metav1.ConditionUnknown, meta.ProgressingReason, "its specification has not been read yet",
		meta.ReconcilingCondition)
	after.Conditions = mergeConditions(after.Conditions, own, object.GetGeneration())
	return after
}

// statusOf reads the status that an object has; one that cannot be read is none.
func statusOf(object *unstructured.Unstructured) v1alpha1.RenderPipelineStatus {
	s, err := v1alpha1.StatusOf(object.Object["status"])
	if err != nil {
		return v1alpha1.RenderPipelineStatus{}
	}
	return s
}

// statusAfter is what the status of a pipeline should be, where it was before.
func (r *Reporter) statusAfter(before v1alpha1.RenderPipelineStatus, generation int64, entry catalog.Entry,
	state *status.State) v1alpha1.RenderPipelineStatus {
	after := state.Status
	after.ObservedGeneration = generation
	own := after.Conditions
	switch {
	case entry.Err != nil:
		own = conditionsOf(metav1.ConditionFalse, v1alpha1.ReasonInvalid, entry.Err.Error(), meta.StalledCondition)
	case !r.isObserved(entry.Pipeline, state):
		after.ObservedGeneration = before.ObservedGeneration
		own = conditionsOf(metav1.ConditionUnknown, meta.ProgressingReason, "its run has not ended yet",
			meta.ReconcilingCondition)
	case state.Condition() == nil:
		own = conditionsOf(metav1.ConditionUnknown, v1alpha1.ReasonSuspended, "it is suspended, and has never run", "")
	}
	after.Conditions = mergeConditions(before.Conditions, own, generation)
	return after
}

// isObserved reports whether what is known of a pipeline is about its specification as it is now.
func (r *Reporter) isObserved(p *v1alpha1.RenderPipeline, state *status.State) bool {
	if p.Spec.Suspend || r.Store.Control(p.Key()).Suspended {
		return true // no run comes
	}
	return state.Condition() != nil && (state.Observed == p.SpecDigest() || state.Seen.Request == r.RequestDigest(p))
}

// conditionsOf are the conditions of an object with one reason: Ready, and another one that is true, or none.
func conditionsOf(ready metav1.ConditionStatus, reason, message, also string) []metav1.Condition {
	out := []metav1.Condition{{Type: meta.ReadyCondition, Status: ready, Reason: reason, Message: message}}
	if also != "" {
		out = append(out, metav1.Condition{Type: also, Status: metav1.ConditionTrue, Reason: reason, Message: message})
	}
	return out
}

// maxMessage is the API server's limit for a condition's message.
const maxMessage = 32 << 10

// mergeConditions returns the conditions that an object should have. Those that others have added stay, and times of
// transitions with conditions that do not change.
func mergeConditions(before, own []metav1.Condition, generation int64) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range before {
		mine := c.Type == meta.ReadyCondition || c.Type == meta.ReconcilingCondition || c.Type == meta.StalledCondition
		if !mine || conditions.FindStatusCondition(own, c.Type) != nil {
			out = append(out, c)
		}
	}
	for _, c := range own {
		c.ObservedGeneration = generation
		if len(c.Message) > maxMessage {
			c.Message = strings.ToValidUTF8(c.Message[:maxMessage], "")
		}
		conditions.SetStatusCondition(&out, c)
	}
	return out
}

// reportPolicy reports whether an InjectionPolicy can be used, as far as that does not depend on its use, in its
// status.
func (r *Reporter) reportPolicy(ctx context.Context, known *known) error {
	var before v1alpha1.PolicyStatus
	text, err := json.Marshal(known.object.Object["status"])
	if err != nil || json.Unmarshal(text, &before) != nil {
		before = v1alpha1.PolicyStatus{}
	}
	own := conditionsOf(metav1.ConditionTrue, meta.SucceededReason, "it can be used", "")
	wrong, err := r.judgements.reasonFor(ctx, keyOf(known.object), known.text)
	if err != nil {
		return err
	}
	if wrong != "" {
		own = conditionsOf(metav1.ConditionFalse, v1alpha1.ReasonInvalid, wrong, meta.StalledCondition)
	}
	if r.Stale != nil && !isStalled(own) {
		own = r.completionConditions(known, own)
	}
	generation := known.object.GetGeneration()
	return r.writeStatus(ctx, policies, known.object, v1alpha1.PolicyStatus{
		ObservedGeneration: generation, Conditions: mergeConditions(before.Conditions, own, generation),
	})
}

// writeStatus stores a status, unless the object has it already.
func (r *Reporter) writeStatus(ctx context.Context, resource schema.GroupVersionResource,
	object *unstructured.Unstructured, after any) error {
	text, err := json.Marshal(after)
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return err
	}
	dropNulls(content)
	if reflect.DeepEqual(content, asJSON(object.Object["status"])) {
		return nil
	}
	changed := object.DeepCopy()
	changed.Object["status"] = content
	_, err = r.Client.dynamic.Resource(resource).Namespace(object.GetNamespace()).UpdateStatus(ctx, changed,
		metav1.UpdateOptions{FieldManager: "prerig"})
	return err
}

// asJSON returns a value as it would be read from JSON: an API server's numbers are whole.
func asJSON(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		return value
	}
	var out any
	if json.Unmarshal(text, &out) != nil {
		return value
	}
	return out
}

// dropNulls removes the nulls that Go writes for unset times, and that the schema does not allow.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, one := range value {
			if one == nil {
				delete(value, key)
			}
			dropNulls(one)
		}
	case []any:
		for _, one := range value {
			dropNulls(one)
		}
	}
}

func isStalled(own []metav1.Condition) bool {
	return conditions.FindStatusCondition(own, meta.StalledCondition) != nil
}

// completionConditions returns the conditions of a policy with from: Cluster, or otherwise the existing ones.
func (r *Reporter) completionConditions(known *known, own []metav1.Condition) []metav1.Condition {
	stale, err := r.Stale(mesh.ObjectID(known.object.GetNamespace(), known.object.GetName()), known.text)
	switch {
	case err != nil:
		return conditionsOf(metav1.ConditionFalse, v1alpha1.ReasonClusterUnknown, err.Error(), meta.StalledCondition)
	case stale != "":
		return conditionsOf(metav1.ConditionTrue, v1alpha1.ReasonSnapshotKept, stale, "")
	}
	return own
}
