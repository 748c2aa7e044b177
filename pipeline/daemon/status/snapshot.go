// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/kubernetes/mesh"
)

// snapshotPrefix begins the names of policies that were completed from a cluster.
const snapshotPrefix = "snapshot/"

// storedSnapshot is one as it is kept.
type storedSnapshot struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"` // when it was last published
}

// SaveSnapshots keeps the policies that a result was rendered with, by their digests.
func (s *Store) SaveSnapshots(ctx context.Context, all []mesh.Snapshot) error {
	for _, one := range all {
		if known, ok := s.loadStoredSnapshot(one.Digest); ok && time.Since(known.At).Abs() < keepYoung/2 {
			continue
		}
		data, err := encodeJSON(storedSnapshot{string(one.Text), time.Now().UTC()})
		if err != nil {
			return err
		}
		if err := s.q.Save(ctx, snapshotPrefix+one.Digest, data); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) loadStoredSnapshot(digest string) (*storedSnapshot, bool) {
	data, _, ok := s.table.Get(snapshotPrefix + digest)
	if !ok {
		return nil, false
	}
	stored, err := decodeJSON[storedSnapshot](data)
	return stored, err == nil
}

// Snapshot returns the text of a kept policy, or false if none has that digest.
func (s *Store) Snapshot(digest string) (text []byte, ok bool) {
	stored, ok := s.loadStoredSnapshot(digest)
	if !ok {
		return nil, false
	}
	return []byte(stored.Text), true
}

const (
	// keepUnnamed is how long an unreferenced snapshot is kept, unless they are too many.
	keepUnnamed = 24 * time.Hour
	// keepYoung is how long a snapshot is kept regardless of their number: a run references it shortly after it is
	// stored.
	keepYoung = time.Hour
	// maxUnnamed bounds the number of older unreferenced snapshots, so that a constantly changing cluster does not
	// fill the storage.
	maxUnnamed = 200
)

// SweepSnapshots forgets those that are named neither by what is published now nor by a run of the history of any pipeline, nor were
// kept within a day; of these at most maxUnnamed are left, besides those of the last hour. Where a state cannot be read, all are kept, as
// it may name any.
func (s *Store) SweepSnapshots(ctx context.Context) error {
	if err := s.Sync(ctx); err != nil {
		return err
	}
	names := s.table.Names(snapshotPrefix)
	if len(names) == 0 {
		return nil
	}
	named, err := s.namedSnapshots()
	if err != nil {
		return err
	}
	for _, one := range s.surplusSnapshots(names, named, time.Now()) {
		err := s.q.ForgetAfter(ctx, one.name, one.revision)
		if err != nil && !errors.Is(err, queue.ErrChanged) { // one that was used again meanwhile stays
			return err
		}
	}
	return nil
}

// CompletedPolicies lists the ids of the policies of which it is remembered what they were completed to.
func (s *Store) CompletedPolicies() []string {
	return s.namesBelow(mesh.MemoryPrefix)
}

// unnamed is an unreferenced snapshot.
type unnamed struct {
	name     string
	revision uint64
	at       time.Time
}

// namedSnapshots are the names of those that a pipeline has published with.
func (s *Store) namedSnapshots() (map[string]bool, error) {
	named := map[string]bool{}
	for _, pipeline := range s.Known() {
		data, _, stored := s.table.Get(statePrefix + pipeline)
		if _, err := decodeJSON[State](data); stored && err != nil {
			return nil, fmt.Errorf("reading which snapshots %s has published with: %w", pipeline, err)
		}
		for _, digest := range s.Get(pipeline).publishedSnapshotDigests() {
			named[snapshotPrefix+digest] = true
		}
	}
	return named, nil
}

// surplusSnapshots returns the snapshots that need not be kept any more.
func (s *Store) surplusSnapshots(names []string, named map[string]bool, now time.Time) (out []unnamed) {
	var older []unnamed
	for _, name := range names {
		if named[name] {
			continue
		}
		data, revision, ok := s.table.Get(name)
		if !ok {
			continue
		}
		one := unnamed{name: name, revision: revision}
		if stored, err := decodeJSON[storedSnapshot](data); err == nil {
			one.at = stored.At
		}
		age := now.Sub(one.at)
		switch {
		case age >= keepUnnamed:
			out = append(out, one)
		case age.Abs() >= keepYoung: // kept before the clock was set back, too
			older = append(older, one)
		}
	}
	slices.SortFunc(older, func(a, b unnamed) int { return b.at.Compare(a.at) }) // the newest first
	return append(out, older[min(len(older), maxUnnamed):]...)
}

// NamesSnapshot reports whether a pipeline has published with a snapshot, according to its history.
func (s *State) NamesSnapshot(digest string) bool {
	return slices.Contains(s.publishedSnapshotDigests(), digest)
}

// publishedSnapshotDigests returns the digests of those that a pipeline has published with, according to its history.
func (s *State) publishedSnapshotDigests() (digests []string) {
	for _, one := range s.Status.Published {
		digests = append(digests, one.Snapshots...)
	}
	for _, run := range s.Runs {
		for _, one := range run.Published {
			digests = append(digests, one.Snapshots...)
		}
	}
	return digests
}
