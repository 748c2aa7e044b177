// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/fault"
)

// TestABatchDoesNotWaitForWhatHangs: the others of a commit are published although one of them does not come to an end.
func TestABatchDoesNotWaitForWhatHangs(t *testing.T) {
	var b causeBatches
	for _, pipeline := range []string{"a", "b", "c"} {
		b.recordJobStart("cause", pipeline, 3)
	}
	b.recordJobLeft("cause", "a")
	b.recordJobLeft("cause", "b")
	now := time.Now()
	if b.isComplete("cause", now.Add(batchStall/2)) {
		t.Error("it did not wait at all")
	}
	if !b.isComplete("cause", now.Add(batchStall+time.Second)) {
		t.Error("it waits for the one that hangs")
	}
	b.recordJobStart("cause", "a", 3) // tried again
	b.recordJobLeft("cause", "a")
	if !b.isComplete("cause", now.Add(batchStall+time.Second)) {
		t.Error("it waits for one that is tried again")
	}
	// One that has been at it for long waits longer: its renders may be large.
	b.open["cause"].began = now.Add(-time.Minute)
	if b.isComplete("cause", now.Add(batchStall+time.Second)) || !b.isComplete("cause", now.Add(20*time.Second)) {
		t.Error("a long batch does not wait longer")
	}
	b.recordJobLeft("cause", "c")
	if !b.isComplete("cause", time.Now()) {
		t.Error("it waits for nobody")
	}
}

// TestABatchDoesNotWaitForRunsThatCannotBegin: of a cause with more jobs than may be under way, those that are need not wait.
func TestABatchDoesNotWaitForRunsThatCannotBegin(t *testing.T) {
	now := time.Now()
	one, other := &changeGroup{}, &changeGroup{}
	b := changeBatcher{slots: 3, groups: map[string]*changeGroup{"one": one, "other": other}}
	add := func(g *changeGroup, pipeline string) {
		b.batches.recordJobStart("cause", pipeline, 100)
		b.batches.recordJobLeft("cause", pipeline)
		g.waiting = append(g.waiting, &waitingChange{cause: "cause", since: now})
	}
	add(one, "a")
	add(one, "b")
	if b.mayPublish(one, now) {
		t.Error("two of three are published, the third could still come")
	}
	add(other, "c")
	if !b.mayPublish(one, now) || !b.mayPublish(other, now) {
		t.Error("three of three wait for others")
	}
	one.waiting = one.waiting[:1]
	if b.mayPublish(one, now) || !b.mayPublish(one, now.Add(batchLongest+time.Second)) {
		t.Error("a run has ended, so that others can begin, and are waited for, but not for ever")
	}
}

func TestAPanicWhilePublishingIsAnErrorOfAllWhoWait(t *testing.T) {
	b := changeBatcher{lock: func(context.Context, string) (func(), error) { return func() {}, nil }}
	done := b.submitChange(t.Context(), "k", "l", "x", nil, Change{})
	if !errors.As(done.err, new(*fault.Error)) {
		t.Errorf("%v", done.err)
	}
}
