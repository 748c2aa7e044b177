// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// Job asks for a pipeline to be run.
type Job struct {
	// Pipeline is its namespace and name, "namespace/name".
	Pipeline string `json:"pipeline"`
	// Cause is the id of the event, request or timer tick that led to the job; every log line includes it.
	Cause string `json:"cause"`
	// Reason is a few words for the user.
	Reason string `json:"reason"`
	// Since is when the event was stored.
	Since time.Time `json:"since"`
	// NotBefore delays the job, so that a burst of events leads to one run.
	NotBefore time.Time `json:"notBefore"`
	// Force runs even if the fingerprint is unchanged.
	Force bool `json:"force,omitempty"`
	// Drift also looks whether others have changed what is published.
	Drift bool `json:"drift,omitempty"`
	// Revision is where the source was at the time Resolved, empty where it was not looked at, or where a run may have seen
	// more of it since.
	Revision string    `json:"revision,omitempty"`
	Resolved time.Time `json:"resolved,omitzero"`
	// Mounted is where the further sources of the pipeline were then, by their mount paths.
	Mounted map[string]string `json:"mounted,omitempty"`
	// Rendered is the time that the pipeline's state had for its last render before the source was looked at. Where the state
	// has another one since, Revision may be older than what was rendered.
	Rendered time.Time `json:"rendered,omitzero"`
	// Batch is how many jobs the same cause has led to, so that their results can be published together.
	Batch int `json:"batch,omitempty"`
	// Spec is the digest of the pipeline's definition that it was planned for, empty where that does not matter.
	Spec string `json:"spec,omitempty"`
	// Policies are the versions, at planning time, of the policies that are objects of a cluster, by
	// NAMESPACE/NAME. Jobs of earlier releases have "policies" with generations alone, which are meaningless for a
	// recreated object.
	Policies map[string]ObjectVersion `json:"policyVersions,omitempty"`
	// Cluster is the digest of the pipeline's possible inputs from the cluster at planning time, empty if it has
	// none.
	Cluster string `json:"cluster,omitempty"`
	// Trace is the W3C traceparent of the plan that asked for it; the context of the job belongs to it.
	Trace string `json:"trace,omitempty"`
}

// Request puts the job in the place of any job of the same pipeline that is not done. Drift and Force of that one stay asked for.
func (q *Jobs) Request(ctx context.Context, j Job) error {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	if err := q.noteWriteError(q.replaceJob(ctx, j)); err != nil {
		return fmt.Errorf("requesting a run of %s: %w", j.Pipeline, err)
	}
	return nil
}

// RetryError is what a handler returns to have its job again after a time of its choice.
type RetryError struct {
	After time.Duration
	Err   error
}

// Error returns the message of the cause.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RetryError) Unwrap() error { return e.Err }

// Pending returns the pipelines that have a job that is not done, waiting or running, as the queue's leader knows it.
func (q *Jobs) Pending(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	info, err := q.workInfo(ctx, q.workSubjects())
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		if name, ok := subjectText(subject); ok {
			out[name] = true
		}
	}
	return out, nil
}

// fewPipelines is the number of pipelines up to which the queue is asked one by one instead of once for all.
const fewPipelines = 4

// PendingOf is Pending for some pipelines. The result may include others, too.
func (q *Jobs) PendingOf(ctx context.Context, pipelines []string) (map[string]bool, error) {
	if len(pipelines) > fewPipelines {
		return q.Pending(ctx)
	}
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	out := map[string]bool{}
	for _, name := range pipelines {
		info, err := q.workInfo(ctx, q.workSubject(name))
		if err != nil {
			return nil, err
		}
		if len(info.State.Subjects) > 0 {
			out[name] = true
		}
	}
	return out, nil
}

// workSubject is the subject of a pipeline's job.
func (q *Jobs) workSubject(pipeline string) string {
	return q.prefixedSubject("work." + subjectToken(pipeline))
}

// workSubjects are the subjects of all jobs.
func (q *Jobs) workSubjects() string { return q.prefixedSubject("work.>") }

