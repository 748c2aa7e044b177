// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/internal/packed"
)

// maxValue is the maximum size of a stored value: NATS accepts messages of up to 1 MiB.
const maxValue = 900 << 10

// Names of what is stored.
const (
	statePrefix   = "pipeline/"
	controlPrefix = "control/"
	diffPrefix    = "diff/"
)

// Store reads and writes what is known of pipelines: their states, and other facts by topic. It is safe for concurrent
// use.
type Store struct {
	*records
	*Notes
	*Controls
	*Registrations
	*Promotions
	*Diffs
	decoded map[string]decodedState
}

// records are stored values by name, with a copy of all in memory.
type records struct {
	q     *queue.Queue
	table *queue.Table
	mu    sync.Mutex // guards the decoded values of all topics
}

// Notes stores what is being published.
type Notes struct {
	*records
	notesMu sync.Mutex // lock order: mu before notesMu
	notes   map[string]decodedNote
}

// Controls stores what people asked for.
type Controls struct {
	*records
	controls map[string]decodedControl
}

// Registrations stores which pipelines exist, and which were removed.
type Registrations struct {
	*records
	registrations map[string]decodedRegistration
	removed       removedUIDs
}

// Promotions stores groups, waves and rollbacks.
type Promotions struct{ *records }

// Diffs stores the differences that runs made.
type Diffs struct{ *records }

type decodedState struct {
	revision uint64
	noted    bool // see isNoted
	state    *State
}

type decodedControl struct {
	revision uint64
	control  Control
}

// NewStore returns a store that follows the queue's state until ctx is done.
func NewStore(ctx context.Context, q *queue.Queue) (*Store, error) {
	table, err := q.Table(ctx)
	if err != nil {
		return nil, err
	}
	r := &records{q: q, table: table}
	s := &Store{
		records:       r,
		Notes:         &Notes{records: r, notes: map[string]decodedNote{}},
		Controls:      &Controls{records: r, controls: map[string]decodedControl{}},
		Registrations: &Registrations{records: r, registrations: map[string]decodedRegistration{}},
		Promotions:    &Promotions{r},
		Diffs:         &Diffs{r},
		decoded:       map[string]decodedState{},
	}
	table.OnChange(s.forgetDecoded)
	return s, nil
}

// forgetDecoded drops the decoded value of a name without stored data, whichever process has deleted it.
func (s *Store) forgetDecoded(name string) {
	if _, _, ok := s.table.Get(name); ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, _, ok := s.table.Get(name); ok {
		return // it exists again
	}
	switch prefix, pipeline, _ := strings.Cut(name, "/"); prefix + "/" {
	case statePrefix:
		delete(s.decoded, pipeline)
	case controlPrefix:
		delete(s.controls, pipeline)
	case registrationPrefix:
		delete(s.registrations, pipeline)
	}
}

// Sync waits until Get reflects all saves before the call.
func (s *records) Sync(ctx context.Context) error { return s.table.Sync(ctx) }

// OnChange has f called with the pipeline of which something was stored, by whichever process; with "" where it was of no single
// one. f must return at once.
func (s *records) OnChange(f func(pipeline string)) {
	s.table.OnChange(func(name string) {
		pipeline, _ := pipelineOf(name)
		f(pipeline)
	})
}

// Get returns the state of a pipeline as this process knows it; it must not be changed. A pipeline that never ran has an
// empty one.
func (s *Store) Get(pipeline string) *State {
	s.mu.Lock() // before it is read, so that what is forgotten meanwhile is not kept
	defer s.mu.Unlock()
	data, revision, ok := s.table.Get(statePrefix + pipeline)
	if !ok {
		return &State{}
	}
	noted := s.isNoted(pipeline, revision)
	if known, ok := s.decoded[pipeline]; ok && known.revision == revision && known.noted == noted {
		return known.state
	}
	state, err := decodeJSON[State](data)
	if err != nil {
		state = &State{}
	}
	state.Publishing = state.Publishing || noted
	s.decoded[pipeline] = decodedState{revision, noted, state}
	return state
}

// Load returns the state of a pipeline for a change, and the revision for Save.
func (s *Store) Load(ctx context.Context, pipeline string) (*State, uint64, error) {
	data, revision, ok, err := s.q.Load(ctx, statePrefix+pipeline)
	if err != nil || !ok {
		return &State{}, 0, err
	}
	return s.decodeForChange(pipeline, data, revision), revision, nil
}

// decodeForChange returns a state that is not shared.
func (s *Store) decodeForChange(pipeline string, data []byte, revision uint64) *State {
	state, err := decodeJSON[State](data)
	if err != nil {
		state = &State{} // of another version: it starts empty
	}
	state.Publishing = state.Publishing || s.isNoted(pipeline, revision)
	return state
}

// LoadSynced is Load after Sync, and asks the queue only once for both: it returns what was saved before the call, at least.
func (s *Store) LoadSynced(ctx context.Context, pipeline string) (*State, uint64, error) {
	if err := s.Sync(ctx); err != nil {
		return nil, 0, err
	}
	data, revision, ok := s.table.Get(statePrefix + pipeline)
	if !ok {
		return &State{}, 0, nil
	}
	return s.decodeForChange(pipeline, data, revision), revision, nil
}

