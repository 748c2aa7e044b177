// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// note is why a cluster does not have what a pipeline rendered last; the zero value is for one that has it.
type note struct {
	text string
	// class is that of its colour.
	class string
	// isPending reports whether the cluster may still get it.
	isPending bool
}

// noteOf returns the note about the workloads of a pipeline.
func noteOf(state *status.State, control status.Control) note {
	hold := control.OnHold
	switch {
	case hold != nil && hold.Rollback != "" && !state.WaitsForMerge():
		return note{text: "rolled back", class: "held"}
	case hold != nil:
		return note{text: "on hold", class: "held", isPending: true}
	}
	for _, p := range state.Status.Published {
		if p.PullRequest == nil {
			continue
		}
		switch p.PullRequest.State {
		case v1alpha1.PullRequestWaiting:
			return note{text: "waits for its wave", class: "waiting", isPending: true}
		case v1alpha1.PullRequestClosed:
			return note{text: "declined", class: "stopped"}
		}
		return note{text: "in review", class: "open", isPending: true}
	}
	condition := state.Condition()
	switch {
	case condition == nil || condition.Status == "True":
		return note{}
	case state.IsDrifted():
		return note{text: "changed by hand", class: "drifted"}
	case condition.Reason == v1alpha1.ReasonBuildFailed:
		return note{text: "build failed", class: "failing"}
	case condition.Reason == v1alpha1.ReasonGateClosed:
		return note{text: "rejected by a gate", class: "failing", isPending: true}
	case condition.Reason == v1alpha1.ReasonPublishFailed:
		return note{text: "publish failed", class: "failing", isPending: true}
	}
	return note{}
}
