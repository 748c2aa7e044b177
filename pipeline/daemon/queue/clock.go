// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// clockEvery is how often the clock is read to see whether it was set back, and clockStep from how far on it
	// counts.
	clockEvery = time.Second
	clockStep  = time.Second
)

// clock is a clock of the machine, which may be set, beside the time that passes.
type clock struct {
	wall   func() time.Time // what the clock shows
	passed func() time.Duration
}

func machineClock() clock {
	began := time.Now()
	return clock{
		wall:   func() time.Time { return time.Now().Round(0) }, // without what has passed
		passed: func() time.Duration { return time.Since(began) },
	}
}

// whenSetBack calls do each time the clock was set back, until ctx is done.
func (c clock) whenSetBack(ctx context.Context, do func()) {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	wall, passed := c.wall(), c.passed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		nowWall, nowPassed := c.wall(), c.passed()
		if nowWall.Sub(wall) < nowPassed-passed-clockStep {
			do()
		}
		wall, passed = nowWall, nowPassed
	}
}

// redeliver recreates a consumer of the embedded server, so that all unfinished messages are redelivered. The
// server records by wall clock when a message is due again, and would wait until a clock that was set back has
// caught up (checkPending in server/consumer.go of nats-server 2.15). Work in progress in this process keeps its
// locks.
func (q *connection) redeliver(ctx context.Context, c jetstream.Consumer) {
	info := c.CachedInfo()
	q.opts.Log.Warn("the clock was set back; what waits in the queue is handed out again", "consumer", info.Name)
	deleting, cancel := withRequestTimeout(ctx)
	defer cancel()
	err := q.js.DeleteConsumer(deleting, info.Stream, info.Name)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) && ctx.Err() == nil {
		q.opts.Log.Error("what waits in the queue is handed out only when the clock is there again", "error", err)
	}
}
