// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// Hold records that state was lost, so that it is unknown which pipelines people had suspended. All are suspended
// until the choice is confirmed.
type Hold struct {
	// ID distinguishes one loss from another.
	ID string `json:"id"`
	// Since is when it was found.
	Since time.Time `json:"since"`
}

// HeldMessage explains why a pipeline is held, and what to do.
const HeldMessage = "files of the daemon's state were damaged, so that it is not known whether this pipeline was suspended: " +
	"it stays suspended until prerig daemon resume, or prerig daemon resume --held for all of them"

// Hold returns the record that holds pipelines back, or false if none does.
func (s *Controls) Hold() (Hold, bool) {
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
func (s *Controls) ReleaseHold(ctx context.Context) error { return s.q.Forget(ctx, queue.HoldName) }

// Confirm records that a control was set after the last loss of state, if any.
func (s *Controls) Confirm(c *Control) {
	if hold, ok := s.Hold(); ok {
		c.Confirmed = hold.ID
	}
}

// applyHold suspends a pipeline that is on hold, and one that was not confirmed since state was lost.
func (s *Controls) applyHold(c Control) Control {
	if hold, ok := s.Hold(); ok && (hold.ID == "" || c.Confirmed != hold.ID) {
		c.Suspended, c.Held = true, true
	}
	if c.OnHold != nil {
		c.Suspended = true
	}
	return c
}
