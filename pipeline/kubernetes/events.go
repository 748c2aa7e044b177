// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

const (
	// maxEvents is the maximum number of new runs reported at once.
	maxEvents = 5
	// maxEventMessage and maxEventName are the API server's limits.
	maxEventMessage, maxEventName = 1024, 200
	// maxUntold is how many events may wait to be made, and eventTries how often one is tried.
	maxUntold, eventTries = 5000, 6
	// eventTimeout bounds one try: client-go waits for a server that is asked for too much.
	eventTimeout = 5 * time.Second
	// lastWords is how long is waited for events when another process is to write.
	lastWords = 2 * time.Second
)

// happened is the content of an event. The event's name is derived from its id, so that the same event is never
// created twice, by any process.
type happened struct {
	id, kind, reason, message string
	at                        time.Time
}

// enqueueRunEvents creates an event for each run that is newer than the last one in the status and has changed
// something, or failed, or is the first success after a failure. A run that only repeats the one before is counted in
// that one, with its start: it is not reported again.
func (r *Reporter) enqueueRunEvents(object *unstructured.Unstructured, before v1alpha1.RenderPipelineStatus,
	state *status.State) {
	told := before.LastRun
	if told != nil && state.Status.LastRun != nil && state.Status.LastRun.ID == told.ID {
		return
	}
	for i, run := range state.Runs {
		if i == maxEvents || told != nil && (run.ID == told.ID || run.Started.Before(&told.Started)) {
			break
		}
		if run.Outcome == status.Unchanged && (i+1 == len(state.Runs) || isGood(state.Runs[i+1].Outcome)) {
			continue
		}
		kind := corev1.EventTypeNormal
		if !isGood(run.Outcome) {
			kind = corev1.EventTypeWarning
		}
		message := run.Message
		if run.Revision != "" {
			message = run.Revision + ": " + message
		}
		r.enqueueEvent(object, happened{run.ID, kind, run.Outcome, message, run.Finished.Time})
	}
}

func isGood(outcome string) bool { return outcome == status.Published || outcome == status.Unchanged }

// enqueueProblemEvent creates an event for a pipeline's problem unless its status already reports it.
func (r *Reporter) enqueueProblemEvent(object *unstructured.Unstructured, before, after []metav1.Condition,
	problem error) {
	if !sameReady(before, after) {
		r.enqueueEvent(object, happened{digestOf(problem.Error()), corev1.EventTypeWarning, v1alpha1.ReasonInvalid, problem.Error(), time.Now()})
	}
}

// sameReady reports whether two Ready conditions are equal.
func sameReady(before, after []metav1.Condition) bool {
	a, b := conditions.FindStatusCondition(before, meta.ReadyCondition), conditions.FindStatusCondition(after,
		meta.ReadyCondition)
	return a != nil && b != nil && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// enqueueRemovalEvent makes an event of what became of what a deleted pipeline had published.
func (r *Reporter) enqueueRemovalEvent(key string, object *unstructured.Unstructured) {
	if one, ok := removalOf(r.Store, key, object); ok {
		r.enqueueEvent(object, happened{digestOf(string(object.GetUID())), corev1.EventTypeNormal, "Removed", one.Message, one.At})
	}
}

// removalOf returns the outcome of removing a pipeline's published files, if they were removed because its object
// was deleted. The clocks of an API server and a daemon may differ, and an object may have been recreated before
// that was recorded: either one is sufficient evidence.
func removalOf(store *status.Store, key string, object *unstructured.Unstructured) (status.RemovedObject, bool) {
	one, _, ok := store.RemovedObject(key)
	return one, ok && (one.UID == string(object.GetUID()) || one.At.After(object.GetDeletionTimestamp().Add(-time.Minute)))
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// enqueueEvent enqueues an event. Its content is already in the object: if it cannot be created, no work is blocked.
func (r *Reporter) enqueueEvent(object *unstructured.Unstructured, what happened) {
	r.mu.Lock()
	untold := r.untold
	r.mu.Unlock()
	if untold == nil {
		return
	}
	if untold.Len() >= maxUntold {
		r.Log.Warn("an event is left out, as too many wait to be made", "object", keyOf(object), "reason", what.reason)
		return
	}
	untold.Add(newEvent(object, what))
}

func newEvent(object *unstructured.Unstructured, what happened) *unstructured.Unstructured {
	message, name := what.message, object.GetName()
	if len(message) > maxEventMessage {
		message = strings.ToValidUTF8(message[:maxEventMessage-len("…")], "") + "…"
	}
	if len(name) > maxEventName {
		name = strings.TrimRight(name[:maxEventName], "-.") // a dot follows
	}
	at := metav1.NewTime(what.at).UTC().Format(time.RFC3339)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"name": name + "." + what.id, "namespace": object.GetNamespace()},
		"involvedObject": map[string]any{
			"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "namespace": object.GetNamespace(),
			"name": object.GetName(),
			"uid":  string(object.GetUID()), "resourceVersion": object.GetResourceVersion(),
		},
		"type": what.kind, "reason": what.reason, "message": message, "count": int64(1), "firstTimestamp": at,
		"lastTimestamp": at,
		"source":        map[string]any{"component": "prerig"}, "reportingComponent": "prerig",
		"reportingInstance": "prerig",
	}}
}

// untoldEvents are those that are still to be made.
type untoldEvents = workqueue.TypedRateLimitingInterface[*unstructured.Unstructured]

func newPendingEvents() untoldEvents {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[*unstructured.Unstructured](time.Second, time.Minute))
}

// startEventWorkers starts creating events. The returned function stops it, after a short delay for pending ones.
func (r *Reporter) startEventWorkers(ctx context.Context) (end func()) {
	untold := newPendingEvents()
	r.mu.Lock()
	r.untold = untold
	r.mu.Unlock()
	telling, stop := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	for range reporters {
		group.Go(func() {
			for r.makeNext(telling, untold) {
			}
		})
	}
	return func() {
		r.mu.Lock()
		r.untold = nil
		r.mu.Unlock()
		untold.ShutDown()
		late := time.AfterFunc(lastWords, stop)
		group.Wait()
		late.Stop()
		stop()
	}
}

// makeNext creates one event, unless it exists, and reports whether more may follow. One that cannot be created now
// is retried.
func (r *Reporter) makeNext(ctx context.Context, untold untoldEvents) bool {
	event, end := untold.Get()
	if end {
		return false
	}
	defer untold.Done(event)
	asking, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	_, err := r.Client.dynamic.Resource(events).Namespace(event.GetNamespace()).Create(asking, event,
		metav1.CreateOptions{FieldManager: "prerig"})
	log := r.Log.With("event", keyOf(event), "reason", event.Object["reason"], "error", err)
	switch {
	case err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		untold.Forget(event) // a deleted or terminating namespace accepts no new objects
	case isRefused(err) || untold.NumRequeues(event)+1 >= eventTries:
		log.Warn("an event cannot be made, and is left out")
		untold.Forget(event)
	default:
		log.Debug("an event cannot be made; it is tried again")
		untold.AddRateLimited(event)
	}
	return true
}

// isRefused reports whether an event would be refused again.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err)
}
