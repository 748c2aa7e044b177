// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// Table is a copy of all state in memory that follows what is saved, by whichever process. It is safe for concurrent use.
type Table struct {
	q *Queue

	mu      sync.Mutex
	rows    map[string]row
	seen    uint64        // the last revision that was taken in
	waiting chan struct{} // closed with each change of seen
}

type row struct {
	data     []byte
	revision uint64
}

// Table gives a copy that follows until ctx is done. It holds everything that was saved before the call.
func (q *Queue) Table(ctx context.Context) (*Table, error) {
	watcher, err := q.state.WatchAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("watching the state: %w", err)
	}
	t := &Table{q: q, rows: map[string]row{}, waiting: make(chan struct{})}
	go func() {
		defer watcher.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case entry, ok := <-watcher.Updates():
				if !ok {
					return
				}
				if entry != nil {
					t.take(entry)
				}
			}
		}
	}()
	return t, t.Sync(ctx)
}

func (t *Table) take(entry jetstream.KeyValueEntry) {
	name, err := base64.RawURLEncoding.DecodeString(entry.Key())
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		if entry.Operation() == jetstream.KeyValuePut {
			t.rows[string(name)] = row{entry.Value(), entry.Revision()}
		} else {
			delete(t.rows, string(name))
		}
	}
	t.seen = max(t.seen, entry.Revision())
	close(t.waiting)
	t.waiting = make(chan struct{})
}

// Sync waits until the copy holds everything that was saved before the call, as the leader of the state knows it.
func (t *Table) Sync(ctx context.Context) error {
	info, err := t.q.stateStream.Info(ctx)
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
		}
	}
}

// Get gives what was saved under a name, and its revision for SaveAfter.
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
	var out []string
	for name := range t.rows {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}
