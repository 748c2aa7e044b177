// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// removedPrefix begins the names of pipelines that were objects of a cluster and are removed.
const removedPrefix = "removed/"

// RemovedObject is a pipeline that was removed after its object was deleted: the process that removes the finalizer
// must know that, however many were removed with it and whichever process was stopped meanwhile.
type RemovedObject struct {
	// UID of the object, "" where it was not known.
	UID string    `json:"uid,omitempty"`
	At  time.Time `json:"at"`
	// Message describes what happened to its published output.
	Message string `json:"message"`
}

// AddRemovedObject notes that a pipeline was removed, until ForgetRemovedObject. since is that of AddRemoved.
func (s *Registrations) AddRemovedObject(ctx context.Context, pipeline string, o RemovedObject, since time.Time) error {
	return changeValue(ctx, s.records, removedPrefix+pipeline, func(old *RemovedObject) bool {
		if old.UID == o.UID && old.At.After(since) {
			return false
		}
		*old = o
		return true
	})
}

// RemovedObject returns the record of a removed pipeline, and its revision for ForgetRemovedObject; false if none
// exists.
func (s *Registrations) RemovedObject(pipeline string) (o RemovedObject, revision uint64, ok bool) {
	data, revision, ok := s.table.Get(removedPrefix + pipeline)
	if !ok {
		return RemovedObject{}, 0, false
	}
	noted, err := decodeJSON[RemovedObject](data)
	if err != nil {
		return RemovedObject{}, revision, true // of another version
	}
	return *noted, revision, true
}

// RemovedObjects lists the pipelines of which that is noted.
func (s *Registrations) RemovedObjects() []string {
	return s.namesBelow(removedPrefix)
}

// ForgetRemovedObject forgets what was noted of a pipeline, unless it was removed once more since.
func (s *Registrations) ForgetRemovedObject(ctx context.Context, pipeline string, revision uint64) error {
	err := s.q.ForgetAfter(ctx, removedPrefix+pipeline, revision)
	if errors.Is(err, queue.ErrChanged) {
		return nil
	}
	return err
}
