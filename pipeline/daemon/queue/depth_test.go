// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// TestRetriesDoNotAgeTheQueue: one broken pipeline in a daemon that works must not look like a queue that nobody works on.
func TestRetriesDoNotAgeTheQueue(t *testing.T) {
	q, err := Open(t.Context(), Options{Dir: statetest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	request := func(pipeline, cause string) {
		t.Helper()
		if err := q.Request(t.Context(), Job{Pipeline: pipeline, Cause: cause}); err != nil {
			t.Fatal(err)
		}
	}
	for _, pipeline := range []string{"broken", "newer", "waits"} {
		request(pipeline, "1")
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := 0
	_ = q.Work(ctx, 1, func(context.Context, Job) error {
		if failed++; failed == 3 {
			cancel()
		}
		return &RetryError{After: time.Hour, Err: errors.New("no answer")}
	})
	request("newer", "2") // a push after the failure waits for nothing
	afterFirst := time.Now()
	failing := map[string]string{"broken": "1", "newer": "1"}
	retrying := func(pipeline string) (string, bool) { cause, ok := failing[pipeline]; return cause, ok }
	depth, err := q.Depth(t.Context(), retrying)
	if err != nil || depth.Jobs != 3 || depth.Retrying != 1 || depth.Oldest.IsZero() || depth.Oldest.After(afterFirst) {
		t.Errorf("%+v, error %v", depth, err)
	}
	failing["waits"], failing["newer"] = "1", "2"
	if depth, err = q.Depth(t.Context(), retrying); err != nil || depth.Jobs != 3 || depth.Retrying != 3 || !depth.Oldest.IsZero() {
		t.Errorf("where all are tried again: %+v, error %v", depth, err)
	}
	request("fresh", "3")
	if depth, err = q.Depth(t.Context(), retrying); err != nil || depth.Jobs != 4 || depth.Retrying != 3 || depth.Oldest.Before(afterFirst.Add(-time.Minute)) || depth.Oldest.IsZero() {
		t.Errorf("with one that is new: %+v, error %v", depth, err)
	}
}
