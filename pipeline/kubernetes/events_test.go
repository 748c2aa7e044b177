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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/status"
)

// newTestReporter is one for objects in the memory of a client that client-go has for tests.
func newTestReporter(objects ...runtime.Object) (*Reporter, *fake.FakeDynamicClient) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		pipelines: "RenderPipelineList", policies: "InjectionPolicyList", events: "EventList",
	}, objects...)
	return &Reporter{Client: &Client{dynamic: client}, Watcher: newTestWatcher(), Log: slog.New(slog.DiscardHandler)}, client
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
	r, client := newTestReporter(object)
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
			if err := r.tellRuns(t.Context(), object, before, state); err != nil {
				t.Fatal(err)
			}
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
	look()
	run(7, status.Failed, "no answer")
	run(8, status.Published, "second")
	look("Published: main@sha1:5e1f: second", "Failed: no answer")
}

// TestAnInvalidPipelineIsToldOnce looks at an invalid pipeline again, also after its event has expired.
func TestAnInvalidPipelineIsToldOnce(t *testing.T) {
	object := newPipeline("web", "Orphan", false)
	r, client := newTestReporter(object)
	var before v1alpha1.RenderPipelineStatus
	for i, problem := range []string{"one", "one", "two", "two", "one"} {
		err := errors.New(problem)
		after := r.statusAfter(before, int64(i), catalog.Entry{Err: err}, &status.State{})
		if err := r.tellInvalid(t.Context(), object, before.Conditions, after.Conditions, err); err != nil {
			t.Fatal(err)
		}
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
