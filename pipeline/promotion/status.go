// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import "time"

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
)

// StageStatus is the state of a group of results. For a wave in which the reader may know of no pipeline, it has
// only name, head, state and since.
type StageStatus struct {
	// Name is the value of the label, or otherwise what the group consists of; Head is its branch.
	Name string `json:"name"`
	Head string `json:"head"`
	// State is Idle, Waiting, Open, Verifying, Done or Stopped, since Since; Message describes what it waits for.
	State   string    `json:"state"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Until is when what it waits for is over, zero where only others know.
	Until time.Time `json:"until,omitzero"`
	// Number and URL are those of the open pull request, or otherwise of the last merged one.
	Number int64  `json:"number,omitempty"`
	URL    string `json:"url,omitempty"`
	// Pipelines are how many results it is of, Waits how many of them wait, OnHold how many are on hold.
	Pipelines int `json:"pipelines"`
	Waits     int `json:"waits,omitempty"`
	OnHold    int `json:"onHold,omitempty"`
}
