// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/mesh"
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
		if known, ok := s.snapshot(one.Digest); ok && time.Since(known.At) < keepUnnamed/2 {
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

func (s *Store) snapshot(digest string) (*storedSnapshot, bool) {
	data, _, ok := s.table.Get(snapshotPrefix + digest)
	if !ok {
		return nil, false
	}
	stored, err := decodeJSON[storedSnapshot](data)
	return stored, err == nil
}

// Snapshot returns the text of a policy that was kept, false where there is none of that digest.
func (s *Store) Snapshot(digest string) (text []byte, ok bool) {
	stored, ok := s.snapshot(digest)
	if !ok {
		return nil, false
	}
	return []byte(stored.Text), true
}

// keepUnnamed is how long a snapshot is kept that nothing names: a run names it a little after it was kept.
const keepUnnamed = 24 * time.Hour

// SweepSnapshots forgets those that are named neither by what is published now nor by a run of the history of any pipeline, nor were
// kept since a day ago. Where a state cannot be read, all are kept, as it may name any.
func (s *Store) SweepSnapshots(ctx context.Context) error {
	if err := s.Sync(ctx); err != nil {
		return err
	}
	names := s.table.Names(snapshotPrefix)
	if len(names) == 0 {
		return nil
	}
	named := map[string]bool{}
	for _, pipeline := range s.Known() {
		data, _, stored := s.table.Get(statePrefix + pipeline)
		if _, err := decodeJSON[State](data); stored && err != nil {
			return fmt.Errorf("reading which snapshots %s has published with: %w", pipeline, err)
		}
		for _, digest := range s.Get(pipeline).snapshots() {
			named[snapshotPrefix+digest] = true
		}
	}
	for _, name := range names {
		stored, ok := s.snapshot(strings.TrimPrefix(name, snapshotPrefix))
		if named[name] || ok && time.Since(stored.At) < keepUnnamed {
			continue
		}
		if err := s.q.Forget(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// NamesSnapshot reports whether a pipeline has published with a snapshot, as far as its history goes.
func (s *State) NamesSnapshot(digest string) bool { return slices.Contains(s.snapshots(), digest) }

// snapshots names those that a pipeline has published with, as far as its history goes.
func (s *State) snapshots() (digests []string) {
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
