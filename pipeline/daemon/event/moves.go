// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxMoves bounds for how many references the last move is remembered. Beyond it, all are forgotten, and a repetition gives a second look.
const maxMoves = 10_000

// moves tells repetitions of a delivery from others with the same body, where nothing else names it: a reference that is moved there,
// back, and there again. A repetition comes while the last that was told of its references is the same. It is safe for concurrent use.
type moves struct {
	start string // of this process, which does not know what another one was told
	mu    sync.Mutex
	count int
	last  map[string]move
}

// move is the last that was told of some references.
type move struct {
	id   string
	turn int
}

func newMoves(now time.Time) *moves {
	return &moves{start: now.UTC().Format(time.RFC3339Nano), last: map[string]move{}}
}

// name returns the id of an event that has one by its body: another one each time that something else was told of its references since.
// Events that tell of no reference keep theirs.
func (m *moves) name(e Event) string {
	references := []string{e.Receiver}
	for _, c := range e.Changes {
		if c.Git != nil {
			references = append(references, strings.Join(c.Git.URLs, " "), c.Git.Ref)
		}
	}
	if len(references) == 1 {
		return e.ID
	}
	key := hashID(references...)
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.last[key]
	if !ok || last.id != e.ID {
		if len(m.last) >= maxMoves {
			clear(m.last)
		}
		m.count++
		last = move{e.ID, m.count}
		m.last[key] = last
	}
	return hashID(e.ID, "turn", m.start, strconv.Itoa(last.turn))
}
