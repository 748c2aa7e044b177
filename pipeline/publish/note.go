// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"sync"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// Note is what must be stored about a pipeline before it is published, in case this process ends before the
// pipeline's state records the outcome. It is stored with the notes of all others of the same commit. It is safe
// for concurrent use.
type Note struct {
	// Pipeline is the pipeline's key, Revision that of its state as it is stored.
	Pipeline string
	Revision uint64

	mu   sync.Mutex
	kept bool
	end  func()
}

// Keep records that the note is stored, and sets the function to call when it is not needed any more.
func (n *Note) Keep(end func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept, n.end = true, end
}

// isKept reports whether it is stored.
func (n *Note) isKept() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kept
}

// End records that the pipeline's state, including the outcome, is stored. Only the first call counts.
func (n *Note) End() {
	n.mu.Lock()
	end := n.end
	n.end = nil
	n.mu.Unlock()
	if end != nil {
		end()
	}
}

// KeepNotes sets the function that stores notes before any of their changes is written: it calls Keep on each.
// KeepNotes must be called before the first entry is opened.
func (t *Targets) KeepNotes(keep func(ctx context.Context, notes []*Note) error) {
	t.batcher.keep = keep
}

// SharesNotes reports whether an entry is published in a commit that stores the notes of its changes together.
func SharesNotes(to v1alpha1.Publish) bool { return to.Git != nil && to.Git.PullRequest == nil }

// storePublishingNotes stores the notes of changes that are about to be published together, those that are not stored
// yet.
func (b *changeBatcher) storePublishingNotes(ctx context.Context, taken []*waitingChange) error {
	var notes []*Note
	for _, w := range taken {
		if n := w.change.Note; n != nil && !n.isKept() {
			notes = append(notes, n)
		}
	}
	if len(notes) == 0 {
		return nil
	}
	if b.keep == nil {
		return errNoNotes
	}
	return b.keep(ctx, notes)
}

// errNoNotes is returned for a change with a note if KeepNotes was not called.
var errNoNotes = errors.New("no store records that the pipeline is being published")
