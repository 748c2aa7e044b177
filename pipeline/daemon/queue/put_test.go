// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// TestAnEventIsStoredThroughAnElection has the answers that a cluster gives while it has no leader, and then one.
func TestAnEventIsStoredThroughAnElection(t *testing.T) {
	wrapped := func(code int, number jetstream.ErrorCode) error {
		return fmt.Errorf("nats: %w", &jetstream.APIError{Code: code, ErrorCode: number})
	}
	for name, test := range map[string]struct {
		err       error // of the first tries
		silent    bool  // they are not answered at all
		tries     int
		last      bool // the last one says that it is a repetition
		duplicate bool
		fails     bool
	}{
		"at once":                                    {tries: 1},
		"a repetition by the sender":                 {tries: 1, last: true, duplicate: true},
		"no leader":                                  {err: jetstream.ErrNoStreamResponse, tries: 30},
		"no leader, by the name of the client":       {err: nats.ErrNoResponders, tries: 30},
		"a leader that is gone":                      {silent: true, tries: 4},
		"stored, and the answer lost":                {silent: true, tries: 2, last: true},
		"the nodes are not in touch":                 {err: wrapped(503, 10008), tries: 5},
		"an earlier try is under way":                {err: wrapped(409, 10158), tries: 5, last: true},
		"too large":                                  {err: nats.ErrMaxPayload, tries: 1, fails: true},
		"refused":                                    {err: wrapped(400, 10054), tries: 1, fails: true},
		"nobody comes back within the sender's time": {err: jetstream.ErrNoStreamResponse, tries: 1 << 20, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
				defer cancel()
				tries := 0
				duplicate, err := tryUntilStored(ctx, func(ctx context.Context) (bool, error) {
					tries++
					switch {
					case tries == test.tries && !test.fails:
						return test.last, nil
					case test.silent:
						<-ctx.Done()
						return false, ctx.Err()
					default:
						return false, test.err
					}
				})
				if duplicate != test.duplicate || (err != nil) != test.fails || !errors.Is(err, test.err) && test.fails {
					t.Errorf("after %d tries: duplicate %v, error %v", tries, duplicate, err)
				}
				if test.tries < 1<<20 && tries != test.tries {
					t.Errorf("%d tries, want %d", tries, test.tries)
				}
				if ctx.Err() != nil && test.tries < 1<<20 {
					t.Error("it took longer than a sender waits")
				}
			})
		})
	}
}

// TestAConsumerThatIsGoneIsMadeAgain: what is in the queue must not wait until somebody starts the process again.
func TestAConsumerThatIsGoneIsMadeAgain(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := q.eventStream.DeleteConsumer(ctx, "planner"); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Put(ctx, event.Event{ID: "a", Receiver: "github"}); err != nil {
		t.Fatal(err)
	}
	planned := ""
	if err := q.Events(ctx, 1, func(_ context.Context, e event.Event, _ time.Time) error {
		planned += e.ID
		cancel()
		return nil
	}); err != nil || planned != "a" {
		t.Errorf("planned %q, %v", planned, err)
	}
}

// TestALockThatIsNotAnsweredIsGivenUp has a request that is lost with the leader of the locks. Who asked has a long time for
// all that it does, and must not spend it on waiting for this answer.
func TestALockThatIsNotAnsweredIsGivenUp(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	storedLocks(q)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := q.js.DeleteStream(ctx, "KV_PRERIG_LOCKS"); err != nil {
		t.Fatal(err)
	}
	if _, err := q.nc.Subscribe("$KV.PRERIG_LOCKS.>", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, ok, err := q.TryLock(ctx, "a"); ok || err == nil {
		t.Errorf("got %v, %v", ok, err)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}
