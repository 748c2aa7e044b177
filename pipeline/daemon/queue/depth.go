// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Depth is the amount of pending work.
type Depth struct {
	// Jobs is how many are not done: those that wait, that run, and that are tried again later. Retrying are the last.
	Jobs, Retrying int
	// Oldest is when the oldest job that is not waiting for a retry was requested; the zero time if none exists.
	Oldest time.Time
}

// maxRetries bounds how many jobs are read to find out which are tried again later. What lies beyond counts as waiting.
const maxRetries = 2000

// Depth returns the amount of pending work. The function returns the cause of the failure that a pipeline is being
// retried for; it is called for each pipeline that has a job. It may be nil if none is retried.
func (q *Jobs) Depth(ctx context.Context, retrying func(pipeline string) (cause string, ok bool)) (Depth, error) {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	info, err := q.workInfo(ctx, q.workSubjects())
	if err != nil {
		return Depth{}, err
	}
	depth := Depth{Jobs: len(info.State.Subjects)}
	skip := map[string]bool{} // subjects of jobs that are tried again later
	for subject := range info.State.Subjects {
		if retrying == nil || len(skip) == maxRetries {
			break
		}
		name, ok := subjectText(subject)
		if !ok {
			continue
		}
		cause, ok := retrying(name)
		if !ok {
			continue
		}
		again, err := q.hasJobOf(ctx, subject, cause)
		if err != nil {
			return Depth{}, err
		}
		if again {
			skip[subject] = true
		}
	}
	depth.Retrying = len(skip)
	if depth.Retrying == depth.Jobs {
		return depth, nil
	}
	depth.Oldest, err = q.oldestJob(ctx, info.State.FirstSeq, skip)
	return depth, err
}

// hasJobOf reports whether the job of a subject has a cause. A newer one with another cause is a new attempt, and
// does not wait.
func (q *Jobs) hasJobOf(ctx context.Context, subject, cause string) (bool, error) {
	msg, err := q.workStream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil // it has ended meanwhile
	}
	if err != nil {
		return false, fmt.Errorf("looking at the work queue: %w", err)
	}
	var job Job
	return json.Unmarshal(msg.Data, &job) == nil && job.Cause == cause, nil
}

// oldestJob returns when the first job whose subject is not skipped was stored; the zero time if none exists.
func (q *Jobs) oldestJob(ctx context.Context, first uint64, skip map[string]bool) (time.Time, error) {
	for next := max(first, 1); ; {
		msg, err := q.workStream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(q.workSubjects()))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return time.Time{}, nil
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("looking at the work queue: %w", err)
		}
		if !skip[msg.Subject] {
			return msg.Time, nil
		}
		next = msg.Sequence + 1
	}
}
