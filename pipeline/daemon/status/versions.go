// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"

	"github.com/Masterminds/semver/v3"
)

// IsNewer reports whether a version of Istio is newer than another. A tag that is no version is older than all versions.
func IsNewer(a, b string) bool {
	x, errX := semver.NewVersion(a)
	y, errY := semver.NewVersion(b)
	return errX == nil && (errY != nil || x.GreaterThan(y))
}

// NewestFirst compares versions of Istio for sorting; tags that are no versions come last.
func NewestFirst(a, b string) int {
	switch {
	case IsNewer(a, b):
		return -1
	case IsNewer(b, a):
		return 1
	}
	return cmp.Compare(a, b)
}
