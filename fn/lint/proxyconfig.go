// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/fn/istio/release"
)

// checkProxyConfigFields reports the warnings from reading the annotation. One that cannot be read at all is
// covered by the rule on values.
func checkProxyConfigFields(p *pod) []finding {
	const key = "proxy.istio.io/config"
	text, ok := p.annotations[key]
	if !ok {
		return nil
	}
	of := release.Newest(release.NewestMinor)
	if plane, ok := parseVersion(p.in.Facts.IstioVersion); ok && plane.major == 1 {
		of = plane.newestKnownRelease()
	}
	_, warnings, err := mesh.ApplyProxyConfig(text, mesh.DefaultProxyConfig(of))
	if err != nil {
		return nil
	}
	var out []finding
	for _, warning := range warnings {
		out = append(out, finding{path: annotationPath(key), message: fmt.Sprintf("annotation %s: %s", key, warning)})
	}
	return out
}
