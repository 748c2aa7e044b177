// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A stream of a cluster that lost its leader elects another one after four to nine seconds: until then no server
// responds, or one responds that no leader exists. The client itself would wait for a response that never arrives,
// or stop after half a second.

// storeEvent publishes an event, and in a cluster tries again until ctx is done, as long as that may help. The id keeps the
// event from being stored twice by that.
func (q *Log) storeEvent(ctx context.Context, subject string, data []byte, id string) (duplicate bool, err error) {
	if q.server != nil {
		ack, err := q.js.Publish(ctx, subject, data, jetstream.WithMsgID(id))
		if err != nil {
			return false, err
		}
		return ack.Duplicate, nil
	}
	return tryUntilStored(ctx, func(ctx context.Context) (bool, error) {
		ack, err := q.js.Publish(ctx, subject, data, jetstream.WithMsgID(id), jetstream.WithRetryAttempts(0))
		if err != nil {
			return false, err
		}
		return ack.Duplicate, nil
	})
}

// storeFor is how long one try waits for its answer, and storeAgain how long it is until the next.
const (
	storeFor   = 1500 * time.Millisecond
	storeAgain = 150 * time.Millisecond
)

func tryUntilStored(ctx context.Context, try func(ctx context.Context) (duplicate bool, err error)) (bool, error) {
	unsure := false
	for {
		trying, cancel := context.WithTimeout(ctx, storeFor)
		duplicate, err := try(trying)
		cancel()
		if err == nil {
			// An earlier try may have stored it, whose answer was lost: that is no repetition by the sender.
			return duplicate && !unsure, nil
		}
		if !isTransientError(err) {
			return false, err
		}
		unsure = true
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("%w, and then: %w", err, ctx.Err())
		case <-time.After(storeAgain):
		}
	}
}

// isTransientError reports whether an error is one that a cluster returns while it has no leader.
func isTransientError(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrDisconnected) {
		return true
	}
	var api *jetstream.APIError
	// inProcess: an earlier try of the same event waits for the other nodes.
	const inProcess = 10158
	return errors.As(err, &api) && (api.Code >= 500 || api.ErrorCode == inProcess)
}

const requestTimeout = 5 * time.Second

// withRequestTimeout bounds one request whose answer may be lost with the leader that it was sent to. The client does so only where the
// caller has set no time of its own, which may be many minutes for all that it does.
func withRequestTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTimeout)
}
