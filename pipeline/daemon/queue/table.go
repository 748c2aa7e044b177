// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Table is a copy of all state in memory that follows what is saved, by whichever process. It is safe for concurrent use.
type Table struct {
	q     *State
	renew chan struct{} // asks for another watcher

	mu      sync.Mutex
	rows    map[string]tableRow
	named   uint64              // counts the names that came or went
	sorted  map[string][]string // names by prefix; empty after one came or went
	few     map[string][]string // names by prefix, of those that Few was asked for
	seen    uint64              // the last revision that was taken in
	recent  []tableChange       // what was taken in last, the oldest first
	before  uint64              // the highest revision that is not in recent any more
	waiting chan struct{}       // closed with each change of seen

	listeners []func(name string)

	looking sync.Mutex // serializes requests for the revision of the state
	lookMu  sync.Mutex
	next    *stateLook // that was not begun yet
}

// stateLook is one question how far the state is, for all who want to know that before it is asked.
type stateLook struct {
	done chan struct{}
	many int // who wait for it; lookMu guards it
	info *jetstream.StreamInfo
	err  error
}

type tableRow struct {
	data     []byte
	revision uint64
}

// tableChange is a name of which something was saved or forgotten.
type tableChange struct {
	name     string
	revision uint64
}

// keptChanges is the minimum number of recent changes that a table can list.
const keptChanges = 2000

// Table returns a copy that follows until ctx is done. It holds everything that was saved before the call.
func (q *State) Table(ctx context.Context) (*Table, error) {
	var watcher jetstream.KeyWatcher
	err := q.retryStep(ctx, func(ctx context.Context) (err error) {
		watcher, err = q.state.WatchAll(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("watching the state: %w", err)
	}
	t := newTable(q)
	go t.followWatcher(ctx, watcher)
	return t, t.Sync(ctx)
}

func newTable(q *State) *Table {
	return &Table{q: q, renew: make(chan struct{}), rows: map[string]tableRow{}, waiting: make(chan struct{})}
}

// followWatcher applies the updates of the watcher. A watcher that ends, because the client abandons it if a
// cluster cannot recreate its consumer, or that lags, because the node of its consumer has disappeared, is replaced
// by another that resumes at the same revision.
func (t *Table) followWatcher(ctx context.Context, watcher jetstream.KeyWatcher) {
	for watcher != nil {
		t.drainUpdates(ctx, watcher)
		_ = watcher.Stop()
		go func(left <-chan jetstream.KeyValueEntry) {
			for range left { // a stopped watcher must not block on its pending updates
			}
		}(watcher.Updates())
		watcher = t.newWatcher(ctx)
	}
}

// drainUpdates returns when the watcher has ended, another is requested, or ctx is done.
func (t *Table) drainUpdates(ctx context.Context, watcher jetstream.KeyWatcher) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.renew:
			return
		case entry, ok := <-watcher.Updates():
			if !ok {
				return
			}
			if entry != nil {
				t.applyEntry(entry)
			}
		}
	}
}

// newWatcher returns a watcher for the updates not applied yet, and retries until it has one; nil when ctx is done.
func (t *Table) newWatcher(ctx context.Context) jetstream.KeyWatcher {
	for ctx.Err() == nil {
		t.mu.Lock()
		seen := t.seen
		t.mu.Unlock()
		watcher, err := t.q.state.WatchAll(ctx, jetstream.ResumeFromRevision(seen+1))
		if err == nil {
			return watcher
		}
		t.q.pauseAfter(ctx, fmt.Errorf("watching the state: %w", err))
	}
	return nil
}

func (t *Table) applyEntry(entry jetstream.KeyValueEntry) {
	name, ok := subjectText(entry.Key())
	t.mu.Lock()
	if ok {
		before := len(t.rows)
		if entry.Operation() == jetstream.KeyValuePut {
			t.rows[name] = tableRow{entry.Value(), entry.Revision()}
		} else {
			delete(t.rows, name)
		}
		if len(t.rows) != before {
			t.named++
			clear(t.sorted)
			t.updateNameIndex(name, len(t.rows) > before)
		}
	}
	t.recordTableChange(tableChange{name, entry.Revision()})
	t.seen = max(t.seen, entry.Revision())
	close(t.waiting)
	t.waiting = make(chan struct{})
	listeners := t.listeners
	t.mu.Unlock()
	if ok {
		for _, f := range listeners {
			f(name)
		}
	}
}

