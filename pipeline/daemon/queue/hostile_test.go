// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/prerig/prerig/pipeline/daemon/event"
)

// sharedServer is a NATS server that others use, too, with a connection of theirs.
func sharedServer(t *testing.T) (url string, others *nats.Conn) {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, MaxPayload: 32 << 20, MaxPending: 128 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the NATS server did not start")
	}
	others, err = nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(others.Close)
	return s.ClientURL(), others
}

func openedAt(t *testing.T, url string) *Queue {
	t.Helper()
	q, err := Open(t.Context(), Options{URL: url, AckWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	q.lookAgain = 20 * time.Millisecond
	t.Cleanup(q.Close)
	return q
}

// TestHostileMessagesOfOthers has another user of the NATS server write to the subjects of events and jobs. None of it keeps the
// messages of Prerig itself from being handled, becomes gigabytes, or runs a job beside that of its pipeline.
func TestHostileMessagesOfOthers(t *testing.T) {
	job := func(j Job) []byte {
		data, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	logged := func(receiver string) []byte {
		data, err := json.Marshal(loggedEvent{Event: event.Event{ID: "forged", Receiver: receiver}})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	empty := strings.Repeat("{},", 4<<20) + "{}"
	nested := strings.Repeat("[", 1<<20)
	far := time.Now().Add(1000 * time.Hour)
	for name, c := range map[string]struct {
		subject string
		data    []byte
		header  nats.Header
	}{
		"a job under another pipeline's subject": {"PRERIG.work." + subjectToken("evil/a"), job(Job{Pipeline: "shop/web", Cause: "forged"}), nil},
		"a job under a subject that is no text":  {"PRERIG.work.%%%", job(Job{Pipeline: "shop/web", Cause: "forged"}), nil},
		"a job under several tokens":             {"PRERIG.work.x." + subjectToken("shop/web"), job(Job{Pipeline: "shop/web", Cause: "forged"}), nil},
		"a job without a pipeline":               {"PRERIG.work.x", job(Job{Cause: "forged"}), nil},
		"a job that is no JSON":                  {"PRERIG.work." + subjectToken("shop/web"), []byte("{"), nil},
		"a job that is a list":                   {"PRERIG.work." + subjectToken("shop/web"), []byte("[]"), nil},
		"a job with a wrong type":                {"PRERIG.work." + subjectToken("shop/web"), []byte(`{"pipeline":{"a":1}}`), nil},
		"a job of nothing":                       {"PRERIG.work." + subjectToken("shop/web"), nil, nil},
		"a job of empty elements":                {"PRERIG.work." + subjectToken("shop/web"), []byte(`{"x":[` + empty + `]}`), nil},
		"a job of nested lists":                  {"PRERIG.work." + subjectToken("shop/web"), []byte(`{"x":` + nested), nil},
		"a job of 20 MiB":                        {"PRERIG.work." + subjectToken("shop/web"), job(Job{Pipeline: "shop/web", Cause: "forged", Reason: strings.Repeat("x", 20<<20)}), nil},
		"a job with many headers":                {"PRERIG.work." + subjectToken("evil/a"), []byte("{"), manyHeaders()},
		"an event under another receiver":        {"PRERIG.event." + subjectToken("other"), logged("github"), nil},
		"an event of empty elements":             {"PRERIG.event." + subjectToken("github"), []byte(`{"event":{"id":"forged","receiver":"github","changes":[` + empty + `]}}`), nil},
		"an event that is no JSON":               {"PRERIG.event." + subjectToken("github"), []byte("\x00\xff"), nil},
		"an event with a number as its id":       {"PRERIG.event." + subjectToken("github"), []byte(`{"event":{"id":1}}`), nil},
		"an event with many headers":             {"PRERIG.event.x", []byte("{}"), manyHeaders()},
		"a job in the far future":                {"PRERIG.work." + subjectToken("shop/late"), job(Job{Pipeline: "shop/late", Cause: "late", NotBefore: far}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			url, others := sharedServer(t)
			q := openedAt(t, url)
			js, err := jetstream.New(others)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: c.subject, Data: c.data, Header: c.header}); err != nil {
				t.Fatal(err)
			}
			if err := q.Request(t.Context(), Job{Pipeline: "shop/honest", Cause: "honest"}); err != nil {
				t.Fatal(err)
			}
			if _, err := q.Put(t.Context(), event.Event{ID: "honest", Receiver: "github"}); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&before)
			causes := handledUntilIdle(t, q)
			runtime.ReadMemStats(&after)
			if !causes["honest"] || !causes["event honest"] || causes["forged"] || causes["event forged"] {
				t.Errorf("handled: %v", causes)
			}
			if late := strings.Contains(name, "far future"); causes["late"] != late {
				t.Errorf("the job that was to wait: %v", causes)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 200<<20 {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}

func manyHeaders() nats.Header {
	h := nats.Header{}
	for i := range 500 { // servers take 64 KiB
		h.Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 100))
	}
	return h
}

// handledUntilIdle handles what is in the queue until both streams are empty, and returns the causes.
func handledUntilIdle(t *testing.T, q *Queue) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var running sync.WaitGroup
	causes := map[string]bool{}
	note := func(cause string) {
		mu.Lock()
		defer mu.Unlock()
		causes[cause] = true
	}
	running.Go(func() { _ = q.Work(ctx, 2, func(_ context.Context, j Job) error { note(j.Cause); return nil }) })
	running.Go(func() {
		_ = q.Events(ctx, 2, func(_ context.Context, e event.Event, _ time.Time) error { note("event " + e.ID); return nil })
	})
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		events, err := q.eventStream.Info(ctx)
		if err != nil || events.State.Msgs > 0 {
			continue
		}
		if work, err := q.workStream.Info(ctx); err == nil && work.State.Msgs == 0 {
			break
		}
	}
	if ctx.Err() != nil {
		t.Error("the queue is not empty after a minute")
	}
	cancel()
	running.Wait()
	return causes
}

// TestALostStreamIsNoticed has streams of the NATS servers deleted, made anew, purged below what was seen, or none of it.
func TestALostStreamIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(ctx context.Context, js jetstream.JetStream) error
		lost bool
		held bool
	}{
		"nothing": {func(context.Context, jetstream.JetStream) error { return nil }, false, false},
		"the state is deleted": {func(ctx context.Context, js jetstream.JetStream) error {
			return js.DeleteStream(ctx, "KV_PRERIG_STATE")
		}, true, true},
		"the state is made anew": {func(ctx context.Context, js jetstream.JetStream) error {
			s, err := js.Stream(ctx, "KV_PRERIG_STATE")
			if err != nil {
				return err
			}
			config := s.CachedInfo().Config
			if err := js.DeleteStream(ctx, "KV_PRERIG_STATE"); err != nil {
				return err
			}
			_, err = js.CreateStream(ctx, config)
			return err
		}, true, true},
		"the events are deleted": {func(ctx context.Context, js jetstream.JetStream) error {
			return js.DeleteStream(ctx, "PRERIG_EVENTS")
		}, true, false},
		"the work is deleted": {func(ctx context.Context, js jetstream.JetStream) error {
			return js.DeleteStream(ctx, "PRERIG_WORK")
		}, true, false},
		"the work is purged": {func(ctx context.Context, js jetstream.JetStream) error {
			s, err := js.Stream(ctx, "PRERIG_WORK")
			if err != nil {
				return err
			}
			return s.Purge(ctx)
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			url, others := sharedServer(t)
			q := openedAt(t, url)
			js, err := jetstream.New(others)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				if err := q.Save(t.Context(), "a", fmt.Append(nil, i)); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- q.Watch(ctx) }()
			time.Sleep(100 * time.Millisecond) // some looks
			if err := c.lose(t.Context(), js); err != nil {
				t.Fatal(err)
			}
			if !c.lost {
				time.AfterFunc(time.Second, cancel)
			}
			if err := <-done; errors.Is(err, ErrLost) != c.lost {
				t.Fatalf("got %v", err)
			}
			again := openedAt(t, url)
			_, _, held, err := again.Load(t.Context(), HoldName)
			if err != nil || held != c.held {
				t.Errorf("held: %v, %v", held, err)
			}
		})
	}
}
