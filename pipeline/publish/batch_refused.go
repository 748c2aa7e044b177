// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/source/git"
)

// Bounds of the search for results that a server refuses.
const (
	// maxParts is how many commits are tried of one round before no smaller ones are.
	maxParts = 64
	// maxRefused is how many results a server may refuse one by one, without having taken any, before it is taken to
	// refuse all.
	maxRefused = 3
)

// refusalSearch is what is known of a round so far.
type refusalSearch struct {
	began   time.Time
	tried   int
	taken   bool     // some part of it
	refused []string // pipelines, each by itself
}

// shouldContinue reports whether it is worth while to try smaller parts of what was refused.
func (s *refusalSearch) shouldContinue() bool {
	return s.tried < maxParts && time.Since(s.began) < publishTimeout && (s.taken || len(s.refused) < maxRefused)
}

// publishParts publishes changes in one commit. Where the server refuses that, which may be for one of them, each half
// of it is published by itself, and so on, in the order of the changes. It ends with what is wrong with the branch or
// the connection, as that is wrong with all of them.
func (b *changeBatcher) publishParts(ctx context.Context, lock string, to changeCommitter, taken []*waitingChange) {
	s := refusalSearch{began: time.Now()}
	for parts := [][]*waitingChange{taken}; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		result, err := b.publishPart(ctx, lock, to, part)
		s.tried++
		refused := errors.Is(err, git.ErrRefused)
		s.taken = s.taken || err == nil && result.Changed
		if refused && len(part) > 1 && s.shouldContinue() {
			half := len(part) / 2
			parts = slices.Insert(parts, 0, part[:half], part[half:])
			continue
		}
		if refused && len(part) == 1 {
			s.refused = append(s.refused, part[0].change.Pipeline)
		}
		reportToWaiters(part, result, err)
		if err != nil && !refused {
			reportToWaiters(slices.Concat(parts...), Result{}, err)
			break
		}
	}
	if s.taken { // the server does take something, so that it is about these
		b.recordAlonePublishing(s.refused, true)
	}
}
