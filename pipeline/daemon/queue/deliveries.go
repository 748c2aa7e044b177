// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The stream of events knows the ids of repeated deliveries by itself, but after a restart only of those that are still in
// it. So ids are kept on their own, too.

// maxDeliveries bounds what is kept of ids, in bytes: some hundred thousand.
const maxDeliveries = 64 << 20

// isKnownEvent reports whether an event with this id was stored. Where that cannot be found out soon, it is taken for new.
func (q *Log) isKnownEvent(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := q.seen.Get(ctx, subjectToken(id))
	return err == nil
}

// rememberEvent keeps the id of a stored event. Without it a repetition would only cause one more poll of the
// source, so its failure does not fail the event.
func (q *Log) rememberEvent(ctx context.Context, id string) {
	err := q.retryStep(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, q.lookTimeout())
		defer cancel()
		_, err := q.seen.Create(ctx, subjectToken(id), nil)
		return err
	})
	if err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		q.opts.Log.Debug("the id of an event could not be kept; a repetition of it would not be known after a restart", "event", id, "error", err)
	}
}
