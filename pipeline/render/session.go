// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// Bounds of a renderer that is used again.
const (
	sessionRenders = 1000             // it does
	sessionCPU     = 60 * time.Second // it has used before its last render
	sessionIdle    = 5 * time.Second  // it waits for the next
	sessionMemory  = 256 << 20        // bytes that all together have between two
	markTimeout    = 10 * time.Second // what it has written to its standard error is waited for
)

// sessionPool keeps renderers that have rendered, for others of the same trust. It is safe for concurrent use.
type sessionPool struct {
	most     int           // that wait
	patience time.Duration // for which they do
	room     int64         // bytes of memory that all of them may have
	stepBack time.Duration // after which one has taken too long to wait

	mu     sync.Mutex
	closed bool
	idle   []*idleRenderer // the last used last
}

type idleRenderer struct {
	key    string
	worker *rendererProcess
	memory int64
	expiry *time.Timer
}

// sessionKey is what renders have in common that one renderer may do: whom they are for, and limits, which cannot be raised again.
func sessionKey(request Request) string {
	text, err := json.Marshal([]any{request.Trust, request.Limits.Timeout, request.Limits.Memory})
	if err != nil {
		panic(err) // it is plain data
	}
	return string(text)
}

// takeIdleForKey returns a renderer that has rendered for the same key, or nil if none exists.
func (s *sessionPool) takeIdleForKey(key string) *rendererProcess {
	for {
		one := s.removeLastMatching(func(one *idleRenderer) bool { return one.key == key })
		if one == nil {
			return nil
		}
		if one.worker.isAlive() {
			return one.worker
		}
		one.worker.killGroup()
	}
}

// removeLastMatching removes and returns the last renderer that the caller wants.
func (s *sessionPool) removeLastMatching(wanted func(*idleRenderer) bool) *idleRenderer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, one := range slices.Backward(s.idle) {
		if wanted(one) {
			s.idle = slices.Delete(s.idle, i, i+1)
			one.expiry.Stop()
			return one
		}
	}
	return nil
}

// keepIdleRenderer keeps a renderer for a while. Those that have waited longest make room.
func (s *sessionPool) keepIdleRenderer(key string, worker *rendererProcess) {
	one := &idleRenderer{key: key, worker: worker, memory: worker.privateMemoryBytes()}
	var gone []*idleRenderer
	s.mu.Lock()
	closed := s.closed || s.most == 0
	if !closed {
		for len(s.idle) >= s.most || len(s.idle) > 0 && s.totalIdleMemory()+one.memory > s.room {
			s.idle[0].expiry.Stop()
			gone = append(gone, s.idle[0])
			s.idle = slices.Delete(s.idle, 0, 1)
		}
		one.expiry = time.AfterFunc(s.patience, func() {
			if s.removeLastMatching(func(other *idleRenderer) bool { return other == one }) != nil {
				worker.killGroup()
			}
		})
		s.idle = append(s.idle, one)
	}
	s.mu.Unlock()
	if closed {
		worker.killGroup()
	}
	for _, other := range gone {
		other.worker.killGroup()
	}
}

// totalIdleMemory returns what all that wait have. The caller holds the lock.
func (s *sessionPool) totalIdleMemory() (sum int64) {
	for _, one := range s.idle {
		sum += one.memory
	}
	return sum
}

// close ends those that wait, and those that come.
func (s *sessionPool) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for {
		one := s.removeLastMatching(func(*idleRenderer) bool { return true })
		if one == nil {
			return
		}
		one.worker.killGroup()
	}
}

// renderAgain renders in a process that has rendered for the same trust. It reports whether such a process existed
// and its result is usable: after any error, the render is repeated in a process of its own, so that no render
// suffers from an earlier one.
func (p *Pool) renderAgain(ctx context.Context, files tree.Reader, request Request) (response *Response, done bool, err error) {
	worker := p.sessions.takeIdleForKey(sessionKey(request))
	if worker == nil {
		return nil, false, nil
	}
	response, err = p.renderIn(ctx, worker, files, request)
	return response, err == nil || ctx.Err() != nil, err
}

// newMark returns what ends the standard error of one render. No source can know it.
func newMark() string { return "\x00" + rand.Text() + "\n" }

// canGoOn reports whether a renderer may be kept for the next one, where those that wait may have so many bytes of memory.
func (p *rendererProcess) canGoOn(room int64) bool {
	p.renders++
	used, ok := p.cpuTime()
	return ok && p.renders < sessionRenders && used < sessionCPU && p.privateMemoryBytes() < room
}
