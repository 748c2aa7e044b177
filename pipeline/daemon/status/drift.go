// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// Bounds of repairs: another writer would be fought for ever otherwise.
const (
	// MaxRepairs is how often what others change is put back before it is left to people.
	MaxRepairs = 5
	// firstRepairWait is the least time between the first two repairs. It is four times as long with each further one.
	firstRepairWait = 10 * time.Second
	// RepairsForgotten is after how long without a repair it counts from the beginning.
	RepairsForgotten = 6 * time.Hour
)

// Drift is what is known of changes by others to what a pipeline has published.
type Drift struct {
	// Found describes the current changes, "" for none.
	Found string `json:"found,omitempty"`
	// Repairs is how often it was put back lately, the last time at Repaired.
	Repairs  int       `json:"repairs,omitempty"`
	Repaired time.Time `json:"repaired,omitzero"`
}

// DriftFound returns the known changes by others, or "" for none.
func (s *State) DriftFound() string {
	if s.Drift == nil {
		return ""
	}
	return s.Drift.Found
}

// sinceRepair is how long ago the last repair was. One in the future was made before the clock was set back.
func (d *Drift) sinceRepair(now time.Time) time.Duration { return now.Sub(d.Repaired).Abs() }

// Repairs returns how often lately what others changed was put back.
func (s *State) Repairs(now time.Time) int {
	if s.Drift == nil || s.Drift.sinceRepair(now) > RepairsForgotten {
		return 0
	}
	return s.Drift.Repairs
}

// RepairDue reports whether what others have changed is to be put back now, where the pipeline wants that.
func (s *State) RepairDue(now time.Time) bool {
	repairs := s.Repairs(now)
	switch {
	case repairs == 0:
		return true
	case repairs >= MaxRepairs:
		return false
	}
	return s.Drift.sinceRepair(now) >= firstRepairWait<<(2*(repairs-1))
}

// NoteDrift notes what others have changed, and shows message.
func (s *State) NoteDrift(now time.Time, found, message string) {
	next := Drift{Found: found}
	if s.Drift != nil {
		next.Repairs, next.Repaired = s.Drift.Repairs, s.Drift.Repaired
	}
	s.Drift = &next
	s.Ready(now, false, v1alpha1.ReasonDrifted, message, true)
}

// NotePublished records that all output was published again, as a repair or for another reason.
func (s *State) NotePublished(now time.Time, repair bool) {
	next := Drift{}
	if s.Drift != nil {
		next = *s.Drift
	}
	next.Found = ""
	if repair {
		next.Repairs, next.Repaired = s.Repairs(now)+1, now.UTC()
	}
	if s.Drift != nil || repair {
		s.Drift = &next
	}
}

// ForgetRepairs restarts the count of repairs, because one was requested.
func (s *State) ForgetRepairs() { s.Drift = nil }

// IsDrifted reports whether the status records changes by others to the published output.
func (s *State) IsDrifted() bool {
	c := s.Condition()
	return c != nil && c.Reason == v1alpha1.ReasonDrifted
}
