// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"slices"
	"testing"
)

// TestMovesThereAndBackAreToldApart asks of each provider of Git events how a branch that moves there, back, and there again is told from
// a repetition, where the sender names no delivery: the second move there would be dropped.
func TestMovesThereAndBackAreToldApart(t *testing.T) {
	named := map[Provider]string{ // by what is in the body
		AzureDevOps: "id and createdDate",
		Flux:        "metadata and timestamp",
	}
	for name, d := range deliveries {
		sender := senders[d.provider]
		ofGit := slices.ContainsFunc(d.want, func(c Change) bool { return c.Git != nil })
		if ofGit && !sender.moves && !sender.repeats && sender.id == nil && named[d.provider] == "" {
			t.Errorf("%s: nothing tells the moves of %s apart: set moves, or say here what in the body does", name, d.provider)
		}
	}
}
