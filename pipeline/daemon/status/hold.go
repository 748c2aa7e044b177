// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// Hold says that state was lost, so that nobody knows which pipelines people had suspended. All are suspended until somebody says
// what holds.
type Hold struct {
	// ID tells one loss from another.
	ID string `json:"id"`
	// Since is when it was found.
	Since time.Time `json:"since"`
}

// HeldMessage says why a pipeline is held, and what to do.
const HeldMessage = "files of the daemon's state were damaged, so that it is not known whether this pipeline was suspended: " +
	"it stays suspended until prerig resume, or prerig resume --held for all of them"

// Hold returns what holds pipelines back, false where nothing does.
func (s *Store) Hold() (Hold, bool) {
	data, _, ok := s.table.Get(queue.HoldName)
	if !ok {
		return Hold{}, false
	}
	var h Hold
	if err := json.Unmarshal(data, &h); err != nil {
		return Hold{}, true
	}
	return h, true
}

// ReleaseHold lets the pipelines run that were not suspended since.
func (s *Store) ReleaseHold(ctx context.Context) error { return s.q.Forget(ctx, queue.HoldName) }

// Confirm notes that what a control says was said after the loss of state that there was, if any.
func (s *Store) Confirm(c *Control) {
	if hold, ok := s.Hold(); ok {
		c.Confirmed = hold.ID
	}
}

// applyHold suspends a pipeline that is on hold, and one of which nobody has said anything since state was lost.
func (s *Store) applyHold(c Control) Control {
	if hold, ok := s.Hold(); ok && (hold.ID == "" || c.Confirmed != hold.ID) {
		c.Suspended, c.Held = true, true
	}
	if c.OnHold != nil {
		c.Suspended = true
	}
	return c
}
