// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxMoves bounds the number of references whose last move is remembered. Beyond it, all are forgotten, and a
// repetition causes a second poll.
const maxMoves = 10_000

// moves distinguishes repetitions of a delivery from others with the same body, if no other id identifies it: a
// reference that is moved forward, back, and forward again. A delivery is a repetition while it equals the last one
// about its references. It is safe for concurrent use.
type moves struct {
	start string // of this process, which does not know the deliveries of another one
	mu    sync.Mutex
	count int
	last  map[string]move
}

// move is the last reported move of some references.
type move struct {
	id   string
	turn int
}

func newMoves(now time.Time) *moves {
	return &moves{start: now.UTC().Format(time.RFC3339Nano), last: map[string]move{}}
}

// eventIDForBody returns the id of an event identified by its body: a different one each time another move of its
// references was reported in between. Events about no reference keep their id.
func (m *moves) eventIDForBody(e Event) string {
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
