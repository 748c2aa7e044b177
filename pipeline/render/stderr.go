// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io"
	"strings"
	"sync"
	"time"
)

var _ io.Writer = (*tailBuffer)(nil)

// tailBuffer keeps the beginning and the end of a renderer's standard error: a crashing Go program first prints the
// reason, and then the location, which can be long.
type tailBuffer struct {
	mu    sync.Mutex
	start []byte
	text  []byte // what follows
	news  chan struct{}
}

const (
	maxStderr      = 16 << 10
	maxStderrStart = 1 << 10
)

// Write implements io.Writer.
func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := min(len(p), maxStderrStart-len(b.start))
	b.start = append(b.start, p[:first]...)
	b.text = append(b.text, p[first:]...)
	if over := len(b.text) - maxStderr; over > 0 {
		b.text = b.text[over:]
	}
	if b.news != nil {
		close(b.news)
		b.news = nil
	}
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.start) + string(b.text)
}

// takeUntil waits for a mark at the end of the output and removes all of it. It returns false if the mark does not
// arrive in time.
func (b *tailBuffer) takeUntil(mark string, timeout time.Duration) (text string, ok bool) {
	late := time.NewTimer(timeout)
	defer late.Stop()
	for {
		b.mu.Lock()
		if text, ok = strings.CutSuffix(string(b.start)+string(b.text), mark); ok {
			b.start, b.text = nil, nil
			b.mu.Unlock()
			return text, true
		}
		if b.news == nil {
			b.news = make(chan struct{})
		}
		news := b.news
		b.mu.Unlock()
		select {
		case <-news:
		case <-late.C:
			return "", false
		}
	}
}
