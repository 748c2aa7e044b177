// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// removedUIDsName is where the UIDs of the objects are whose pipelines were removed.
const removedUIDsName = "catalog/removed-objects"

// keepRemovedUIDs is how many of them are kept, the newest. A process that cannot read the cluster mistakes them
// for pipelines.
const keepRemovedUIDs = 4096

// removedUIDs is what was decoded last of them.
type removedUIDs struct {
	revision uint64
	uids     map[string]bool
}

// considersObjectOutdated reports whether, according to a registration, a process's view of an object is or may be
// outdated: a deletion, a newer version, or another object was seen. Pipelines of files are not objects.
func (r Registration) considersObjectOutdated(object queue.ObjectVersion) bool {
	return object.UID != "" && (r.Removal != nil && r.Removal.Deleted || r.Object.UID != "" && r.Object != object && !r.Object.IsOlder(object))
}

// IsDoubted reports whether another process has seen that this process's view of a pipeline's object is or may be
// outdated. Publishing it could restore an old definition, or a deleted pipeline: ask the API server first.
func (s *Registrations) IsDoubted(pipeline string, object queue.ObjectVersion) bool {
	r, _ := s.Registration(pipeline)
	return r.considersObjectOutdated(object) || object.UID != "" && r.Object.UID == "" && s.isRemoved(object.UID)
}

// TakeObject has a registration be about an object, and reports whether it is now. One that is doubted is taken only where the API server
// was asked.
func (r *Registration) TakeObject(object queue.ObjectVersion, confirmed bool) bool {
	if !confirmed && r.considersObjectOutdated(object) {
		return false
	}
	r.Object = object
	return true
}

// isRemoved reports whether the pipeline of an object was removed.
func (s *Registrations) isRemoved(uid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, revision, ok := s.table.Get(removedUIDsName)
	if !ok {
		return false
	}
	if s.removed.revision != revision || s.removed.uids == nil {
		s.removed = removedUIDs{revision, map[string]bool{}}
		for _, one := range decodeUIDs(data) {
			s.removed.uids[one] = true
		}
	}
	return s.removed.uids[uid]
}

// AddRemovedUID notes that the pipeline of an object was removed. It comes before what is stored of the pipeline is forgotten.
func (s *Registrations) AddRemovedUID(ctx context.Context, uid string) error {
	if uid == "" {
		return nil
	}
	for {
		data, revision, _, err := s.q.Load(ctx, removedUIDsName)
		if err != nil {
			return err
		}
		all := []string{uid}
		for _, one := range decodeUIDs(data) {
			if one != uid && len(all) < keepRemovedUIDs {
				all = append(all, one)
			}
		}
		if data, err = encodeJSON(all); err != nil {
			return fmt.Errorf("noting the removed object %s: %w", uid, err)
		}
		if _, err = s.q.SaveAfter(ctx, removedUIDsName, data, revision); !errors.Is(err, queue.ErrChanged) {
			return err
		}
	}
}

func decodeUIDs(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	all, err := decodeJSON[[]string](data)
	if err != nil {
		return nil
	}
	return *all
}
