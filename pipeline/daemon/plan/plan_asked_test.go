// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
)

func TestAnAnnotationAsksForARun(t *testing.T) {
	b := newBed(t, 2, branches)
	for _, at := range []string{"monday", "tuesday"} {
		b.write(b.pipelines, name(1)+".yaml", strings.Replace(branches(1, b.repository.URL), "{name:", "{annotations: {reconcile.fluxcd.io/requestedAt: "+at+"}, name:", 1))
		b.reload()
		for _, want := range [][]string{{name(1)}, nil} {
			if err := b.planner.Consider(t.Context(), []string{name(0), name(1)}, plan.Cause{ID: at, Since: time.Now()}); err != nil {
				t.Fatal(err)
			}
			if got := b.asked(); !slices.Equal(got, want) {
				t.Errorf("%s: asked for %v, want %v", at, got, want)
			}
			b.change(name(1), func(s *status.State) { s.Annotation = at }) // as the run notes it
		}
	}
}

// TestASourceThatDoesNotAnswerAsksOnlyWhereNoTryWillSeeIt has a job for each of three pipelines at that time.
func TestASourceThatDoesNotAnswerAsksOnlyWhereNoTryWillSeeIt(t *testing.T) {
	for what, test := range map[string]struct {
		state      func(*status.State)
		now, moved bool
		want       bool
	}{
		"one that is ready": {want: true, state: func(*status.State) {}},
		"one that is tried again": {state: func(s *status.State) {
			s.Failures = 1
			s.Ready(time.Now(), false, v1alpha1.ReasonSourceFailed, "", false)
		}},
		"one that is tried, and resumed": {now: true, want: true, state: func(s *status.State) {
			s.Failures = 1
			s.Ready(time.Now(), false, v1alpha1.ReasonSourceFailed, "", false)
		}},
		"one that is tried, and whose branch has moved": {moved: true, want: true, state: func(s *status.State) {
			s.Failures = 1
			s.Ready(time.Now(), false, v1alpha1.ReasonSourceFailed, "", false)
		}},
		"one whose branch has moved": {moved: true, want: true, state: func(*status.State) {}},
		"one that waits for a change": {want: true, state: func(s *status.State) {
			s.Failures = 1
			s.Ready(time.Now(), false, v1alpha1.ReasonBuildFailed, "", true)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBed(t, 1, branches)
			b.change(name(0), test.state)
			if err := b.queue.Request(t.Context(), queue.Job{Pipeline: name(0), Cause: "earlier"}); err != nil {
				t.Fatal(err)
			}
			b.git.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
				http.Error(w, "gone", http.StatusForbidden)
				return true
			})
			if err := b.planner.Consider(t.Context(), []string{name(0)}, plan.Cause{ID: "later", Since: time.Now(), Now: test.now, Drift: test.moved, Moved: test.moved}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := b.queue.Work(ctx, 1, func(_ context.Context, j queue.Job) error {
				if (j.Cause == "later") != test.want || j.Drift != test.moved {
					t.Errorf("the job is that of the %s event, and looks for drift: %t", j.Cause, j.Drift)
				}
				cancel()
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// odd panics when it is asked.
type odd struct{}

func (odd) Secret(context.Context, string, string, secret.Purpose) (map[string][]byte, error) {
	panic("odd secret")
}

// TestAPanicOfALookAsksForARun which then tells of it, and stops no look at another source.
func TestAPanicOfALookAsksForARun(t *testing.T) {
	b := newBed(t, 2, branches)
	b.write(b.pipelines, name(0)+".yaml", strings.Replace(branches(0, b.repository.URL), "ref: {branch: main}", "ref: {branch: main}, secretRef: {name: x}", 1))
	b.reload()
	b.repository.Commit("more", map[string]string{"policy/policy.yaml": "kind: Other\n"})
	b.planner.Fetcher = source.New(source.Options{StateDir: t.TempDir(), Secrets: odd{}})
	if err := b.planner.Consider(t.Context(), []string{name(0), name(1)}, plan.Cause{ID: "x", Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	pending, err := b.queue.Pending(t.Context())
	if err != nil || !pending[name(0)] || !pending[name(1)] {
		t.Errorf("asked for %v, %v", pending, err)
	}
}
