// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"strconv"

	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// Version is an Istio version. Only 1.x exists.
type Version struct {
	Minor int
	// Patch is -1 where only the minor is known.
	Patch int
	// Suffix is what follows the numbers, such as rc.0.
	Suffix string
}

// OldestMinor and NewestMinor are the first and last minors of Istio 1 whose behaviour the profiles describe.
const (
	OldestMinor = release.OldestMinor
	NewestMinor = release.NewestMinor
)

// versionPattern finds a version at the start of a tag: 1.31, 1.31.0, 1.31.0-rc.0, v1.20-alpha.abc, release-1.10-latest-daily.
var versionPattern = lazyregexp.New(`^(?:release-|v)?1\.(\d{1,3})(?:\.(\d{1,4}))?(?:[-+.](.+))?$`)

// ParseVersion parses a version or an image tag of Istio, such as "1.31", "1.31.0-rc.0" or "v1.20.1-distroless". It
// returns false for all other text, such as "latest", so that the caller can try another source.
func ParseVersion(s string) (Version, bool) {
	m := versionPattern.FindStringSubmatch(s)
	if m == nil {
		return Version{}, false
	}
	minor, err := strconv.Atoi(m[1])
	if err != nil {
		return Version{}, false
	}
	v := Version{Minor: minor, Patch: -1, Suffix: m[3]}
	if m[2] != "" {
		if v.Patch, err = strconv.Atoi(m[2]); err != nil {
			return Version{}, false
		}
	}
	return v, true
}

// String returns 1.MINOR, 1.MINOR.PATCH or 1.MINOR.PATCH-SUFFIX.
func (v Version) String() string {
	s := "1." + strconv.Itoa(v.Minor)
	if v.Patch >= 0 {
		s += "." + strconv.Itoa(v.Patch)
	}
	if v.Suffix != "" {
		s += "-" + v.Suffix
	}
	return s
}

// Release is the version without its suffix. Where only the minor is known, it is the newest known release of that.
func (v Version) Release() release.Release {
	if v.Patch < 0 {
		return release.Newest(v.Minor)
	}
	return release.Release{Minor: v.Minor, Patch: v.Patch}
}

// Short returns 1.MINOR.
func (v Version) Short() string { return fmt.Sprintf("1.%d", v.Minor) }