// recordTableChange keeps a change for ChangedSince. The caller holds the lock.
func (t *Table) recordTableChange(c tableChange) {
	if len(t.recent) == 2*keptChanges {
		for _, gone := range t.recent[:keptChanges] {
			t.before = max(t.before, gone.revision)
		}
		t.recent = append(t.recent[:0], t.recent[keptChanges:]...)
	}
	t.recent = append(t.recent, c)
}

// ChangedSince returns the names that were saved or forgotten after a revision, possibly with duplicates, and the
// revision up to which the list is complete, as returned by Seen. It returns false if the revision is too old.
func (t *Table) ChangedSince(revision uint64) (names []string, seen uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if revision < t.before {
		return nil, t.seen, false
	}
	for _, c := range t.recent {
		if c.revision > revision {
			names = append(names, c.name)
		}
	}
	return names, t.seen, true
}

// OnChange registers f to be called with each name that was saved or forgotten, after Get returns the change. f
// must return at once.
func (t *Table) OnChange(f func(name string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listeners = append(t.listeners[:len(t.listeners):len(t.listeners)], f)
}

// lag is how long Sync waits for an update before it requests another watcher. The client itself needs ten seconds
// to notice that the server of a watcher has disappeared.
const lag = 2 * time.Second

// Sync waits until the copy holds everything that was saved before the call, as the leader of the state knows it.
func (t *Table) Sync(ctx context.Context) error {
	info, err := t.lookAtState(ctx)
	if err != nil {
		return fmt.Errorf("looking at the state: %w", err)
	}
	for {
		t.mu.Lock()
		seen, waiting := t.seen, t.waiting
		t.mu.Unlock()
		if seen >= info.State.LastSeq || info.State.Msgs == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("waiting for the state"), ctx.Err())
		case <-waiting:
		case <-time.After(lag):
			select {
			case t.renew <- struct{}{}:
			default: // it is at it
			}
		}
	}
}

// lookAtState asks how far the state is. All who come while one question is under way share the next: a thousand jobs that begin at
// once do not ask a thousand times.
func (t *Table) lookAtState(ctx context.Context) (*jetstream.StreamInfo, error) {
	t.lookMu.Lock()
	look := t.next
	if look == nil {
		look = &stateLook{done: make(chan struct{})}
		t.next = look
		go t.doLook(context.WithoutCancel(ctx), look)
	}
	look.many++
	t.lookMu.Unlock()
	select {
	case <-look.done:
		return look.info, look.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *Table) doLook(ctx context.Context, look *stateLook) {
	defer close(look.done)
	t.looking.Lock()
	defer t.looking.Unlock()
	t.lookMu.Lock()
	t.next = nil // who comes from here on wants to know of what may be saved after it was asked
	t.lookMu.Unlock()
	look.err = t.q.retryStep(ctx, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, t.q.lookTimeout())
		defer cancel()
		look.info, err = t.q.stateStream.Info(ctx)
		return err
	})
}

// Get returns what was saved under a name, and its revision for SaveAfter.
func (t *Table) Get(name string) (data []byte, revision uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.rows[name]
	return r.data, r.revision, ok
}

// Names lists the names that begin with a prefix, sorted.
func (t *Table) Names(prefix string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out, ok := t.sorted[prefix]
	if !ok {
		out = t.beginningWith(prefix)
		sort.Strings(out)
		if t.sorted == nil {
			t.sorted = map[string][]string{}
		}
		t.sorted[prefix] = out
	}
	return slices.Clone(out)
}

// Few lists the names that begin with a prefix, in no order, for prefixes that never have many. Names iterates over
// all names if one of any prefix was added or removed. The caller must not change the list.
func (t *Table) Few(prefix string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out, ok := t.few[prefix]
	if !ok {
		out = t.beginningWith(prefix)
		if t.few == nil {
			t.few = map[string][]string{}
		}
		t.few[prefix] = out
	}
	return out
}

// beginningWith searches all names for those that begin with a prefix. The caller holds the lock.
func (t *Table) beginningWith(prefix string) (names []string) {
	for name := range t.rows {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// updateNameIndex adds a new name, or removes a deleted one. The caller holds the lock.
func (t *Table) updateNameIndex(name string, came bool) {
	for prefix, names := range t.few {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		names = slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
		if came {
			names = append(names, name)
		}
		t.few[prefix] = names
	}
}

// Seen returns the revision of the last change that Get reflects.
func (t *Table) Seen() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen
}

// Named is a number that is another one after a name came or went.
func (t *Table) Named() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.named
}
