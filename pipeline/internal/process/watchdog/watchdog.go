// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package watchdog abandons steps that do not end. A context asks a step to end; one that is stuck in a library, a
// file system or a loop does not notice, and its callers would wait for ever, holding all their locks.
package watchdog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/fault"
)

// Names of steps in the log and in metrics.
const (
	StepCatalog    = "catalog"
	StepPlan       = "plan"
	StepFetch      = "fetch"
	StepRender     = "render"
	StepPublish    = "publish"
	StepDifference = "difference"
	StepNotify     = "notify"
)

// Steps are all of them.
var Steps = []string{StepCatalog, StepPlan, StepFetch, StepRender, StepPublish, StepDifference, StepNotify}

// Watchdog watches steps. The zero value and nil watch too, without reporting. It is safe for concurrent use.
type Watchdog struct {
	// Log receives each abandoned step, and its end if it ends after all; nil disables logging.
	Log *slog.Logger
	// LeftBehind is called with 1 for an abandoned step, and with -1 when it has ended after all. It may be nil.
	LeftBehind func(step string, change int)
	// Grace is how long a step may take to end after its context is done, ten seconds where it is 0.
	Grace time.Duration
	// Longest bounds the limit of every step where it is not 0, for tests.
	Longest time.Duration

	mu   sync.Mutex
	left map[string]time.Time // steps that were left behind and have not ended, and when they began
}

// Step is something that has to end in time.
type Step struct {
	// Name is one of Steps.
	Name string
	// Subject is what it works on, such as a pipeline. Two that are equal in both are taken for the same thing.
	Subject string
	// Limit is when its context is done.
	Limit time.Duration
}

// ErrOverdue is the cause of the error about a step that was left behind.
var ErrOverdue = errors.New("it hangs and was left behind")

// defaultGrace is long enough for what has to be ended in an orderly way, such as a request or a process.
const defaultGrace = 10 * time.Second

// Run calls do with a context that is done at the step's limit, and returns what it returns. Where do has not ended
// some time after its context is done, Run returns without it, with ErrOverdue as the cause of the error, and do's
// result is dropped. Until that one has ended the same step is not begun again, so that no more than one hangs; that is
// ErrOverdue, too. A panic of do is a *fault.Error. do must not write anything that its caller reads.
func Run[T any](ctx context.Context, w *Watchdog, s Step, do func(ctx context.Context) (T, error)) (T, error) {
	if w == nil {
		w = &Watchdog{}
	}
	var none T
	if since, hangs := w.hangsSince(s); hangs {
		return none, fmt.Errorf("%s has not ended since %s: %w", s.Name, since.UTC().Format(time.RFC3339), ErrOverdue)
	}
	limit := s.Limit
	if w.Longest != 0 {
		limit = min(limit, w.Longest)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type result struct {
		value T
		err   error
	}
	began, ended := time.Now(), make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if cause := recover(); cause != nil {
				r = result{err: fault.Recovered(cause)}
			}
			ended <- r
		}()
		r.value, r.err = do(ctx)
	}()
	select {
	case r := <-ended:
		return r.value, r.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(w.graceOrDefault())
	defer grace.Stop()
	select {
	case r := <-ended:
		return r.value, r.err
	case <-grace.C:
	}
	w.abandonStep(s, began)
	go func() {
		r := <-ended
		w.endAfterAll(s, began, r.err)
	}()
	return none, fmt.Errorf("%s has not ended after %s: %w", s.Name, time.Since(began).Round(time.Millisecond), ErrOverdue)
}

// Check is the last question before something is written that others may have written since: it returns an error where
// the step that ctx belongs to is over, as one that was left behind must not bring an old state back.
func Check(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("nothing was written, as it came too late: %w", context.Cause(ctx))
}

func (w *Watchdog) graceOrDefault() time.Duration {
	if w.Grace == 0 {
		return defaultGrace
	}
	return w.Grace
}

func (s Step) key() string { return s.Name + "\x00" + s.Subject }

// hangsSince reports whether a step was left behind and has not ended, and when it began.
func (w *Watchdog) hangsSince(s Step) (since time.Time, hangs bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, hangs = w.left[s.key()]
	return since, hangs
}

func (w *Watchdog) abandonStep(s Step, began time.Time) {
	w.mu.Lock()
	if w.left == nil {
		w.left = map[string]time.Time{}
	}
	w.left[s.key()] = began
	w.mu.Unlock()
	if w.LeftBehind != nil {
		w.LeftBehind(s.Name, 1)
	}
	if w.Log != nil {
		w.Log.Error("a step hangs and was left behind; it is not begun again before it has ended", "step", s.Name,
			"subject", s.Subject,
			"after", time.Since(began))
	}
}

func (w *Watchdog) endAfterAll(s Step, began time.Time, err error) {
	w.mu.Lock()
	if w.left[s.key()].Equal(began) {
		delete(w.left, s.key())
	}
	w.mu.Unlock()
	if w.LeftBehind != nil {
		w.LeftBehind(s.Name, -1)
	}
	if w.Log != nil {
		w.Log.Warn("a step that was left behind has ended; what it gave is dropped", "step", s.Name, "subject",
			s.Subject,
			"after", time.Since(began), "error", err)
	}
}
