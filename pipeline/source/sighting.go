// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// sightings are where sources were when their servers were asked last. The zero value is ready.
type sightings struct {
	mu   sync.Mutex
	last map[string]sighting // by lookKey
}

// sighting is what a server has answered, and when it was asked.
type sighting struct {
	revision string
	at       time.Time
}

const (
	// maxSightings is the number of sightings from which those older than oldSighting are forgotten, or all if that
	// is not enough.
	maxSightings = 20_000
	oldSighting  = time.Minute
)

// keepLaterSighting keeps an answer, unless a later one is kept.
func (s *sightings) keepLaterSighting(key string, found sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]sighting{}
	}
	if found.at.Before(s.last[key].at) {
		return
	}
	if len(s.last) >= maxSightings {
		maps.DeleteFunc(s.last, func(_ string, one sighting) bool { return time.Since(one.at) > oldSighting })
	}
	if len(s.last) >= maxSightings {
		clear(s.last)
	}
	s.last[key] = found
}

// lastSightingOf returns the last answer, or the zero value if none exists.
func (s *sightings) lastSightingOf(key string) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[key]
}

// lookKey distinguishes sources for which servers may answer differently, which includes the identity of the
// client.
func lookKey(scope Scope, src v1alpha1.Source) string {
	key, err := json.Marshal([]any{scope, src})
	if err != nil {
		panic(err) // it is plain data
	}
	return string(key)
}

// Seen reports whether all sources of a pipeline were at these revisions when their servers were asked last, which is
// no longer ago than that.
func (s *Shared) Seen(scope Scope, all []v1alpha1.NamedSource, revisions Revisions, ago time.Duration) bool {
	for _, one := range all {
		last := s.seen.lastSightingOf(lookKey(scope, one.Source))
		if last.revision == "" || last.revision != revisions[one.MountPath] || time.Since(last.at) >= ago {
			return false
		}
	}
	return true
}

// HasMoved reports whether one of the sources of a pipeline was at another revision than these when its server was
// asked last, which was later than that.
func (s *Shared) HasMoved(scope Scope, all []v1alpha1.NamedSource, revisions Revisions, since time.Time) bool {
	for _, one := range all {
		last := s.seen.lastSightingOf(lookKey(scope, one.Source))
		if last.at.After(since) && last.revision != revisions[one.MountPath] {
			return true
		}
	}
	return false
}