// workInfo returns the state of the work queue, with those of the subjects that have a job.
func (q *Jobs) workInfo(ctx context.Context, subjects string) (*jetstream.StreamInfo, error) {
	info, err := q.workStream.Info(ctx, jetstream.WithSubjectFilter(subjects))
	if err != nil {
		return nil, fmt.Errorf("looking at the work queue: %w", err)
	}
	return info, nil
}

// Work hands jobs to do until ctx is done, at most slots at the same time, and returns when the last one has ended. A
// pipeline's jobs never run at the same time, in whichever process. A job is forgotten after do returns nil; after an error
// it comes again, unless a newer one of the pipeline has taken its place.
func (q *Jobs) Work(ctx context.Context, slots int, do func(ctx context.Context, j Job) error) error {
	return q.consumeMessages(ctx, q.work, q.makeWork, slots, func(ctx context.Context, subject string, data []byte) error {
		var j Job
		err := decodeMessage(data, &j)
		if err == nil && subject != q.workSubject(j.Pipeline) {
			err = errOtherSubject // it would run beside the job of that pipeline, and is not replaced by a newer one
		}
		if err != nil {
			q.opts.Log.Error("a job in the queue cannot be read and was dropped", "error", err)
			return nil
		}
		// A job from the future was planned before the clock was set back, and must not wait until it has caught
		// up. Nor does any job wait for longer than jobs do.
		if wait := time.Until(j.NotBefore); wait > 0 && wait < longestDelay && !time.Now().Before(j.Since) {
			return &RetryError{After: wait, Err: errDebounce}
		}
		lock, ok, err := q.pipelines.tryLock(ctx, pipelineLock+j.Pipeline)
		if err != nil {
			return &RetryError{After: time.Second, Err: err}
		}
		if !ok {
			return &RetryError{After: busyWait, Err: errBusy}
		}
		defer lock.unlock()
		return do(context.WithValue(withTrace(ctx, j.Trace), holdKey{}, lock), j)
	})
}

// longestDelay is longer than any job is delayed.
const longestDelay = 24 * time.Hour

var (
	errDebounce = errors.New("the job waits for further events")
	errBusy     = errors.New("another job of the pipeline is running")

	errOtherSubject = errors.New("its subject is that of another pipeline or receiver")
)

// busyWait is how soon a job that found its pipeline running is tried again.
const busyWait = 200 * time.Millisecond

// messageHandler handles a message of a subject.
type messageHandler func(ctx context.Context, subject string, data []byte) error

// maxMessage is how many bytes a message has at most. A server takes 1 MiB unless it was set up for more.
const maxMessage = 16 << 20

