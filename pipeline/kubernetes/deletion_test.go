// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/storetest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestALostPipelineIsNotDroppedSilently has pipelines deleted of which nothing is stored: one whose files would stay unseen is held, and
// says once what to do; all others go.
func TestALostPipelineIsNotDroppedSilently(t *testing.T) {
	published := map[string]any{"published": []any{map[string]any{"target": "https://git.example.com/shop/apps rendered web"}}}
	for name, tc := range map[string]struct {
		policy    string
		suspended bool
		status    map[string]any
		removed   time.Duration // since the deletion, where it was removed
		another   bool          // of that name was removed
		held      bool
	}{
		"lost":               {policy: "Delete", status: published, held: true},
		"removed long ago":   {policy: "Delete", status: published, removed: -time.Hour, another: true, held: true},
		"removed now":        {policy: "Delete", status: published, removed: time.Second},
		"by another clock":   {policy: "Delete", status: published, removed: -time.Hour},
		"removed and anew":   {policy: "Delete", status: published, removed: time.Second, another: true},
		"never published":    {policy: "Delete", status: map[string]any{}},
		"its files are left": {policy: "Orphan", status: published},
		"suspended":          {policy: "Delete", suspended: true, status: published},
	} {
		t.Run(name, func(t *testing.T) {
			object := newPipeline("web", tc.policy, true)
			object.Object["status"] = tc.status
			if err := unstructured.SetNestedField(object.Object, tc.suspended, "spec", "suspend"); err != nil {
				t.Fatal(err)
			}
			r, client := newTellingReporter(t, object)
			_, r.Store = storetest.Open(t)
			r.Removals = func() []prune.Removal { return nil }
			if tc.removed != 0 {
				removed := status.RemovedObject{UID: "uid-of-web", At: object.GetDeletionTimestamp().Add(tc.removed), Message: "deleted 1 file"}
				if tc.another {
					removed.UID = "another"
				}
				if err := r.Store.AddRemovedObject(t.Context(), "shop/web", removed, time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
			var told []string
			for range 2 {
				if err := r.reportDeleted(t.Context(), "shop/web", object); err != nil {
					t.Fatal(err)
				}
				makeAll(t, r)
				told = append(told, eventsOf(client)...)
				var err error
				if object, err = client.Resource(pipelines).Namespace("shop").Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if slices.Contains(object.GetFinalizers(), Finalizer) != tc.held {
				t.Errorf("its finalizers are %q", object.GetFinalizers())
			}
			stalled := conditions.FindStatusCondition(statusOf(object).Conditions, meta.StalledCondition)
			if !tc.held {
				if stalled != nil {
					t.Errorf("it is stalled: %+v", stalled)
				}
				return
			}
			if stalled == nil || stalled.Reason != v1alpha1.ReasonRemovalHeld || !strings.Contains(stalled.Message, "apply the pipeline again") || !strings.Contains(stalled.Message, "rendered web") {
				t.Errorf("its condition is %+v", stalled)
			}
			if len(told) != 1 || !strings.HasPrefix(told[0], v1alpha1.ReasonRemovalHeld+": what it has published is not removed") {
				t.Errorf("it is told %q", told)
			}
		})
	}
}

// deleteAll has pipelines that have published deleted, and a daemon deal with that by leaving it, and returns their objects.
func deleteAll(t *testing.T, r *Reporter, q *queue.Queue, n int) (deleted []*unstructured.Unstructured) {
	t.Helper()
	for i := range n {
		one := newPipeline(fmt.Sprint("web", i), "Delete", false)
		source := map[string]any{"git": map[string]any{"url": "https://git.example.com/shop/apps"}}
		to := []any{map[string]any{"externalArtifact": map[string]any{}}}
		one.Object["spec"] = map[string]any{"deletionPolicy": "Delete", "source": source, "publish": to}
		one.Object["status"] = map[string]any{"published": []any{map[string]any{"target": "ExternalArtifact"}}}
		r.Watcher.storeObject(pipelines, one)
		gone := one.DeepCopy()
		now := metav1.Now()
		gone.SetDeletionTimestamp(&now)
		gone.SetFinalizers([]string{Finalizer})
		deleted = append(deleted, gone)
	}
	if _, err := r.Catalog.Reload(); err != nil {
		t.Fatal(err)
	}
	keeper := &prune.Keeper{Catalog: r.Catalog, Store: r.Store, Queue: q, MaxShare: 100, Log: r.Log}
	remover := &prune.Remover{Catalog: r.Catalog, Store: r.Store, Queue: q, Targets: publish.NewTargets(nil, nil, nil, tree.Limits{}, nil), Log: r.Log}
	check := func() {
		for range 2 { // one registers and marks, the other approves
			if err := errors.Join(keeper.Check(t.Context()), r.Store.Sync(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
	}
	check()
	for _, one := range deleted {
		r.Watcher.storeObject(pipelines, one)
	}
	if _, err := r.Catalog.Reload(); err != nil {
		t.Fatal(err)
	}
	check()
	for _, one := range deleted {
		if err := errors.Join(keeper.Confirm(t.Context(), []string{keyOf(one)}, true), r.Store.Sync(t.Context())); err != nil {
			t.Fatal(err)
		}
		if removed, err := remover.Remove(t.Context(), queue.Job{Pipeline: keyOf(one)}); removed == nil || err != nil {
			t.Fatalf("removing %s: %v, %v", keyOf(one), removed, err)
		}
	}
	if err := r.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return deleted
}

// TestManyAreRemovedBeforeAnotherLeads deletes more pipelines than the list for people has, and what they have published is dealt with before
// another process writes the status of their objects: all go, and what is kept of them goes after them.
func TestManyAreRemovedBeforeAnotherLeads(t *testing.T) {
	const many = 60
	r, _ := newTellingReporter(t)
	var q *queue.Queue
	q, r.Store = storetest.Open(t)
	openCatalog(t, r)
	deleted := deleteAll(t, r, q, many)
	objects := make([]runtime.Object, many)
	for i, one := range deleted {
		objects[i] = one
	}
	if one, _, _ := r.Store.RemovedObject("shop/web0"); one.UID != "uid-of-web0" {
		t.Errorf("it is noted of web0 as %+v", one)
	}
	next, client := newTellingReporter(t, objects...)
	next.Store, next.Catalog, next.Removals = r.Store, r.Catalog, r.Removals
	for _, one := range deleted {
		next.Watcher.storeObject(pipelines, one)
		if err := next.reconcileObject(t.Context(), item{pipelines, keyOf(one)}); err != nil {
			t.Fatal(err)
		}
		if reason, finalizers := readyReason(t, client, one.GetName()); reason != "" || len(finalizers) > 0 {
			t.Fatalf("%s has the reason %q and the finalizers %q", one.GetName(), reason, finalizers)
		}
	}
	makeAll(t, next)
	if got := eventsOf(client); len(got) != many {
		t.Errorf("%d events are made", len(got))
	}
}

// TestRemovedObjectsAreForgotten has pipelines that were removed long ago: what is noted of that stays for as long as their objects wait.
func TestRemovedObjectsAreForgotten(t *testing.T) {
	r, _ := newTestReporter()
	_, r.Store = storetest.Open(t)
	left := newPipeline("left", "Delete", true)
	left.SetFinalizers([]string{"example.com/other"})
	for _, one := range []*unstructured.Unstructured{newPipeline("waits", "Delete", true), newPipeline("back", "Delete", false), left} {
		r.Watcher.storeObject(pipelines, one)
	}
	for _, name := range []string{"waits", "back", "left", "gone", "new"} {
		at := time.Now().Add(-2 * keepRemoved)
		if name == "new" {
			at = time.Now()
		}
		if err := r.Store.AddRemovedObject(t.Context(), "shop/"+name, status.RemovedObject{At: at}, at); err != nil {
			t.Fatal(err)
		}
	}
	look := func(want ...string) {
		t.Helper()
		if err := r.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.forgetRemoved(t.Context())
		if err := r.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.Store.RemovedObjects(); !slices.Equal(got, want) {
			t.Errorf("it is noted of %q, want %q", got, want)
		}
	}
	r.Watcher.setProblem(errors.New("connection refused"))
	look("shop/back", "shop/gone", "shop/left", "shop/new", "shop/waits")
	r.Watcher.setProblem(nil)
	look("shop/new", "shop/waits")
}
