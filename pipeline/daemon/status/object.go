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

// keepRemovedUIDs is how many of them are kept, the newest. A process that cannot read the cluster takes them for pipelines.
const keepRemovedUIDs = 4096

// removedUIDs is what was decoded last of them.
type removedUIDs struct {
	revision uint64
	uids     map[string]bool
}

// doubts reports whether a registration says that an object, as a process knows it, is not what there is now, or may not be: somebody was
// seen to delete it, there was a newer version of it, or another object. Pipelines of files are no objects.
func (r Registration) doubts(object queue.ObjectVersion) bool {
	return object.UID != "" && (r.Removal != nil && r.Removal.Deleted || r.Object.UID != "" && r.Object != object && !r.Object.IsOlder(object))
}

// IsDoubted reports whether another process has seen that a pipeline's object is not, or may not be, as this process knows it. To publish
// it could bring back an old definition, or a pipeline that somebody has deleted: the API server is to be asked first.
func (s *Store) IsDoubted(pipeline string, object queue.ObjectVersion) bool {
	r, _ := s.Registration(pipeline)
	return r.doubts(object) || object.UID != "" && r.Object.UID == "" && s.isRemoved(object.UID)
}

// TakeObject has a registration be about an object, and reports whether it is now. One that is doubted is taken only where the API server
// was asked.
func (r *Registration) TakeObject(object queue.ObjectVersion, confirmed bool) bool {
	if !confirmed && r.doubts(object) {
		return false
	}
	r.Object = object
	return true
}

// isRemoved reports whether the pipeline of an object was removed.
func (s *Store) isRemoved(uid string) bool {
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
func (s *Store) AddRemovedUID(ctx context.Context, uid string) error {
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
