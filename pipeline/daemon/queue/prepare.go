// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A stream that already exists as required is used unchanged: reading a stream of a cluster needs only that
// stream's leader, while creating or changing it also needs the leader of the cluster. A process that starts while
// nodes join and leave could wait long for both.

const (
	// lookFor is how long a read waits for its response. If a leader has just disappeared, it never arrives.
	lookFor = 1500 * time.Millisecond
	// lookLong is how long reads are repeated, and creation is retried: an election lasts up to nine seconds.
	lookLong = 12 * time.Second
)

// retryStep tries a step again that a cluster without a leader does not answer. An embedded server always answers.
func (q *connection) retryStep(ctx context.Context, step func(ctx context.Context) error) error {
	for begin := time.Now(); ; {
		err := step(ctx)
		if err == nil || q.server != nil || time.Since(begin) > lookLong || ctx.Err() != nil || isFinal(err) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// isFinal is an answer that does not change by asking again.
func isFinal(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrKeyExists)
}

// lookTimeout returns how long one read may take. An embedded server always responds eventually, even if its disk needs
// seconds to write.
func (q *connection) lookTimeout() time.Duration {
	if q.server != nil {
		return embeddedTimeout
	}
	return lookFor
}

// findStream looks for a stream.
func (q *connection) findStream(ctx context.Context, name string) (found jetstream.Stream, err error) {
	err = q.retryStep(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, q.lookTimeout())
		defer cancel()
		found, err = q.js.Stream(ctx, name)
		return err
	})
	return found, err
}

func (q *connection) ensureStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	c.Storage, c.Replicas = jetstream.FileStorage, q.opts.Replicas
	s, err := q.findStream(ctx, c.Name)
	if err == nil && sameStream(s.CachedInfo().Config, c) {
		return s, nil
	}
	err = q.retryStep(ctx, func(ctx context.Context) error {
		s, err = q.js.CreateOrUpdateStream(ctx, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the stream %s: %w", c.Name, err)
	}
	return s, nil
}

// sameStream compares what is set here; a server fills in the rest.
func sameStream(a, b jetstream.StreamConfig) bool {
	return slices.Equal(a.Subjects, b.Subjects) && a.Retention == b.Retention && a.Discard == b.Discard && a.Duplicates == b.Duplicates &&
		a.Replicas == b.Replicas && max(a.MaxMsgsPerSubject, 0) == max(b.MaxMsgsPerSubject, 0)
}

func (q *connection) ensureConsumer(ctx context.Context, s jetstream.Stream, name string, c jetstream.ConsumerConfig) (found jetstream.Consumer, err error) {
	c.Durable = name
	err = q.retryStep(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, q.lookTimeout())
		defer cancel()
		found, err = s.Consumer(ctx, name)
		return err
	})
	if err == nil && sameConsumer(found.CachedInfo().Config, c) {
		return found, nil
	}
	err = q.retryStep(ctx, func(ctx context.Context) error {
		found, err = s.CreateOrUpdateConsumer(ctx, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the consumer %s: %w", name, err)
	}
	return found, nil
}

func sameConsumer(a, b jetstream.ConsumerConfig) bool {
	return a.AckPolicy == b.AckPolicy && a.AckWait == b.AckWait && a.MaxDeliver == b.MaxDeliver && a.MaxAckPending == b.MaxAckPending
}

// ensureBucket returns a bucket whose entries live for ttl, without an end for 0, and that holds at most size bytes, any number
// for 0.
func (q *connection) ensureBucket(ctx context.Context, name string, ttl time.Duration, size int64) (kv jetstream.KeyValue, err error) {
	full := q.opts.Prefix + "_" + name
	s, err := q.findStream(ctx, "KV_"+full)
	if err == nil {
		is := s.CachedInfo().Config
		if is.MaxAge == ttl && max(is.MaxBytes, 0) == size && is.Replicas == q.opts.Replicas && is.MaxMsgsPerSubject == 1 && is.AllowDirect && is.AllowRollup {
			err = q.retryStep(ctx, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, q.lookTimeout())
				defer cancel()
				kv, err = q.js.KeyValue(ctx, full)
				return err
			})
			if err == nil {
				return kv, nil
			}
		}
	}
	err = q.retryStep(ctx, func(ctx context.Context) error {
		kv, err = q.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: full, History: 1, TTL: ttl, Storage: jetstream.FileStorage, Replicas: q.opts.Replicas, MaxBytes: size,
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the bucket %s: %w", name, err)
	}
	return kv, nil
}
