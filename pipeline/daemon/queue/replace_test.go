// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// TestAJobThatIsReplacedLosesNothingThatItWasToDo has a job that looks for drift, or renders in any case, replaced by one that need not,
// before it has begun and while it runs and then fails.
func TestAJobThatIsReplacedLosesNothingThatItWasToDo(t *testing.T) {
	for name, first := range map[string]Job{
		"drift": {Drift: true},
		"force": {Force: true},
		"both":  {Drift: true, Force: true},
		"none":  {},
	} {
		t.Run(name, func(t *testing.T) {
			q := opened(t, statetest.Dir(t))
			defer q.Close()
			first.Pipeline, first.Cause = "team/a", "first"
			request := func(jobs ...Job) {
				t.Helper()
				for _, j := range jobs {
					if err := q.Request(t.Context(), j); err != nil {
						t.Fatal(err)
					}
				}
			}
			later := func(cause string) Job { return Job{Pipeline: "team/a", Cause: cause, Revision: cause} }
			request(first, later("second"), later("third"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var causes []string
			err := q.Work(ctx, 1, func(_ context.Context, j Job) error {
				causes = append(causes, j.Cause)
				if j.Drift != first.Drift || j.Force != first.Force || j.Revision != j.Cause {
					t.Errorf("%+v replaced one with drift %t and force %t", j, first.Drift, first.Force)
				}
				if j.Cause == "third" {
					request(later("fourth"))
					return errors.New("it fails")
				}
				cancel()
				return nil
			})
			if err != nil || fmt.Sprint(causes) != "[third fourth]" {
				t.Errorf("done: %v, %v", causes, err)
			}
			// What was done is not asked for again.
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			request(Job{Pipeline: "team/a", Cause: "fifth"})
			err = q.Work(ctx, 1, func(_ context.Context, j Job) error {
				if j.Drift || j.Force {
					t.Errorf("after it was done: %+v", j)
				}
				cancel()
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOfManyRequestsAtOnceNoneIsLost has one of them look for drift.
func TestOfManyRequestsAtOnceNoneIsLost(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			if err := q.Request(t.Context(), Job{Pipeline: "a", Cause: fmt.Sprint(i), Drift: i == 7, Force: i == 11}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := q.Work(ctx, 1, func(_ context.Context, j Job) error {
		if !j.Drift || !j.Force {
			t.Errorf("left of all is %+v", j)
		}
		cancel()
		return nil
	}); err != nil {
		t.Error(err)
	}
}
