// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/storetest"
)

// newTestReporter is one for objects in the memory of a client that client-go has for tests.
func newTestReporter(objects ...runtime.Object) (*Reporter, *fake.FakeDynamicClient) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		pipelines: "RenderPipelineList", policies: "InjectionPolicyList", events: "EventList",
	}, objects...)
	w := newTestWatcher()
	w.client, w.namespaces = &Client{dynamic: client}, []string{metav1.NamespaceAll}
	return &Reporter{Client: w.client, Watcher: w, Log: slog.New(slog.DiscardHandler)}, client
}

// newTellingReporter is a test reporter that has events made by makeAll.
func newTellingReporter(t *testing.T, objects ...runtime.Object) (*Reporter, *fake.FakeDynamicClient) {
	r, client := newTestReporter(objects...)
	r.untold = newPendingEvents()
	t.Cleanup(r.untold.ShutDown)
	return r, client
}

// makeAll makes the events that are to be made now.
func makeAll(t *testing.T, r *Reporter) {
	for r.untold.Len() > 0 {
		r.makeNext(t.Context(), r.untold)
	}
}

// eventsOf lists the events that were asked to be made, also in vain, and forgets them.
func eventsOf(client *fake.FakeDynamicClient) (out []string) {
	for _, action := range client.Actions() {
		made, ok := action.(interface{ GetObject() runtime.Object })
		if !ok || !action.Matches("create", events.Resource) {
			continue
		}
		if event, ok := made.GetObject().(*unstructured.Unstructured); ok {
			out = append(out, fmt.Sprint(event.Object["reason"], ": ", event.Object["message"]))
		}
	}
	client.ClearActions()
	return out
}

// TestARepeatedRunIsToldOnce adds runs as the daemon does and tells of them as often as objects are looked at.
func TestARepeatedRunIsToldOnce(t *testing.T) {
	object := newPipeline("web", "Orphan", false)
	r, client := newTellingReporter(t, object)
	state, before := &status.State{}, v1alpha1.RenderPipelineStatus{}
	began := time.Now().Truncate(time.Second)
	revisions := map[string]string{status.Published: "main@sha1:5e1f"} // what cannot be fetched has none
	run := func(i int, outcome, message string) {
		at := began.Add(time.Duration(i) * time.Minute)
		state.Add(status.Run{Run: v1alpha1.Run{
			ID: fmt.Sprint("run", i), Outcome: outcome, Message: message, Started: metav1.NewTime(at), Finished: metav1.NewTime(at.Add(time.Second)),
			Revision: revisions[outcome],
		}}, 10)
	}
	look := func(want ...string) {
		t.Helper()
		for i := range 3 {
			r.enqueueRunEvents(object, before, state)
			makeAll(t, r)
			if got := eventsOf(client); !slices.Equal(got, want) {
				t.Errorf("look %d: %q, want %q", i, got, want)
			}
			before, want = state.Status, nil // as it is written after each look
		}
	}
	run(1, status.Published, "first")
	look("Published: main@sha1:5e1f: first")
	run(2, status.Failed, "no answer")
	run(3, status.Failed, "no answer")
	look("Failed: no answer")
	run(4, status.Failed, "no answer")
	look()
	run(5, status.Unchanged, "as it should be")
	run(6, status.Unchanged, "as it should be")
	look("Unchanged: as it should be")
	run(7, status.Unchanged, "still as it should be")
	look()
	run(8, status.Failed, "no answer")
	run(9, status.Published, "second")
	look("Published: main@sha1:5e1f: second", "Failed: no answer")
}

