// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// TestOpenTakesAndChangesWhatIsThere opens a queue on a server again and again, with what is there left as it is or changed.
func TestOpenTakesAndChangesWhatIsThere(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: statetest.Dir(t), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server did not start")
	}
	for i, o := range []Options{
		{AckWait: time.Second, Remember: time.Hour, MaxStore: 40 << 20},
		{AckWait: time.Second, Remember: time.Hour, MaxStore: 40 << 20},
		{AckWait: 3 * time.Second, Remember: time.Hour, MaxStore: 40 << 20},
		{AckWait: 3 * time.Second, Remember: 2 * time.Hour, MaxStore: 80 << 20},
	} {
		o.URL = s.ClientURL()
		q, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]jetstream.Consumer{"planner": q.events, "workers": q.work} {
			info, err := c.Info(t.Context())
			if err != nil || info.Config.AckWait != o.AckWait || info.Name != name {
				t.Errorf("opening %d: consumer %s is %+v, %v", i, name, info, err)
			}
		}
		for name, right := range map[string]func(jetstream.StreamConfig) bool{
			"PRERIG_EVENTS":    func(c jetstream.StreamConfig) bool { return c.Duplicates == o.Remember },
			"PRERIG_WORK":      func(c jetstream.StreamConfig) bool { return c.MaxMsgsPerSubject == 1 },
			"KV_PRERIG_LOCKS":  func(c jetstream.StreamConfig) bool { return c.MaxAge == o.AckWait },
			"KV_PRERIG_STATE":  func(c jetstream.StreamConfig) bool { return c.MaxAge == 0 && c.MaxBytes <= 0 },
			"KV_PRERIG_PAPERS": func(c jetstream.StreamConfig) bool { return c.MaxBytes == o.MaxStore/4 },
		} {
			found, err := q.js.Stream(t.Context(), name)
			if err != nil || !right(found.CachedInfo().Config) {
				t.Errorf("opening %d: stream %s: %v", i, name, err)
			}
		}
		// What was stored by the one before is there.
		if data, _, ok, err := q.Load(t.Context(), "a"); err != nil || ok != (i > 0) || ok && string(data) != "1" {
			t.Errorf("opening %d: state %q, %v, %v", i, data, ok, err)
		}
		if err := q.Save(t.Context(), "a", []byte("1")); err != nil {
			t.Error(err)
		}
		q.Close()
	}
}

func TestAStepIsTriedAgain(t *testing.T) {
	silent := context.DeadlineExceeded
	for name, test := range map[string]struct {
		first error // of all tries but the last
		last  error
		tries int // 0 for any number
		want  error
	}{
		"at once":                         {tries: 1},
		"after a while":                   {silent, nil, 3, nil},
		"after an election":               {silent, nil, 40, nil},
		"never":                           {silent, silent, 0, silent},
		"what is absent":                  {nil, jetstream.ErrStreamNotFound, 1, jetstream.ErrStreamNotFound},
		"what is absent once it is known": {silent, jetstream.ErrConsumerNotFound, 2, jetstream.ErrConsumerNotFound},
		"what is there already":           {silent, jetstream.ErrKeyExists, 2, jetstream.ErrKeyExists},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, tries := time.Now(), 0
				err := (&connection{}).retryStep(t.Context(), func(context.Context) error {
					if tries++; tries != test.tries {
						return test.first
					}
					return test.last
				})
				if test.tries != 0 && tries != test.tries || !errors.Is(err, test.want) {
					t.Errorf("%d tries, error %v; want %d, %v", tries, err, test.tries, test.want)
				}
				if took := time.Since(begin); took > lookLong+time.Second || test.tries == 0 && took < lookLong {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
