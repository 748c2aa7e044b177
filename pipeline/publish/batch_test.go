// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/fault"
)

// TestABatchDoesNotWaitForWhatHangs: the others of a commit are published although one of them does not come to an end.
func TestABatchDoesNotWaitForWhatHangs(t *testing.T) {
	var b causeBatches
	for _, pipeline := range []string{"a", "b", "c"} {
		b.enter("cause", pipeline, 3)
	}
	b.leave("cause", "a")
	b.leave("cause", "b")
	now := time.Now()
	if b.isComplete("cause", now.Add(batchStall/2)) {
		t.Error("it did not wait at all")
	}
	if !b.isComplete("cause", now.Add(batchStall+time.Second)) {
		t.Error("it waits for the one that hangs")
	}
	b.enter("cause", "a", 3) // tried again
	b.leave("cause", "a")
	if !b.isComplete("cause", now.Add(batchStall+time.Second)) {
		t.Error("it waits for one that is tried again")
	}
	// One that has been at it for long waits longer: its renders may be large.
	b.open["cause"].began = now.Add(-time.Minute)
	if b.isComplete("cause", now.Add(batchStall+time.Second)) || !b.isComplete("cause", now.Add(20*time.Second)) {
		t.Error("a long batch does not wait longer")
	}
	b.leave("cause", "c")
	if !b.isComplete("cause", time.Now()) {
		t.Error("it waits for nobody")
	}
}

func TestAPanicWhilePublishingIsAnErrorOfAllWhoWait(t *testing.T) {
	b := changeBatcher{lock: func(context.Context, string) (func(), error) { return func() {}, nil }}
	done := b.handIn(t.Context(), "k", "l", "x", nil, Change{})
	if !errors.As(done.err, new(*fault.Error)) {
		t.Errorf("%v", done.err)
	}
}
