// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pulltest

import (
	"slices"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// Requests returns all pull requests, oldest first.
func (h *Host) Requests() []pullrequest.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]pullrequest.Request, len(h.requests))
	for i := range h.requests {
		out[i] = *h.requestAsAnswered(&h.requests[i])
	}
	return out
}

// Comments returns the comments of a pull request, oldest first.
func (h *Host) Comments(number int64) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.comments[number])
}

// Calls returns how often a call was made, and came through Before.
func (h *Host) Calls(call string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[call]
}

// Written returns how often something was changed.
func (h *Host) Written() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.written
}

// MergedByPerson is a person's merge: commit is what became of it, "" for the head.
func (h *Host) MergedByPerson(number int64, commit string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &h.requests[number-1]
	h.closeWithState(r, pullrequest.StateMerged)
	r.MergeCommit = commit
	if commit == "" {
		r.MergeCommit = r.HeadCommit
	}
}

// ClosedByPerson is a person's close.
func (h *Host) ClosedByPerson(number int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closeWithState(&h.requests[number-1], pullrequest.StateClosed)
}

// Edit simulates a person's edit of a pull request.
func (h *Host) Edit(number int64, change func(r *pullrequest.Request)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &h.requests[number-1]
	change(r)
	r.UpdatedAt = h.nextTimestamp()
}
