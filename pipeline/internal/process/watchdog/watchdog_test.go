// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/fault"
)

// TestFinding3StepThatHangsIsLeftBehind has a step that does not hear its context: its caller goes on, it is logged and counted,
// it is not begun a second time, and begun again when it has ended.
func TestFinding3StepThatHangsIsLeftBehind(t *testing.T) {
	var log bytes.Buffer
	var hanging, begun atomic.Int64
	ended := make(chan struct{})
	w := &Watchdog{Log: slog.New(slog.NewTextHandler(&log, nil)), Grace: time.Millisecond, LeftBehind: func(step string, change int) {
		if step != StepFetch {
			t.Errorf("it tells of %q", step)
		}
		if hanging.Add(int64(change)) == 0 {
			close(ended)
		}
	}}
	release := make(chan struct{})
	step := Step{Name: StepFetch, Subject: "team/shop", Limit: time.Millisecond}
	hang := func(context.Context) (string, error) { begun.Add(1); <-release; return "late", nil }
	for range 3 {
		if got, err := Run(t.Context(), w, step, hang); got != "" || !errors.Is(err, ErrOverdue) {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if begun.Load() != 1 || hanging.Load() != 1 {
		t.Errorf("begun %d times, %d hang", begun.Load(), hanging.Load())
	}
	if !strings.Contains(log.String(), "step=fetch") || !strings.Contains(log.String(), "subject=team/shop") {
		t.Errorf("the log says %q", log.String())
	}
	// Another one is not held up.
	other := step
	other.Subject, other.Limit = "team/other", time.Minute
	if got, err := Run(t.Context(), w, other, func(context.Context) (string, error) { return "done", nil }); got != "done" || err != nil {
		t.Errorf("another: %q, %v", got, err)
	}
	close(release)
	<-ended
	if got, err := Run(t.Context(), w, Step{Name: step.Name, Subject: step.Subject, Limit: time.Minute}, hang); got != "late" || err != nil {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

// TestStepsThatEnd are those that hear their context, that fail and that panic: what they return counts.
func TestStepsThatEnd(t *testing.T) {
	failed := errors.New("failed")
	step := Step{Name: StepPlan, Limit: time.Minute}
	if _, err := Run(t.Context(), nil, step, func(context.Context) (int, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if _, err := Run(t.Context(), nil, step, func(context.Context) (int, error) { panic("no such luck") }); !errors.As(err, new(*fault.Error)) {
		t.Errorf("%v", err)
	}
	w := &Watchdog{Longest: time.Millisecond}
	got, err := Run(t.Context(), w, step, func(ctx context.Context) (int, error) { <-ctx.Done(); return 7, Check(ctx) })
	if got != 7 || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrOverdue) {
		t.Errorf("%d, %v", got, err)
	}
}
