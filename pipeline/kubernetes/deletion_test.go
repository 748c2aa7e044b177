// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/storetest"
	"github.com/prerig/prerig/pipeline/prune"
	"github.com/prerig/prerig/pipeline/status"
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
		known     bool          // to this process before
		held      bool
	}{
		"lost":               {policy: "Delete", status: published, held: true},
		"removed long ago":   {policy: "Delete", status: published, removed: -time.Hour, held: true},
		"removed now":        {policy: "Delete", status: published, removed: time.Second},
		"removed with many":  {policy: "Delete", status: published, known: true},
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
				removed := status.Removed{Pipeline: "shop/web", At: object.GetDeletionTimestamp().Add(tc.removed), Message: "deleted 1 file"}
				if err := r.Store.AddRemoved(t.Context(), removed, time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
			if tc.known {
				r.noteKnown("shop/web", object)
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

// TestAKnownPipelineThatIsForgottenWasRemoved deletes a pipeline while something is stored of it, and then nothing any more.
func TestAKnownPipelineThatIsForgottenWasRemoved(t *testing.T) {
	object := newPipeline("web", "Delete", true)
	object.Object["status"] = map[string]any{"published": []any{map[string]any{"target": "https://git.example.com/shop/apps rendered web"}}}
	r, client := newTellingReporter(t, object)
	_, r.Store = storetest.Open(t)
	r.Removals = func() []prune.Removal { return nil }
	err := r.Store.ChangeRegistration(t.Context(), "shop/web", func(r *status.Registration) bool {
		r.Policy = v1alpha1.DeletionDelete
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	_, revision, err := r.Store.LoadRegistration(t.Context(), "shop/web")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if err := r.reportDeleted(t.Context(), "shop/web", object); err != nil {
			t.Fatal(err)
		}
		if object, err = client.Resource(pipelines).Namespace("shop").Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(object.GetFinalizers(), Finalizer) != want {
			t.Errorf("its finalizers are %q", object.GetFinalizers())
		}
		if forgotten, err := r.Store.Forget(t.Context(), "shop/web", revision); err != nil || want && !forgotten {
			t.Fatal(forgotten, err)
		}
	}
}
