// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/prerig/prerig/pipeline/review/injection"
)

// maxInjectedLines bounds how many numbers of lines are remembered, and maxInjectedFiles of how many files.
const (
	maxInjectedLines = 1 << 20
	maxInjectedFiles = 1 << 15
)

// injectedLines finds the lines of files that an injection added, and caches them by the content of the files: the
// output of one run is the input of the next change. The zero value is empty. It is safe for concurrent use.
type injectedLines struct {
	prepare sync.Once
	remover *injection.Remover

	mu         sync.Mutex
	young, old map[[sha256.Size]byte][]int32 // young receives new entries until it is full, and then becomes old
	lines      int                           // in the young
}

// linesOfFile returns the lines of a file.
func (l *injectedLines) linesOfFile(ctx context.Context, content []byte) []int {
	if len(content) == 0 {
		return nil
	}
	key := sha256.Sum256(content)
	if known, ok := l.recallCachedLines(key); ok {
		return toIntLines(known)
	}
	l.prepare.Do(func() { l.remover, _ = injection.NewRemover() })
	if l.remover == nil {
		return nil
	}
	found := l.remover.Lines(ctx, content)
	if ctx.Err() == nil {
		l.cacheInjectedLines(key, toInt32Lines(found))
	}
	return found
}

func (l *injectedLines) recallCachedLines(key [sha256.Size]byte) ([]int32, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.young[key]; ok {
		return known, true
	}
	known, ok := l.old[key]
	return known, ok
}

func (l *injectedLines) cacheInjectedLines(key [sha256.Size]byte, lines []int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.young == nil || l.lines+len(lines) > maxInjectedLines/2 || len(l.young) >= maxInjectedFiles/2 {
		l.young, l.old, l.lines = map[[sha256.Size]byte][]int32{}, l.young, 0
	}
	l.young[key] = lines
	l.lines += len(lines)
}

func toInt32Lines(lines []int) []int32 {
	out := make([]int32, len(lines))
	for i, line := range lines {
		out[i] = int32(line) //nolint:gosec // a file of two thousand million lines is not looked at
	}
	return out
}

func toIntLines(lines []int32) []int {
	if len(lines) == 0 {
		return nil
	}
	out := make([]int, len(lines))
	for i, line := range lines {
		out[i] = int(line)
	}
	return out
}
