// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// pipelineLock is in front of the names of the locks that running jobs hold.
const pipelineLock = "pipeline/"

// HasWorkers reports whether some process accepts jobs: it waits for one, or had one within Options.AckWait. It
// observes what workers of every version do rather than a heartbeat. A worker that has just received a job may be
// missed once.
func (q *Jobs) HasWorkers(ctx context.Context) (bool, error) {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	info, err := q.work.Info(ctx)
	if err != nil {
		return false, fmt.Errorf("looking for workers: %w", err)
	}
	if info.NumWaiting > 0 {
		return true, nil
	}
	if q.local != nil {
		return q.local.hasLockWithPrefix(pipelineLock), nil
	}
	locks, err := q.js.Stream(ctx, "KV_"+q.prefixedName("LOCKS"))
	if err != nil {
		return false, fmt.Errorf("looking for workers: %w", err)
	}
	held, err := locks.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return false, fmt.Errorf("looking for workers: %w", err)
	}
	for subject := range held.State.Subjects {
		if name, ok := subjectText(subject); ok && strings.HasPrefix(name, pipelineLock) {
			return true, nil
		}
	}
	return false, nil
}