// TestAnInvalidPipelineIsToldOnce looks at an invalid pipeline again, also after its event has expired.
func TestAnInvalidPipelineIsToldOnce(t *testing.T) {
	object := newPipeline("web", "Orphan", false)
	r, client := newTellingReporter(t, object)
	var before v1alpha1.RenderPipelineStatus
	for i, problem := range []string{"one", "one", "two", "two", "one"} {
		err := errors.New(problem)
		after := r.statusAfter(before, int64(i), catalog.Entry{Err: err}, &status.State{})
		r.enqueueProblemEvent(object, before.Conditions, after.Conditions, err)
		makeAll(t, r)
		want := []string{"Invalid: " + problem}
		if i == 1 || i == 3 {
			want = nil
		}
		if got := eventsOf(client); !slices.Equal(got, want) {
			t.Errorf("look %d: %q, want %q", i, got, want)
		}
		before = after
	}
}

// openCatalog gives a reporter a catalog of the objects that its watcher knows.
func openCatalog(t *testing.T, r *Reporter) {
	t.Helper()
	r.Removals = func() []prune.Removal { return nil }
	var err error
	if r.Catalog, err = catalog.OpenAll(t.Context(), []catalog.Origin{{Objects: r.Watcher}}, false, nil); err != nil {
		t.Fatal(err)
	}
}

// readyReason is why a pipeline is ready or not as its object says it, and its finalizers.
func readyReason(t *testing.T, client *fake.FakeDynamicClient, name string) (string, []string) {
	t.Helper()
	object, err := client.Resource(pipelines).Namespace("shop").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ready := conditions.FindStatusCondition(statusOf(object).Conditions, meta.ReadyCondition); ready != nil {
		return ready.Reason, object.GetFinalizers()
	}
	return "", object.GetFinalizers()
}

// TestEventsHoldNothingUp has an API server that makes no events: status and finalizers are written, and what can be told later is told.
func TestEventsHoldNothingUp(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		again bool
	}{
		"too many requests": {apierrors.NewTooManyRequests("limit reached on type Namespace", 1), true},
		"a webhook is away": {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"the role lacks it": {apierrors.NewForbidden(events.GroupResource(), "", errors.New("no")), false},
	} {
		t.Run(name, func(t *testing.T) {
			odd, old, lost := newPipeline("odd", "Orphan", false), newPipeline("old", "Delete", true), newPipeline("lost", "Delete", true)
			lost.Object["status"] = map[string]any{"published": []any{map[string]any{"target": "rendered"}}}
			r, client := newTellingReporter(t, odd, old, lost)
			r.Watcher.storeObject(pipelines, odd)
			_, r.Store = storetest.Open(t)
			openCatalog(t, r)
			if err := r.Store.AddRemovedObject(t.Context(), "shop/old", status.RemovedObject{At: time.Now(), Message: "deleted 1 file"}, time.Time{}); err != nil {
				t.Fatal(err)
			}
			if err := r.Store.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			refused := true
			client.PrependReactor("create", events.Resource, func(clienttesting.Action) (bool, runtime.Object, error) { return refused, nil, tc.err })
			for _, object := range []*unstructured.Unstructured{odd, old, lost} {
				r.Watcher.storeObject(pipelines, object)
				if err := r.reconcileObject(t.Context(), item{pipelines, keyOf(object)}); err != nil {
					t.Error(err)
				}
			}
			makeAll(t, r)
			if got := eventsOf(client); len(got) != 3 {
				t.Errorf("it is asked for the events %q", got)
			}
			for name, want := range map[string]string{"odd": v1alpha1.ReasonInvalid, "old": "", "lost": v1alpha1.ReasonRemovalHeld} {
				if reason, finalizers := readyReason(t, client, name); reason != want || (len(finalizers) > 0) != (name == "lost") {
					t.Errorf("%s has the reason %q and the finalizers %q", name, reason, finalizers)
				}
			}
			refused = false
			if !tc.again {
				return
			}
			for range 3 {
				r.makeNext(t.Context(), r.untold) // as soon as it is tried again
			}
			if got := eventsOf(client); len(got) != 3 {
				t.Errorf("the events %q are made", got)
			}
		})
	}
}
