// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import "time"

// States of a StageStatus.
const (
	// StageIdle has nothing to merge.
	StageIdle = "Idle"
	// StageWaiting has something, and it is not its turn.
	StageWaiting = "Waiting"
	// StageOpen has a pull request that waits, for people or for what its message says.
	StageOpen = "Open"
	// StageVerifying is merged, and waits for the statuses of what was merged.
	StageVerifying = "Verifying"
	// StageDone is merged and green.
	StageDone = "Done"
	// StageStopped goes no further, as something is red or a person has said so.
	StageStopped = "Stopped"
)

// StageStatus is where a group of results stands. Of a wave in which somebody may know of no pipeline, it has only name, head, state and since.
type StageStatus struct {
	// Name is the value of the label, or what else the group is of; Head is its branch.
	Name string `json:"name"`
	Head string `json:"head"`
	// State is Idle, Waiting, Open, Verifying, Done or Stopped, since Since; Message says what it waits for.
	State   string    `json:"state"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Number and URL are those of the pull request that is open, or else of the last one that was merged.
	Number int64  `json:"number,omitempty"`
	URL    string `json:"url,omitempty"`
	// Pipelines are how many results it is of, Waits how many of them wait, OnHold how many are on hold.
	Pipelines int `json:"pipelines"`
	Waits     int `json:"waits,omitempty"`
	OnHold    int `json:"onHold,omitempty"`
}
