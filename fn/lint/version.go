// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// versionNumber is a version of Istio or Kubernetes; patch is -1 where the text has none.
type versionNumber struct{ major, minor, patch int }

var versionText = lazyregexp.New(`^v?(\d{1,3})\.(\d{1,4})(?:\.(\d{1,4}))?(?:$|[.\-+])`)

// parseVersion reads "1.31", "v1.34.2" or "1.31-alpha.1f2e".
func parseVersion(s string) (versionNumber, bool) {
	m := versionText.FindStringSubmatch(s)
	if m == nil {
		return versionNumber{}, false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	patch, err := strconv.Atoi(m[3])
	if err != nil {
		patch = -1
	}
	return versionNumber{major, minor, patch}, true
}

// newestKnownRelease returns the release of Istio 1 of that number, the newest of its minor where the patch is not
// known.
func (v versionNumber) newestKnownRelease() release.Release {
	if v.patch < 0 {
		return release.Newest(v.minor)
	}
	return release.Release{Minor: v.minor, Patch: v.patch}
}

// isBeforeMinor reports whether the version is before 1.minor.
func (v versionNumber) isBeforeMinor(minor int) bool {
	return v.major < 1 || v.major == 1 && v.minor < minor
}

func (v versionNumber) String() string { return strconv.Itoa(v.major) + "." + strconv.Itoa(v.minor) }

// MayBeControlPlane reports whether an object may be an istiod, by its kind and name alone.
func MayBeControlPlane(kind, name string) bool {
	return kind == "Deployment" && strings.HasPrefix(name, "istiod")
}

// ControlPlane returns the version of the istiod that a Deployment runs, according to its image; false if it is not
// an istiod, or its image is a custom one with another name.
func ControlPlane(obj map[string]any) (version string, ok bool) {
	for _, c := range containersOf(podmap.MapAt(obj, "spec", "template", "spec"), "containers", false) {
		image := textOf(c.fields["image"])
		tag := imageTag(image)
		name, _, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
		if _, isVersion := parseVersion(tag); name == "pilot" && isVersion {
			return tag, true
		}
	}
	return "", false
}
