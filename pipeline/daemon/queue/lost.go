// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrLost means that a stream of the NATS servers was deleted, recreated, or has fewer messages than it had, as after the restore of a
// backup. What this process knows of it is outdated: all of it must be opened again.
var ErrLost = errors.New("a stream of the NATS servers was deleted or is older than what this process has seen; all of it is read again")

// lookAgain is how often the streams of NATS servers are looked at, and lossLooks how many looks in a row must find a loss: one of
// several servers may not know the latest for a moment.
const (
	lookAgain = 5 * time.Second
	lossLooks = 3
)

// seenStream is a stream as it was seen last.
type seenStream struct {
	made time.Time
	last uint64
	lost int // looks in a row that have found less
}

// findLoss looks at the streams, and returns ErrLost for the one that is not the one of earlier looks. Where it has the state, it is not
// known which pipelines people had suspended: all of them are held.
func (q *Queue) findLoss(ctx context.Context, seen map[string]*seenStream) error {
	state := "KV_" + q.prefixedName("STATE")
	for _, name := range []string{state, q.prefixedName("EVENTS"), q.prefixedName("WORK")} {
		known := seen[name]
		if known == nil {
			known = &seenStream{}
			seen[name] = known
		}
		if !q.isLost(ctx, name, known) {
			continue
		}
		if name == state {
			if err := q.holdAnew(ctx); err != nil {
				q.opts.Log.Error("the pipelines cannot be held although state was lost", "error", err)
				return nil // it is found again
			}
		}
		return fmt.Errorf("%w: %s", ErrLost, name)
	}
	return nil
}

// isLost looks at a stream, and reports whether it has been another one for several looks.
func (q *Queue) isLost(ctx context.Context, name string, known *seenStream) bool {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	stream, err := q.js.Stream(ctx, name)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return false
	}
	if err == nil {
		info := stream.CachedInfo()
		if known.made.IsZero() || info.Created.Equal(known.made) && info.State.LastSeq >= known.last {
			known.made, known.last, known.lost = info.Created, info.State.LastSeq, 0
			return false
		}
	}
	known.lost++
	return known.lost >= lossLooks
}

// holdAnew makes the state if it was deleted, and holds all pipelines. The known bucket goes by its name, so that others may use it
// meanwhile.
func (q *Queue) holdAnew(ctx context.Context) error {
	if _, err := q.ensureBucket(ctx, "STATE", 0, 0); err != nil {
		return err
	}
	return q.holdPipelines(ctx)
}
