// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/queue"
)

// nextJob returns the only job in the queue and leaves it there.
func (b *bed) nextJob() (found queue.Job) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	if err := b.queue.Work(ctx, 1, func(_ context.Context, j queue.Job) error {
		found = j
		cancel()
		return &queue.RetryError{Err: context.Canceled}
	}); err != nil {
		b.t.Fatal(err)
	}
	return found
}

// TestAJobNamesARevisionOnlyWhereNoRunCanHaveSeenMore: a run that is under way may publish what is newer than the planner's
// look, and be killed before its state says so.
func TestAJobNamesARevisionOnlyWhereNoRunCanHaveSeenMore(t *testing.T) {
	b := newBed(t, 1, branches)
	state, _, err := b.store.Load(t.Context(), name(0))
	if err != nil {
		t.Fatal(err)
	}
	rendered := state.Seen.Resolved
	for i, text := range []string{"kind: Service\n", "kind: Secret\n"} {
		head := b.repository.Commit(text, map[string]string{"apps/" + name(0) + "/app.yaml": text})
		if err := b.planner.Event(t.Context(), b.event(head), time.Now()); err != nil {
			t.Fatal(err)
		}
		want := "main@sha1:" + head
		if i > 0 {
			want = ""
		}
		got := b.nextJob()
		if got.Revision != want || want != "" && !got.Rendered.Equal(rendered) {
			t.Errorf("job %d: revision %q of a look after the render at %s, want %q and %s", i, got.Revision, got.Rendered, want, rendered)
		}
	}
}
