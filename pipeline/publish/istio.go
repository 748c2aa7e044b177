// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"strconv"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/render"
)

// proxyImage is an image of Istio's proxy with a version in its tag, fullVersion the version in such a tag.
var (
	proxyImage  = lazyregexp.New(`/proxyv2(?:-[a-z0-9]+)*:v?1\.(\d{1,4})[.\-@"'\s]`)
	fullVersion = lazyregexp.New(`/proxyv2(?:-[a-z0-9]+)*:v?(1\.\d{1,4}(?:\.\d{1,4})?(?:-(?:alpha|beta|rc)\.\d{1,4})?)[.\-@"'\s]`)
)

// IstioVersion returns the version of the first proxy of Istio in an object, such as 1.31.1; "" for none, or where the
// tag of its image is no version.
func IstioVersion(object render.Object) string {
	if found := fullVersion.FindAllSubmatch(object.YAML, 1); found != nil {
		return string(found[0][1])
	}
	return ""
}

// IstioVersions returns which minor versions of Istio's proxy objects have, such as 1.26 or 1.26-1.27; "" for none.
// Images without a version in their tag are not known.
func IstioVersions(objects []render.Object) string {
	oldest, newest := 0, 0
	for _, o := range objects {
		for _, found := range proxyImage.FindAllSubmatch(o.YAML, -1) {
			minor, err := strconv.Atoi(string(found[1]))
			if err != nil || minor == 0 {
				continue
			}
			if oldest == 0 || minor < oldest {
				oldest = minor
			}
			newest = max(newest, minor)
		}
	}
	switch {
	case newest == 0:
		return ""
	case oldest == newest:
		return fmt.Sprintf("1.%d", oldest)
	}
	return fmt.Sprintf("1.%d-1.%d", oldest, newest)
}
