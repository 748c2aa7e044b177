// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/fault"
)

// Interface fetches sources. Fetcher does, and Shared asks a server once for all who ask at the same time.
type Interface interface {
	// Fetch returns the source of a pipeline of a scope in its current state, or at a revision that Fetch has
	// returned before.
	Fetch(ctx context.Context, scope Scope, src v1alpha1.Source, revision string) (*Snapshot, error)
}

// Shared fetches with a look at the server that pipelines with the same source share. It is safe for concurrent use.
type Shared struct {
	source Interface
	looks  fetchGroup
	seen   sightings
}

// Share returns what shares looks at sources.
func Share(source Interface) *Shared { return &Shared{source: source} }

// Fetch implements Interface. The snapshot records when the source was polled.
func (s *Shared) Fetch(ctx context.Context, scope Scope, src v1alpha1.Source, revision string) (*Snapshot, error) {
	resolved, asked := time.Now(), revision == ""
	if asked {
		found, at, err := s.Newest(ctx, scope, src)
		if err != nil {
			return nil, err
		}
		revision = found
		if found != "" {
			resolved = at
		}
	}
	snapshot, err := s.source.Fetch(ctx, scope, src, revision)
	if err != nil {
		return nil, err
	}
	snapshot.Resolved = resolved
	if revision != "" && snapshot.Commit != nil {
		snapshot.Revision = revision // with the default branch's name
	}
	if asked {
		s.seen.keepLaterSighting(lookKey(scope, src), sighting{snapshot.Revision, snapshot.Resolved})
	}
	return snapshot, nil
}

// Newest returns the revision that a Git repository is at, and when it was looked at; "" where that is not shared.
func (s *Shared) Newest(ctx context.Context, scope Scope,
	src v1alpha1.Source) (revision string, at time.Time, err error) {
	if src.Git == nil || src.Git.Ref.Commit != "" {
		return "", time.Time{}, nil
	}
	snapshot, at, err := s.looks.doShared(ctx, lookKey(scope, src), func(ctx context.Context) (*Snapshot, error) {
		return s.source.Fetch(ctx, scope, src, "")
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

// lookTimeout bounds a look.
const lookTimeout = 2 * time.Minute

// fetchGroup lets pipelines with the same source share a poll of its server, as when all pipelines of a repository
// are requested at once. A caller shares only a poll that begins later, by the order of events in this process and
// not by any clock, so that it sees everything that existed when the job was requested. The poll uses the
// credentials that are read at that time, the same for all: they are of one scope and name the same secret. The
// zero value is ready to use.
type fetchGroup struct {
	mu   sync.Mutex
	keys map[string]*pendingFetches
}

// pendingFetches is the state of one source with a running poll; next is for callers that have arrived since.
type pendingFetches struct{ next *sharedFetch }

type sharedFetch struct {
	waiting  int
	ctx      context.Context // of those who wait: it ends with the last of them
	cancel   context.CancelFunc
	done     chan struct{}
	began    time.Time
	snapshot *Snapshot
	err      error
}

// errNotShared is about a look that ended in an error, which each finds out for itself.
var errNotShared = errors.New("looking together with others")

// errNoAnswer is returned to a waiter whose time ran out before the poll ended.
var errNoAnswer = errors.New("there is no answer yet")

// doShared returns the result of a poll that begins after the call, and when it began. If a poll fails within its
// time, all callers but one receive errNotShared.
func (f *fetchGroup) doShared(ctx context.Context, key string, look func(context.Context) (*Snapshot, error)) (*Snapshot, time.Time, error) {
	f.mu.Lock()
	line, busy := f.keys[key]
	if !busy {
		if f.keys == nil {
			f.keys = map[string]*pendingFetches{}
		}
		line = &pendingFetches{}
		f.keys[key] = line
	}
	mine := line.next
	first := mine == nil
	if first {
		mine = &sharedFetch{done: make(chan struct{})}
		mine.ctx, mine.cancel = context.WithCancel(context.WithoutCancel(ctx))
		line.next = mine
	}
	mine.waiting++
	f.mu.Unlock()
	if !busy {
		go f.serveFetches(key, line, look)
	}
	select {
	case <-mine.done:
	case <-ctx.Done():
		f.leaveSharedFetch(line, mine)
		return nil, time.Time{}, fmt.Errorf("%w: %w", errNoAnswer, ctx.Err())
	}
	if mine.err != nil && !first && !errors.Is(mine.err, context.DeadlineExceeded) {
		return nil, time.Time{}, errNotShared
	}
	return mine.snapshot, mine.began, mine.err
}

// leaveSharedFetch removes a waiter. The last one cancels the poll, and waits for its end if it has begun.
func (f *fetchGroup) leaveSharedFetch(line *pendingFetches, from *sharedFetch) {
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

// serveFetches polls until no caller waits.
func (f *fetchGroup) serveFetches(key string, line *pendingFetches, look func(context.Context) (*Snapshot, error)) {
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
		one.runFetch(look)
	}
}

func (s *sharedFetch) runFetch(look func(context.Context) (*Snapshot, error)) {
	defer s.cancel()
	ctx, cancel := context.WithTimeout(s.ctx, lookTimeout)
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
