// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/fault"
	"github.com/prerig/prerig/pipeline/queue"
	"github.com/prerig/prerig/pipeline/source"
)

// fetchTimeout bounds a fetch.
const fetchTimeout = 2 * time.Minute

// resolvedFor is how long it is believed where the planner found the source. Later it is looked at again, so that what is
// rendered is the newest there is.
const resolvedFor = 20 * time.Second

func (a *attempt) fetch(ctx context.Context) error {
	ctx, span := otel.Tracer("prerig").Start(ctx, "fetch")
	defer span.End()
	start := time.Now()
	defer func() { a.seen.Fetch = time.Since(start) }()
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	planned := a.job.Revision
	if planned != "" && time.Since(a.job.Resolved).Abs() < resolvedFor && a.job.Resolved.After(a.state.Seen.Resolved) {
		a.resolved = a.job.Resolved
		err := a.fetchAt(ctx, planned)
		if err == nil || ctx.Err() != nil {
			return err
		}
		// A server need not give what a branch was forced away from, or a registry what a tag has left.
		a.log.Debug("what was planned cannot be fetched, looking for what is there now", "revision", planned, "error", err)
	}
	a.resolved = start
	found, at, err := a.r.newest(ctx, a.p.Metadata.Namespace, a.entry.Source(a.r.PipelinesDir))
	if err != nil {
		return err
	}
	if found != "" {
		a.resolved = at
	}
	return a.fetchAt(ctx, found)
}

// fetchAt gets the source at a revision, "" for the newest.
func (a *attempt) fetchAt(ctx context.Context, revision string) (err error) {
	if a.snapshot, err = a.r.Fetcher.Fetch(ctx, a.p.Metadata.Namespace, a.entry.Source(a.r.PipelinesDir), revision); err != nil {
		return err
	}
	if revision != "" && a.snapshot.Commit != nil {
		a.snapshot.Revision = revision // with the default branch's name
	}
	return nil
}

// errMoved is about a source that has moved on.
var errMoved = errors.New("the source has moved during the run")

// missed looks at the source once more at the end of tries: the planner asks for no run of a pipeline that is being tried
// again while its source does not answer, so that an event may have come which nothing follows. The job then comes again.
func (a *attempt) missed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	src := a.entry.Source(a.r.PipelinesDir)
	now, _, err := a.r.newest(ctx, a.p.Metadata.Namespace, src)
	if err == nil && now == "" {
		var snapshot *source.Snapshot
		if snapshot, err = a.r.Fetcher.Fetch(ctx, a.p.Metadata.Namespace, src, ""); err == nil {
			now = snapshot.Digest
		}
	}
	if err == nil && strings.HasSuffix(now, a.snapshot.Digest) {
		return nil
	}
	return &queue.RetryError{After: time.Second, Err: errors.Join(errMoved, err)}
}

// fetches has pipelines with the same source share a look at its server, as when all pipelines of a repository are asked
// for at once. Who comes shares only a look that begins later, by the order of things in this process and not by any clock,
// so that it sees whatever was there when the job was asked for. And it begins with the credentials that are read then, the
// same for all: they are in one namespace and name the same secret. The zero value is ready.
type fetches struct {
	mu   sync.Mutex
	keys map[string]*fetchLine
}

// fetchLine is what goes on for one source: somebody is looking, and next is for those who have come since.
type fetchLine struct{ next *sharedLook }

type sharedLook struct {
	waiting  int
	ctx      context.Context // of those who wait: it ends with the last of them
	cancel   context.CancelFunc
	done     chan struct{}
	began    time.Time
	snapshot *source.Snapshot
	err      error
}

// errNotShared is about a look that ended in an error, which each finds out for itself.
var errNotShared = errors.New("looking together with others")

// errNoAnswer is about a look that did not end in time for somebody who waited for it.
var errNoAnswer = errors.New("there is no answer yet")

// do gives what a look gives that begins after the call, and when it began. A look that has failed within its time gives
// errNotShared to all but one.
func (f *fetches) do(ctx context.Context, key string, look func(context.Context) (*source.Snapshot, error)) (*source.Snapshot, time.Time, error) {
	f.mu.Lock()
	line, busy := f.keys[key]
	if !busy {
		if f.keys == nil {
			f.keys = map[string]*fetchLine{}
		}
		line = &fetchLine{}
		f.keys[key] = line
	}
	mine := line.next
	first := mine == nil
	if first {
		mine = &sharedLook{done: make(chan struct{})}
		mine.ctx, mine.cancel = context.WithCancel(context.WithoutCancel(ctx))
		line.next = mine
	}
	mine.waiting++
	f.mu.Unlock()
	if !busy {
		go f.serve(key, line, look)
	}
	select {
	case <-mine.done:
	case <-ctx.Done():
		f.leave(line, mine)
		return nil, time.Time{}, fmt.Errorf("%w: %w", errNoAnswer, ctx.Err())
	}
	if mine.err != nil && !first && !errors.Is(mine.err, context.DeadlineExceeded) {
		return nil, time.Time{}, errNotShared
	}
	return mine.snapshot, mine.began, mine.err
}

// leave takes one out of those who wait. The last one ends the look, and waits for its end where it has begun.
func (f *fetches) leave(line *fetchLine, from *sharedLook) {
	f.mu.Lock()
	from.waiting--
	last, begun := from.waiting == 0, line.next != from
	if last && !begun {
		line.next = nil
	}
	f.mu.Unlock()
	if !last {
		return
	}
	from.cancel()
	if begun {
		<-from.done
	}
}

// serve looks until nobody waits.
func (f *fetches) serve(key string, line *fetchLine, look func(context.Context) (*source.Snapshot, error)) {
	for {
		f.mu.Lock()
		one := line.next
		line.next = nil
		if one == nil {
			delete(f.keys, key)
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		one.look(look)
	}
}

func (s *sharedLook) look(look func(context.Context) (*source.Snapshot, error)) {
	defer s.cancel()
	ctx, cancel := context.WithTimeout(s.ctx, fetchTimeout)
	defer cancel()
	defer close(s.done)
	defer func() {
		if r := recover(); r != nil {
			s.err = fault.Recovered(r)
		}
	}()
	s.began = time.Now()
	s.snapshot, s.err = look(ctx)
}

// newest gives the revision that a Git repository is at, and when it was looked at; "" where that is not shared.
func (r *Runner) newest(ctx context.Context, namespace string, src v1alpha1.Source) (revision string, at time.Time, err error) {
	if src.Git == nil || src.Git.Ref.Commit != "" {
		return "", time.Time{}, nil
	}
	key, err := json.Marshal([]any{namespace, src})
	if err != nil {
		panic(err) // it is plain data
	}
	snapshot, at, err := r.fetches.do(ctx, string(key), func(ctx context.Context) (*source.Snapshot, error) {
		return r.Fetcher.Fetch(ctx, namespace, src, "")
	})
	if errors.Is(err, errNotShared) {
		return "", time.Time{}, nil
	}
	if errors.Is(err, errNoAnswer) {
		return "", time.Time{}, fmt.Errorf("fetching from %s: %w", src.Git.URL, err)
	}
	if err != nil {
		return "", time.Time{}, err
	}
	return snapshot.Revision, at, nil
}
