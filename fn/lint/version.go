// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"regexp"
	"strconv"
)

// version is a minor version. Patches do not matter to any rule.
type version struct{ major, minor int }

var versionText = regexp.MustCompile(`^v?(\d{1,3})\.(\d{1,4})(?:$|[.\-+])`)

// parseVersion reads "1.31", "v1.34.2" or "1.31-alpha.1f2e".
func parseVersion(s string) (version, bool) {
	m := versionText.FindStringSubmatch(s)
	if m == nil {
		return version{}, false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return version{major, minor}, true
}

func (v version) before(major, minor int) bool {
	return v.major < major || v.major == major && v.minor < minor
}

func (v version) String() string { return strconv.Itoa(v.major) + "." + strconv.Itoa(v.minor) }
