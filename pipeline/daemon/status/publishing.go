// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// publishingPrefix is in front of a number: notes have the lowest that is free, so that what is left of names stays little.
const publishingPrefix = "publishing/"

// PublishingNote records that many pipelines are about to be published in one commit, instead of State.Publishing
// in the state of each. It applies to a pipeline while its state is the one that was stored then: the next stored
// state records the outcome itself.
type PublishingNote struct {
	// Revisions of the stored states, by pipeline.
	Revisions map[string]uint64 `json:"revisions"`
}

// KeptNote is a PublishingNote that is stored.
type KeptNote struct {
	name     string
	revision uint64
}

// decodedNote is one that was decoded.
type decodedNote struct {
	revision uint64
	note     *PublishingNote
}

// maxNoted is how many pipelines one note is about at most, well below what a stored value may hold.
const maxNoted = 10_000

// NotePublishing stores that pipelines are about to be published. Each of them has a state that is stored.
func (s *Notes) NotePublishing(ctx context.Context, revisions map[string]uint64) ([]KeptNote, error) {
	s.dropSettledNotes(ctx)
	var kept []KeptNote
	part := map[string]uint64{}
	for pipeline, revision := range revisions {
		part[pipeline] = revision
		if len(part) < maxNoted {
			continue
		}
		one, err := s.saveNote(ctx, PublishingNote{part})
		if err != nil {
			return kept, err
		}
		kept, part = append(kept, one), map[string]uint64{}
	}
	if len(part) == 0 {
		return kept, nil
	}
	one, err := s.saveNote(ctx, PublishingNote{part})
	return append(kept, one), err
}

// saveNote stores a note under a free name, even if other processes choose one at the same time.
func (s *Notes) saveNote(ctx context.Context, note PublishingNote) (KeptNote, error) {
	data, err := encodeJSON(note)
	if err != nil {
		return KeptNote{}, fmt.Errorf("noting what is being published: %w", err)
	}
	for i := 0; ; i++ {
		name := publishingPrefix + strconv.Itoa(i)
		if _, _, taken := s.table.Get(name); taken {
			continue
		}
		revision, err := s.q.SaveAfter(ctx, name, data, 0)
		if errors.Is(err, queue.ErrChanged) {
			continue
		}
		return KeptNote{name, revision}, err
	}
}

// EndPublishing forgets notes: the states of all of their pipelines have been stored since. Where that fails, the next NotePublishing of
// any process does it.
func (s *Notes) EndPublishing(ctx context.Context, notes []KeptNote) error {
	var errs []error
	for _, one := range notes {
		if err := s.q.ForgetAfter(ctx, one.name, one.revision); err != nil && !errors.Is(err, queue.ErrChanged) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// dropSettledNotes forgets notes that are about no pipeline any more, as of processes that have ended. They only take up room.
func (s *Notes) dropSettledNotes(ctx context.Context) {
	for _, name := range s.table.Few(publishingPrefix) {
		note, revision := s.note(name)
		if note == nil {
			continue
		}
		settled := true
		for pipeline, of := range note.Revisions {
			if _, now, stored := s.table.Get(statePrefix + pipeline); stored && now <= of {
				settled = false
				break
			}
		}
		if settled {
			_ = s.q.ForgetAfter(ctx, name, revision)
		}
	}
}

// isNoted reports whether a pipeline was about to be published when its state was the one of a revision.
func (s *Notes) isNoted(pipeline string, revision uint64) bool {
	for _, name := range s.table.Few(publishingPrefix) {
		if note, _ := s.note(name); note != nil {
			if of, ok := note.Revisions[pipeline]; ok && of == revision {
				return true
			}
		}
	}
	return false
}

// note returns a stored note, or nil if none exists or it cannot be read.
func (s *Notes) note(name string) (note *PublishingNote, revision uint64) {
	s.notesMu.Lock()
	defer s.notesMu.Unlock()
	data, revision, ok := s.table.Get(name)
	if !ok {
		delete(s.notes, name)
		return nil, 0
	}
	known, ok := s.notes[name]
	if !ok || known.revision != revision {
		known = decodedNote{revision: revision}
		if note, err := decodeJSON[PublishingNote](data); err == nil {
			known.note = note
		}
		s.notes[name] = known
	}
	return known.note, revision
}
