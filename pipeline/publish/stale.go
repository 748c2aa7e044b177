// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// Stale returns the places that a pipeline is known to have published to and does not publish to any more. Another
// path on the same branch is not stale: the next commit to the branch moves the files.
func Stale(known status.Registration, now []v1alpha1.Publish) []v1alpha1.Publish {
	var out []v1alpha1.Publish
	for _, to := range slices.Concat(known.Left, known.Publish) {
		if to.Removable() && !slices.ContainsFunc(now, to.SamePlace) && !slices.ContainsFunc(out, to.SamePlace) {
			out = append(out, to)
		}
	}
	return out
}
