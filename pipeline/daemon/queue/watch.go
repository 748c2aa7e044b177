// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrBroken means that the embedded server could not write for a while, or did not answer, and that it must be opened again: it keeps the
// errors of its files, and would neither store nor hand out anything any more.
var ErrBroken = errors.New("the embedded NATS server could not write to its directory and is started again")

// noteWriteError remembers that a write failed, or that none has been answered for long. One that the server refuses as its files have grown to their bound is no failure to
// write: it would do so again after it was started again.
func (q *connection) noteWriteError(err error) error {
	full := outOfRoom(err)
	if q.full.Swap(full) != full && full {
		q.opts.Log.Error("the queue has no room left: nothing is stored and no job is begun; raise nats.max_store, "+
			"or the limits of the NATS server that nats.url names", "error", err)
	}
	if late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout); late || err == nil {
		if q.noteAnswer(late) > longestSilence && q.server != nil {
			q.broken.Store(true)
		}
		return err
	}
	own := full || errors.Is(err, ErrChanged) || errors.Is(err, context.Canceled) || errors.Is(err, nats.ErrMaxPayload)
	if q.server != nil && !own {
		q.broken.Store(true)
	}
	return err
}

// longestSilence is how long the embedded server may leave writes unanswered before it counts as broken. A busy
// machine or a slow disk delays writes, and a restart would only add to its work; the server itself reports failed
// writes.
const longestSilence = 2 * time.Minute

// noteAnswer notes whether a write was answered in time, and returns for how long none was.
func (q *connection) noteAnswer(late bool) time.Duration {
	if !late {
		q.silentSince.Store(0)
		return 0
	}
	now := q.clock.passed()
	if q.silentSince.CompareAndSwap(0, int64(max(now, 1))) {
		return 0
	}
	return now - time.Duration(q.silentSince.Load())
}

// outOfRoom reports whether a server rejected a write because its storage is full.
func outOfRoom(err error) bool {
	const insufficientResources = 10023
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == insufficientResources
}

// Watch returns ErrBroken after a write failed, as soon as the directory can be written again, and ErrLost after a stream of servers
// elsewhere was lost. It returns nil when ctx is done.
func (q *Queue) Watch(ctx context.Context) error {
	every, seen := time.Second, map[string]*seenStream{}
	if q.server == nil {
		every = q.lookAgain
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if q.server == nil {
			if err := q.findLoss(ctx, seen); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if q.broken.Load() && isWritable(q.opts.Dir) {
				return ErrBroken
			}
		}
	}
}

// isWritable tests whether a directory has room for more than a handful of messages.
func isWritable(dir string) bool {
	name := filepath.Join(dir, "prerig.probe")
	defer os.Remove(name)
	file, err := os.Create(name)
	if err != nil {
		return false
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, 1<<20)); err != nil {
		return false
	}
	return file.Sync() == nil
}
