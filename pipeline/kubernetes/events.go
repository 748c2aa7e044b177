// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/status"
)

const (
	// maxEvents is how many runs are told of that came since the last time.
	maxEvents = 5
	// maxEventMessage and maxEventName are what the API server takes.
	maxEventMessage, maxEventName = 1024, 200
)

// happened is what an event tells. Its id makes the event's name, so that the same is never told twice, by whichever process.
type happened struct {
	id, kind, reason, message string
	at                        time.Time
}

// tellRuns makes an event of each run that is newer than the last one in the status and has changed something, or failed. A run that
// only repeats the one before is counted there, with its beginning: it is not told again.
func (r *Reporter) tellRuns(ctx context.Context, object *unstructured.Unstructured, before v1alpha1.RenderPipelineStatus, state *status.State) error {
	told := before.LastRun
	if told != nil && state.Status.LastRun != nil && state.Status.LastRun.ID == told.ID {
		return nil
	}
	for i, run := range state.Runs {
		if i == maxEvents || told != nil && (run.ID == told.ID || run.Started.Before(&told.Started)) {
			break
		}
		if run.Outcome == status.Unchanged {
			continue
		}
		kind := corev1.EventTypeNormal
		if run.Outcome != status.Published {
			kind = corev1.EventTypeWarning
		}
		message := run.Message
		if run.Revision != "" {
			message = run.Revision + ": " + message
		}
		if err := r.tell(ctx, object, happened{run.ID, kind, run.Outcome, message, run.Finished.Time}); err != nil {
			return err
		}
	}
	return nil
}

// tellInvalid makes an event of what is wrong with a pipeline, unless its status says so already.
func (r *Reporter) tellInvalid(ctx context.Context, object *unstructured.Unstructured, before, after []metav1.Condition, problem error) error {
	if sameReady(before, after) {
		return nil
	}
	return r.tell(ctx, object, happened{digestOf(problem.Error()), corev1.EventTypeWarning, v1alpha1.ReasonInvalid, problem.Error(), time.Now()})
}

// sameReady reports whether two conditions Ready say the same.
func sameReady(before, after []metav1.Condition) bool {
	a, b := conditions.FindStatusCondition(before, meta.ReadyCondition), conditions.FindStatusCondition(after, meta.ReadyCondition)
	return a != nil && b != nil && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// tellRemoved makes an event of what became of what a deleted pipeline had published.
func (r *Reporter) tellRemoved(ctx context.Context, key string, object *unstructured.Unstructured) error {
	one, ok := r.removalOf(key, object)
	if !ok {
		return nil
	}
	return r.tell(ctx, object, happened{digestOf(string(object.GetUID())), corev1.EventTypeNormal, "Removed", one.Message, one.At})
}

// removalOf returns what became of what a pipeline had published, if that was removed since its object was deleted.
func (r *Reporter) removalOf(key string, object *unstructured.Unstructured) (status.Removed, bool) {
	for _, one := range r.Store.Removed() {
		if one.Pipeline == key && one.At.After(object.GetDeletionTimestamp().Add(-time.Minute)) {
			return one, true
		}
	}
	return status.Removed{}, false
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// tell makes an event, unless it is there.
func (r *Reporter) tell(ctx context.Context, object *unstructured.Unstructured, what happened) error {
	message, name := what.message, object.GetName()
	if len(message) > maxEventMessage {
		message = message[:maxEventMessage-len("…")] + "…"
	}
	if len(name) > maxEventName {
		name = name[:maxEventName]
	}
	at := metav1.NewTime(what.at).UTC().Format(time.RFC3339)
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"name": name + "." + what.id, "namespace": object.GetNamespace()},
		"involvedObject": map[string]any{
			"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "namespace": object.GetNamespace(), "name": object.GetName(),
			"uid": string(object.GetUID()), "resourceVersion": object.GetResourceVersion(),
		},
		"type": what.kind, "reason": what.reason, "message": message, "count": int64(1), "firstTimestamp": at, "lastTimestamp": at,
		"source": map[string]any{"component": "prerig"}, "reportingComponent": "prerig", "reportingInstance": "prerig",
	}}
	_, err := r.Client.dynamic.Resource(events).Namespace(object.GetNamespace()).Create(ctx, event, metav1.CreateOptions{FieldManager: "prerig"})
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // nothing can be made any more in a namespace that is going
	}
	return err
}
