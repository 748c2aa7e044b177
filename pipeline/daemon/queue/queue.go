// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/internal/process/disk"
)

// Options are the location and the settings of the queue. The zero value of a duration means its default.
type Options struct {
	// Dir is where the embedded server keeps its files; it is not used with URL.
	Dir string
	// URL of a NATS cluster, several servers separated by commas; NATS are further options of the connection, such as
	// credentials.
	URL  string
	NATS []nats.Option
	// Replicas of every stream in a cluster. The default is 1.
	Replicas int
	// Prefix of the streams' and buckets' names, so that several installations can share a cluster. The default is PRERIG.
	Prefix string
	// MaxStore bounds the embedded server's files, in bytes. The default is 1 GiB.
	MaxStore int64
	// Remember is how long a delivery's id is remembered, so that a repeated one has no effect. The default is 24 h.
	Remember time.Duration
	// AckWait is how long a silent worker keeps its job. The default is 15 s; workers report three times as often.
	AckWait time.Duration
	// Log; the default discards.
	Log *slog.Logger
}

func (o *Options) setDefaults() error {
	if (o.Dir == "") == (o.URL == "") {
		return errors.New("opening the queue: exactly one of a directory and a NATS URL is needed")
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.Prefix == "" {
		o.Prefix = "PRERIG"
	}
	if o.MaxStore == 0 {
		o.MaxStore = 1 << 30
	}
	if o.Remember == 0 {
		o.Remember = 24 * time.Hour
	}
	if o.AckWait == 0 {
		o.AckWait = 15 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Queue is an open queue: a log of events, jobs, locks and state, all of one server. It is safe for concurrent use.
type Queue struct {
	*connection
	*Log
	*Jobs
	*Locks
	*State
}

// connection is the server that everything is kept at, with its health.
type connection struct {
	opts        Options
	server      *server.Server // the embedded one; nil in a cluster
	nc          *nats.Conn
	js          jetstream.JetStream
	local       *localLocks // with an embedded server; otherwise nil
	owner       string
	broken      atomic.Bool           // a write failed
	silentSince atomic.Int64          // when a write was first not answered in time, since one was; in nanoseconds of the queue's life, 0 for never
	refused     atomic.Pointer[error] // why the server could not be reached last
	full        atomic.Bool           // the last write was refused for want of room
	unlock      func()                // the embedded server's directory
	clock       clock
	lookAgain   time.Duration // the constant of this name but in tests
}

// Log holds the events that are not planned yet.
type Log struct {
	*connection
	eventStream jetstream.Stream
	events      jetstream.Consumer
	seen        jetstream.KeyValue // ids of events
}

// Jobs holds at most one job for each pipeline.
type Jobs struct {
	*connection
	workStream jetstream.Stream
	work       jetstream.Consumer
	pipelines  *Locks // of running jobs
}

// Locks holds the locks of this process, and in a cluster those of all processes.
type Locks struct {
	*connection
	locks jetstream.KeyValue // of a cluster
}

// State holds records by name, and an archive of optional data.
type State struct {
	*connection
	state       jetstream.KeyValue
	stateStream jetstream.Stream
	papers      jetstream.KeyValue
}

func newQueue(o Options) *Queue {
	c := &connection{opts: o, clock: machineClock(), lookAgain: lookAgain}
	locks := &Locks{connection: c}
	return &Queue{c, &Log{connection: c}, &Jobs{connection: c, pipelines: locks}, locks, &State{connection: c}}
}

// Open starts or connects to the server, and creates missing streams.
func Open(ctx context.Context, o Options) (*Queue, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	q := newQueue(o)
	if o.URL == "" {
		if err := q.openEmbedded(ctx); err != nil {
			return nil, err
		}
		return q, nil
	}
	var err error
	if q.nc, err = q.dialCluster(o.URL, o.NATS); err != nil {
		return nil, err
	}
	if err := q.prepareStreams(ctx); err != nil {
		if refused := q.refused.Load(); refused != nil && !q.nc.IsConnected() {
			err = fmt.Errorf("connecting to NATS: %w", *refused)
		}
		q.Close()
		return nil, err
	}
	return q, nil
}

// embeddedTimeout is how long a request to the embedded server may take by default.
const embeddedTimeout = 30 * time.Second

// prepareStreams makes the streams, consumers and buckets. In a cluster that has lost a node each of them may have to wait for a
// leader of its own: they do so at the same time.
func (q *Queue) prepareStreams(ctx context.Context) error {
	host, _ := os.Hostname()
	q.owner = fmt.Sprintf("%s/%d/%s", host, os.Getpid(), nats.NewInbox())
	var err error
	var options []jetstream.JetStreamOpt
	if q.server != nil {
		// It always responds; if it needs longer than the client's five seconds, the machine is busy.
		options = append(options, jetstream.WithDefaultTimeout(embeddedTimeout))
	}
	if q.js, err = jetstream.New(q.nc, options...); err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, step := range []func(ctx context.Context) error{
		q.prepareEvents, q.prepareWork, q.prepareLocks, q.prepareState,
		// Optional data is bounded, so that it never uses the room of data that must not be lost.
		func(ctx context.Context) (err error) {
			q.seen, err = q.ensureBucket(ctx, "SEEN", q.opts.Remember, min(maxDeliveries, q.opts.MaxStore/8))
			return err
		},
		func(ctx context.Context) (err error) {
			q.papers, err = q.ensureBucket(ctx, "PAPERS", 0, min(maxArchive, q.opts.MaxStore/4))
			return err
		},
	} {
		group.Go(func() error { return step(ctx) })
	}
	return group.Wait()
}

// An embedded server has no consumers: messages that the last process had begun would come again only after AckWait.

func (q *Log) prepareEvents(ctx context.Context) (err error) {
	q.eventStream, err = q.ensureStream(ctx, jetstream.StreamConfig{
		Name: q.prefixedName("EVENTS"), Subjects: []string{q.prefixedSubject("event.*")}, Retention: jetstream.WorkQueuePolicy,
		Duplicates: q.opts.Remember,
	})
	if err != nil {
		return err
	}
	q.events, err = q.makeEvents(ctx)
	return err
}

func (q *Jobs) prepareWork(ctx context.Context) (err error) {
	q.workStream, err = q.ensureStream(ctx, jetstream.StreamConfig{
		Name: q.prefixedName("WORK"), Subjects: []string{q.prefixedSubject("work.>")}, Retention: jetstream.WorkQueuePolicy,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld, Duplicates: time.Second,
	})
	if err != nil {
		return err
	}
	q.work, err = q.makeWork(ctx)
	return err
}

func (q *Locks) prepareLocks(ctx context.Context) (err error) {
	if q.locks, err = q.ensureBucket(ctx, "LOCKS", q.opts.AckWait, 0); err != nil || q.server == nil {
		return err
	}
	return q.takeOver(ctx)
}

func (q *State) prepareState(ctx context.Context) (err error) {
	if q.state, err = q.ensureBucket(ctx, "STATE", 0, 0); err != nil {
		return err
	}
	if q.stateStream, err = q.findStream(ctx, "KV_"+q.prefixedName("STATE")); err != nil {
		return fmt.Errorf("preparing the state: %w", err)
	}
	return nil
}

func (q *Log) makeEvents(ctx context.Context) (jetstream.Consumer, error) {
	return q.ensureConsumer(ctx, q.eventStream, "planner", q.deliveryConfig())
}

func (q *Jobs) makeWork(ctx context.Context) (jetstream.Consumer, error) {
	return q.ensureConsumer(ctx, q.workStream, "workers", q.deliveryConfig())
}

// deliveryConfig has no bound for what was begun: jobs that wait to be tried again count, and would keep all others from running.
func (q *connection) deliveryConfig() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy, AckWait: q.opts.AckWait, MaxDeliver: -1, MaxAckPending: -1}
}

// takeOver releases the locks of the last process with this embedded server: it has ended, and no other process can
// reach the server.
func (q *Locks) takeOver(ctx context.Context) error {
	held, err := q.locks.ListKeys(ctx)
	if err != nil {
		return fmt.Errorf("listing locks: %w", err)
	}
	for key := range held.Keys() {
		if err := q.locks.Purge(ctx, key); err != nil {
			return fmt.Errorf("removing a lock: %w", err)
		}
	}
	return nil
}

// maxArchive bounds the archive in bytes.
const maxArchive = 256 << 20

func (q *connection) prefixedName(s string) string    { return q.opts.Prefix + "_" + s }
func (q *connection) prefixedSubject(s string) string { return q.opts.Prefix + "." + s }

// Ready returns why the queue cannot take events now, nil where it can. It answers at once.
func (q *connection) Ready() error {
	if !q.nc.IsConnected() {
		return errors.New("the connection to NATS is down")
	}
	if q.server == nil {
		return nil
	}
	if err := hasRoom(q.opts.Dir); err != nil {
		return err
	}
	if q.broken.Load() {
		return errors.New("the last write to the state directory failed: nothing is stored until one succeeds")
	}
	return nil
}

// Writable reports whether what was to be stored last was stored, or could not be for another reason than a lack of room.
func (q *connection) Writable() bool { return q.Ready() == nil && !q.full.Load() }

// hasRoom returns an error if a directory has no room to store data. If the kernel does not report the free space,
// it tries to write.
func hasRoom(dir string) error {
	space, err := disk.Of(dir)
	if err != nil {
		return nil //nolint:nilerr // a write will report more
	}
	return space.Problem()
}

// Close releases the connection, and stops an embedded server. Its directory is released last.
func (q *Queue) Close() {
	if q.local != nil {
		q.local.closed.Store(true)
	}
	if q.nc != nil {
		q.nc.Close()
	}
	if q.server != nil {
		q.server.Shutdown()
		q.server.WaitForShutdown()
	}
	if q.unlock != nil {
		q.unlock()
	}
}

// loggedEvent is an event in the log.
type loggedEvent struct {
	Event  event.Event `json:"event"`
	Stored time.Time   `json:"stored"`
	Trace  string      `json:"trace,omitempty"` // W3C traceparent of its arrival
}

// Put stores an event before it returns. It returns true for an event whose ID was stored within the time that ids
// are remembered.
func (q *Log) Put(ctx context.Context, e event.Event) (duplicate bool, err error) {
	ctx, span := otel.Tracer("prerig").Start(ctx, "event")
	defer span.End()
	span.SetAttributes(attribute.String("prerig.id", e.ID), attribute.String("prerig.receiver", e.Receiver))
	data, err := json.Marshal(loggedEvent{Event: e, Stored: time.Now().UTC(), Trace: TraceOf(ctx)})
	if err != nil {
		return false, fmt.Errorf("storing event %s: %w", e.ID, err)
	}
	if q.server != nil {
		// The embedded server would not answer, and the sender would wait for that.
		if err := hasRoom(q.opts.Dir); err != nil {
			return false, fmt.Errorf("storing event %s: %w", e.ID, err)
		}
	}
	if q.isKnownEvent(ctx, e.ID) {
		return true, nil
	}
	duplicate, err = q.storeEvent(ctx, q.eventSubject(e.Receiver), data, e.ID)
	if q.noteWriteError(err) != nil {
		return false, fmt.Errorf("storing event %s: %w", e.ID, err)
	}
	if q.server != nil {
		q.rememberEvent(ctx, e.ID)
	} else {
		// The sender need not wait until the ids have a leader again, which are not the events.
		go q.rememberEvent(context.WithoutCancel(ctx), e.ID)
	}
	return duplicate, nil
}

// eventSubject is the subject of the events of a receiver.
func (q *connection) eventSubject(receiver string) string {
	return q.prefixedSubject("event." + subjectToken(receiver))
}

// Events hands every stored event to plan until ctx is done, at most slots at the same time. An event is forgotten after
// plan returns nil; after an error it comes again later.
func (q *Log) Events(ctx context.Context, slots int, plan func(ctx context.Context, e event.Event, stored time.Time) error) error {
	return q.consumeMessages(ctx, q.events, q.makeEvents, slots, func(ctx context.Context, subject string, data []byte) error {
		var l loggedEvent
		err := decodeMessage(data, &l)
		if err == nil && subject != q.eventSubject(l.Event.Receiver) {
			err = errOtherSubject
		}
		if err != nil {
			q.opts.Log.Error("an event in the log cannot be read and was dropped", "error", err)
			return nil
		}
		return plan(withTrace(ctx, l.Trace), l.Event, l.Stored)
	})
}
