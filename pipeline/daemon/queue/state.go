// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Load returns the data saved under a name; false if none was saved.
func (q *State) Load(ctx context.Context, name string) (data []byte, revision uint64, ok bool, err error) {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	entry, err := q.state.Get(ctx, subjectToken(name))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, false, nil
	}
	if err != nil {
		return nil, 0, false, fmt.Errorf("reading the state of %s: %w", name, err)
	}
	return entry.Value(), entry.Revision(), true, nil
}

// ErrChanged means that another process has saved the state since it was loaded.
var ErrChanged = errors.New("the state has been changed by another process")

// SaveAfter stores data under a name if no data was saved since the revision, 0 for none at all, and returns the
// new revision. Otherwise ErrChanged is the cause of the error.
func (q *State) SaveAfter(ctx context.Context, name string, data []byte, revision uint64) (uint64, error) {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	var next uint64
	var err error
	if revision == 0 {
		// It may have existed and been deleted, which leaves a marker with a revision of its own.
		next, err = q.state.Create(ctx, subjectToken(name), data)
	} else {
		next, err = q.state.Update(ctx, subjectToken(name), data, revision)
	}
	var api *jetstream.APIError
	if errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		err = ErrChanged
	}
	if q.noteWriteError(err) != nil {
		return 0, fmt.Errorf("saving the state of %s: %w", name, err)
	}
	return next, nil
}

// Save stores data under a name, durably and unconditionally.
func (q *State) Save(ctx context.Context, name string, data []byte) error {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	if _, err := q.state.Put(ctx, subjectToken(name), data); q.noteWriteError(err) != nil {
		return fmt.Errorf("saving the state of %s: %w", name, err)
	}
	return nil
}

// Forget removes what was saved under a name.
func (q *State) Forget(ctx context.Context, name string) error {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	if err := q.state.Purge(ctx, subjectToken(name)); err != nil {
		return fmt.Errorf("removing the state of %s: %w", name, err)
	}
	return nil
}

// ForgetAfter removes the data saved under a name if none was saved since the revision; otherwise ErrChanged is the
// cause of the error. If no data is saved it does not change anything.
func (q *State) ForgetAfter(ctx context.Context, name string, revision uint64) error {
	if revision == 0 {
		return nil
	}
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	err := q.state.Purge(ctx, subjectToken(name), jetstream.LastRevision(revision))
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		err = ErrChanged
	}
	if err != nil {
		return fmt.Errorf("removing the state of %s: %w", name, err)
	}
	return nil
}

// PutArchive stores a document of low importance under a name. It returns an error if the archive is full.
func (q *State) PutArchive(ctx context.Context, name string, data []byte) error {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	if _, err := q.papers.Put(ctx, subjectToken(name), data); err != nil {
		return fmt.Errorf("storing %s in the archive: %w", name, err)
	}
	return nil
}

// GetArchive returns the document archived under a name; false if none was, or it was dropped.
func (q *State) GetArchive(ctx context.Context, name string) (data []byte, ok bool, err error) {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	entry, err := q.papers.Get(ctx, subjectToken(name))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", name, err)
	}
	return entry.Value(), true, nil
}

// DeleteArchive removes what was filed under a name.
func (q *State) DeleteArchive(ctx context.Context, name string) error {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	if err := q.papers.Purge(ctx, subjectToken(name)); err != nil {
		return fmt.Errorf("removing %s: %w", name, err)
	}
	return nil
}
