// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/meta"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/storetest"
)

// suspendedPipeline is one that is ready without a run.
func suspendedPipeline(uid string, generation int64, branch string) *unstructured.Unstructured {
	one := newPipeline("web", "Orphan", false)
	one.SetUID(types.UID(uid))
	one.SetGeneration(generation)
	one.Object["spec"] = map[string]any{
		"suspend": true, "source": map[string]any{"git": map[string]any{"url": "https://git.example.com/shop/apps"}},
		"publish": []any{map[string]any{"git": map[string]any{"branch": branch}}},
	}
	return one
}

// TestWhatNobodyHasReadIsNotObserved changes a pipeline, or makes it anew, while objects of another namespace cannot be read, so that the
// catalog stays as it is: the status does not say that the new specification was seen until it was.
func TestWhatNobodyHasReadIsNotObserved(t *testing.T) {
	for name, changed := range map[string]*unstructured.Unstructured{
		"another generation":              suspendedPipeline("first", 2, "other"),
		"made anew":                       suspendedPipeline("second", 1, "other"),
		"another generation says as much": suspendedPipeline("first", 2, "rendered"),
	} {
		t.Run(name, func(t *testing.T) {
			before := suspendedPipeline("first", 1, "rendered")
			r, client := newTestReporter(before)
			_, r.Store = storetest.Open(t)
			state, _, err := r.Store.Load(t.Context(), "shop/web")
			if err != nil {
				t.Fatal(err)
			}
			state.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason}}
			if _, err := r.Store.Save(t.Context(), "shop/web", state, 0); err != nil {
				t.Fatal(err)
			}
			if err := r.Store.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.Watcher.storeObject(pipelines, before)
			openCatalog(t, r)
			look := func(object *unstructured.Unstructured, observed int64, ready metav1.ConditionStatus) *unstructured.Unstructured {
				t.Helper()
				r.Watcher.storeObject(pipelines, object)
				if err := r.reconcileObject(t.Context(), item{pipelines, "shop/web"}); err != nil {
					t.Fatal(err)
				}
				object, err := client.Resource(pipelines).Namespace("shop").Get(t.Context(), "web", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				s := statusOf(object)
				if c := conditions.FindStatusCondition(s.Conditions, meta.ReadyCondition); c == nil || c.Status != ready || s.ObservedGeneration != observed {
					t.Errorf("generation %d has the status %+v; want %d observed, %s", object.GetGeneration(), s, observed, ready)
				}
				return object
			}
			look(before, 1, metav1.ConditionTrue)
			r.Watcher.setProblem(errors.New("namespace pay cannot be read"))
			if changed.GetUID() == before.GetUID() {
				changed.Object["status"] = look(before, 1, metav1.ConditionTrue).Object["status"]
			}
			observed := statusOf(changed).ObservedGeneration
			if _, err := client.Resource(pipelines).Namespace("shop").Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Catalog.Reload(); err == nil {
				t.Fatal("the catalog is read again")
			}
			changed = look(changed, observed, metav1.ConditionUnknown)
			r.Watcher.setProblem(nil)
			if _, err := r.Catalog.Reload(); err != nil {
				t.Fatal(err)
			}
			look(changed, changed.GetGeneration(), metav1.ConditionTrue)
		})
	}
}

// TestSuspendedBeforeItRan reports a new pipeline with the status that the API server fills in: while it is suspended, nothing is
// published, and kstatus does not take it for ready.
func TestSuspendedBeforeItRan(t *testing.T) {
	for name, tc := range map[string]struct {
		suspend  bool
		reason   string
		observed int64
	}{
		"suspended": {true, v1alpha1.ReasonSuspended, 1},
		"to be run": {false, meta.ProgressingReason, -1},
	} {
		t.Run(name, func(t *testing.T) {
			object := suspendedPipeline("first", 1, "rendered")
			object.Object["spec"].(map[string]any)["suspend"] = tc.suspend
			object.Object["status"] = map[string]any{"observedGeneration": int64(-1)}
			r, client := newTestReporter(object)
			_, r.Store = storetest.Open(t)
			r.RequestDigest = func(*v1alpha1.RenderPipeline) string { return "" }
			r.Watcher.storeObject(pipelines, object)
			openCatalog(t, r)
			if err := r.reconcileObject(t.Context(), item{pipelines, "shop/web"}); err != nil {
				t.Fatal(err)
			}
			object, err := client.Resource(pipelines).Namespace("shop").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s := statusOf(object)
			if c := conditions.FindStatusCondition(s.Conditions, meta.ReadyCondition); c == nil || c.Status != metav1.ConditionUnknown || c.Reason != tc.reason || s.ObservedGeneration != tc.observed {
				t.Errorf("its status is %+v", s)
			}
			object.Object["status"].(map[string]any)["observedGeneration"] = s.ObservedGeneration // as it is decoded from an API server
			if got, err := kstatus.Compute(object); err != nil || got.Status != kstatus.InProgressStatus {
				t.Errorf("for kstatus it is %+v, %v", got, err)
			}
		})
	}
}