// decodeMessage reads a message. The servers of nats.url may be those of others, too: what it is decoded to is bounded.
func decodeMessage(data []byte, into any) error {
	if len(data) > maxMessage {
		return fmt.Errorf("it has more than %d bytes", maxMessage)
	}
	if err := budget.CheckDensity(data); err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// consumeMessages fetches a message whenever a slot is free and reports progress while handle processes it. A
// consumer that fails for longer than an election lasts may have been lost, and is recreated.
func (q *connection) consumeMessages(ctx context.Context, c jetstream.Consumer, again remakeConsumer, slots int, handle messageHandler) error {
	free := make(chan struct{}, slots)
	var running sync.WaitGroup
	defer running.Wait()
	if q.server != nil {
		watching, stop := context.WithCancel(ctx)
		defer stop() // before what is running is waited for
		first := c   // a later one has the same name
		running.Go(func() { q.clock.whenSetBack(watching, func() { q.redeliver(watching, first) }) })
	}
	var failing time.Time // since when; zero while it does not
	for {
		select {
		case <-ctx.Done():
			return nil
		case free <- struct{}{}:
		}
		msg, err := q.nextMessage(ctx, c)
		if msg == nil {
			<-free
			switch {
			case err == nil || ctx.Err() != nil:
				failing = time.Time{}
			case failing.IsZero():
				failing = time.Now()
				q.pauseAfter(ctx, err)
			case time.Since(failing) > q.giveUp():
				c, failing = q.remadeConsumer(ctx, c, again), time.Time{}
			default:
				q.pauseAfter(ctx, err)
			}
			continue
		}
		failing = time.Time{}
		running.Go(func() {
			defer func() { <-free }()
			q.handleMessage(ctx, msg, handle)
		})
	}
}

// remakeConsumer creates a consumer if it does not exist.
type remakeConsumer func(ctx context.Context) (jetstream.Consumer, error)

// giveUp returns how long a consumer may fail. An embedded server has no elections.
func (q *connection) giveUp() time.Duration {
	if q.server != nil {
		return time.Second
	}
	return lookLong
}

func (q *connection) remadeConsumer(ctx context.Context, c jetstream.Consumer, again remakeConsumer) jetstream.Consumer {
	made, err := again(ctx)
	if err != nil {
		q.pauseAfter(ctx, err)
		return c
	}
	return made
}

// nextMessage waits for one message; it may return neither a message nor an error.
func (q *connection) nextMessage(ctx context.Context, c jetstream.Consumer) (jetstream.Msg, error) {
	waiting, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	batch, err := c.Fetch(1, jetstream.FetchContext(waiting))
	if err != nil {
		return nil, ignoreNoMessage(err)
	}
	for msg := range batch.Messages() {
		return msg, nil
	}
	return nil, ignoreNoMessage(batch.Error())
}

// ignoreNoMessage drops the errors that mean that no message was available.
func ignoreNoMessage(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// fetchWait is how long one request for a message stays open.
const fetchWait = 5 * time.Second

// pauseAfter waits before the next try on a connection that failed.
func (q *connection) pauseAfter(ctx context.Context, err error) {
	q.opts.Log.Warn("the queue cannot be read, trying again", "error", err)
	select {
	case <-ctx.Done():
	case <-time.After(500 * time.Millisecond):
	}
}

// handleMessage works on one message and acknowledges it by the outcome.
func (q *connection) handleMessage(ctx context.Context, msg jetstream.Msg, do messageHandler) {
	working, stop := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(q.opts.AckWait / 3)
		defer tick.Stop()
		for {
			select {
			case <-working.Done():
				return
			case <-tick.C:
				_ = msg.InProgress()
			}
		}
	}()
	err := q.handleSafely(ctx, msg, do)
	stop()
	var retry *RetryError
	switch {
	case err == nil:
		done, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = msg.DoubleAck(done)
	case errors.As(err, &retry):
		err = msg.NakWithDelay(retry.After)
	default:
		err = msg.NakWithDelay(redeliveryWait(msg))
	}
	if err != nil {
		q.opts.Log.Warn("the outcome of a job could not be reported to the queue; the job will run again", "error", err)
	}
}

// handleSafely turns a panic into an error: the message would come again after each start, and no other would ever be handled.
func (q *connection) handleSafely(ctx context.Context, msg jetstream.Msg, do messageHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("handling a message: %v", r)
			q.opts.Log.Error("this is a bug in Prerig, please report it; it is tried again", "error", err, "stack", string(debug.Stack()))
		}
	}()
	return do(ctx, msg.Subject(), msg.Data())
}

// redeliveryWait is for what has no time of its own: a queue that did not answer, or a process that ends. It stays short, as
// deliveries that only found their pipeline busy count too.
func redeliveryWait(msg jetstream.Msg) time.Duration {
	meta, err := msg.Metadata()
	if err != nil {
		return time.Second
	}
	return min(time.Second<<min(meta.NumDelivered, 16)/2, 5*time.Second)
}

// subjectToken writes any text as one token of a subject or key.
func subjectToken(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// subjectText returns the text of a subject's last token, or of a key; false where subjectToken has not written it.
func subjectText(subject string) (string, bool) {
	text, err := base64.RawURLEncoding.DecodeString(subject[strings.LastIndexByte(subject, '.')+1:])
	return string(text), err == nil
}
