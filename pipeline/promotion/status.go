// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
)

// States of a StageStatus.
const (
	// StageIdle means that no result waits to be merged.
	StageIdle = "Idle"
	// StageWaiting has something, and it is not its turn.
	StageWaiting = "Waiting"
	// StageOpen has a pull request that waits, for people or for what its message describes.
	StageOpen = "Open"
	// StageVerifying is merged, and waits for the statuses of what was merged.
	StageVerifying = "Verifying"
	// StageDone is merged and green.
	StageDone = "Done"
	// StageStopped does not continue, because a check is red or a person has stopped it.
	StageStopped = "Stopped"
	// StageHeld has pipelines that a person has put on hold.
	StageHeld = "Held"
	// StageRollingBack has pipelines whose last publish is being taken back, and StageRolledBack only pipelines whose
	// last publish was taken back.
	StageRollingBack = "RollingBack"
	StageRolledBack  = "RolledBack"
	// StageFailed is merged, and one of its pipelines fails since.
	StageFailed = "Failed"
)

// StageStatus is the state of a group of results. For a wave in which the reader may know of no pipeline, it has
// only name, head, state and since.
type StageStatus struct {
	// Name is the value of the label, or otherwise what the group consists of; Head is its branch.
	Name string `json:"name"`
	Head string `json:"head"`
	// State is Idle, Waiting, Open, Verifying, Done, Stopped, Held, RollingBack, RolledBack or Failed, since Since;
	// Message describes what it waits for.
	State   string    `json:"state"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Until is when what it waits for is over, zero where only others know.
	Until time.Time `json:"until,omitzero"`
	// Number and URL are those of the open pull request, or otherwise of the last merged one; a stage that waits for
	// its turn has none.
	Number int64  `json:"number,omitempty"`
	URL    string `json:"url,omitempty"`
	// Pipelines are how many results it is of, Waits how many of them wait, OnHold how many are on hold.
	Pipelines int `json:"pipelines"`
	Waits     int `json:"waits,omitempty"`
	OnHold    int `json:"onHold,omitempty"`
	// Istio are the versions of Istio that are merged, Next those that wait, the newest first.
	Istio []string `json:"istio,omitempty"`
	Next  []string `json:"next,omitempty"`
}

// Remaining describes how long it still waits, such as "20 s more", or returns "" where only others know.
func (s StageStatus) Remaining(now time.Time) string {
	left := s.Until.Sub(now)
	if s.Until.IsZero() || left <= 0 {
		return ""
	}
	return status.ShortDuration(left.Round(time.Second)) + " more"
}