// Save stores the state unless another process has since the revision was loaded, and returns the revision for the
// next Save. Parts that are too large are omitted: first the written files, then the read files, so that the next
// run renders again.
func (s *Store) Save(ctx context.Context, pipeline string, state *State, revision uint64) (uint64, error) {
	data, err := encodeJSON(state)
	if err != nil {
		return 0, fmt.Errorf("saving the state of %s: %w", pipeline, err)
	}
	if len(data) > maxValue {
		small := *state
		small.Seen.Targets = nil
		if data, err = encodeJSON(&small); err == nil && len(data) > maxValue {
			small.Seen.Record = nil
			data, err = encodeJSON(&small)
		}
		if err != nil {
			return 0, fmt.Errorf("saving the state of %s: %w", pipeline, err)
		}
	}
	return s.q.SaveAfter(ctx, statePrefix+pipeline, data, revision)
}

// Control returns what was asked for.
func (s *Controls) Control(pipeline string) Control {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, revision, ok := s.table.Get(controlPrefix + pipeline)
	if !ok {
		return s.applyHold(Control{})
	}
	known, ok := s.controls[pipeline]
	if !ok || known.revision != revision {
		known = decodedControl{revision: revision}
		if control, err := decodeJSON[Control](data); err == nil {
			known.control = *control
		}
		s.controls[pipeline] = known
	}
	return s.applyHold(known.control)
}

// ErrOnHold is about a pipeline that was put on hold while it ran.
var ErrOnHold = errors.New("the pipeline was put on hold meanwhile")

// CheckHold returns ErrOnHold where a pipeline is on hold, as this process knows it: Sync comes before it.
func (s *Controls) CheckHold(pipeline string) error {
	if s.Control(pipeline).OnHold != nil {
		return ErrOnHold
	}
	return nil
}

// SetControl changes what was asked for.
func (s *Controls) SetControl(ctx context.Context, pipeline string, change func(*Control)) error {
	data, revision, ok, err := s.q.Load(ctx, controlPrefix+pipeline)
	if err != nil {
		return err
	}
	control := &Control{}
	if ok {
		if control, err = decodeJSON[Control](data); err != nil {
			control = &Control{}
		}
	}
	change(control)
	if data, err = encodeJSON(control); err != nil {
		return err
	}
	_, err = s.q.SaveAfter(ctx, controlPrefix+pipeline, data, revision)
	return err
}

// ChangeControl changes the requests as stored now, regardless of what this process knows of them. A change that
// returns false leaves them unchanged.
func (s *Controls) ChangeControl(ctx context.Context, pipeline string, change func(*Control) bool) error {
	return changeValue(ctx, s.records, controlPrefix+pipeline, change)
}

// SaveDiff stores the difference that a run made. One that is too large is cut at the end of a file's.
func (s *Diffs) SaveDiff(ctx context.Context, pipeline, run string, diff *Diff) error {
	for {
		data, err := encodeJSON(diff)
		if err != nil {
			return err
		}
		if len(data) <= maxValue {
			return s.q.PutArchive(ctx, diffName(pipeline, run), data)
		}
		if len(diff.Files) == 0 {
			return nil
		}
		half := *diff
		half.Files = diff.Files[:len(diff.Files)/2]
		half.LeftOut += len(diff.Files) - len(half.Files)
		diff = &half
	}
}

// LoadDiff returns the difference that a run made; nil where none is stored.
func (s *Diffs) LoadDiff(ctx context.Context, pipeline, run string) (*Diff, error) {
	data, ok, err := s.q.GetArchive(ctx, diffName(pipeline, run))
	if err != nil || !ok {
		return nil, err
	}
	return decodeJSON[Diff](data)
}

// Drop removes what is stored for runs that are not in the history any more.
func (s *Diffs) Drop(ctx context.Context, pipeline string, runs []Run) {
	for _, r := range runs {
		if r.Diff {
			_ = s.q.DeleteArchive(ctx, diffName(pipeline, r.ID)) // it only uses space
		}
	}
}

func diffName(pipeline, run string) string { return diffPrefix + pipeline + "#" + run }

// Seen is a number that is another one after anything was stored or forgotten, as far as this process knows it.
func (s *records) Seen() uint64 { return s.table.Seen() }

// ChangedSince returns the pipelines whose data was stored or deleted after Seen returned before, and the value of
// Seen including these changes. It returns false if this is unknown: before is too old, or a change may concern any
// pipeline.
func (s *records) ChangedSince(before uint64) (pipelines map[string]bool, seen uint64, ok bool) {
	names, seen, ok := s.table.ChangedSince(before)
	if !ok {
		return nil, seen, false
	}
	pipelines = map[string]bool{}
	for _, name := range names {
		pipeline, of := pipelineOf(name)
		if !of {
			return nil, seen, false
		}
		pipelines[pipeline] = true
	}
	return pipelines, seen, true
}

// pipelineOf returns the pipeline that something is stored of under a name; false where it is of no single one.
func pipelineOf(name string) (pipeline string, ok bool) {
	for _, prefix := range []string{statePrefix, controlPrefix, registrationPrefix, removedPrefix} {
		if pipeline, ok := strings.CutPrefix(name, prefix); ok {
			return pipeline, true
		}
	}
	return "", false
}

// Named returns a number that changes when the first data of a pipeline is stored, or its last is deleted.
func (s *records) Named() uint64 { return s.table.Named() }

// namesBelow lists what is stored under a prefix, without it, sorted.
func (s *records) namesBelow(prefix string) []string {
	names := s.table.Names(prefix)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], prefix)
	}
	return names
}

// Known lists the pipelines of which anything is stored.
func (s *Store) Known() []string {
	return s.namesBelow(statePrefix)
}

// stored is how values are written: at most 256 MiB are read of one.
var stored = packed.New(256 << 20)

func encodeJSON(v any) ([]byte, error) { return stored.Encode(v) }

func decodeJSON[T any](data []byte) (*T, error) {
	v := new(T)
	if err := stored.Decode(data, v); err != nil {
		return nil, err
	}
	return v, nil
}
