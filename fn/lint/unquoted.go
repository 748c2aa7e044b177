// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// unquotedAnnotations are those that Istio's own templates print without escaping (source: files/injection-template.yaml of
// Istio 1.9 to 1.31, and the fix istio/istio#61215).
var unquotedAnnotations = []string{
	"sidecar.istio.io/agentLogLevel", "sidecar.istio.io/bootstrapOverride", "sidecar.istio.io/componentLogLevel", "sidecar.istio.io/logLevel",
	"sidecar.istio.io/proxyImage",
}

// writesYAML matches what none of their values has: what ends a YAML scalar.
var writesYAML = lazyregexp.New("[\"'\\\\\\r\\n]|:([ \\t]|$)|[ \\t]#")

// checkUnquoted finds annotations that write YAML into the pod: those that the injection found to do it, and where the injection
// is not known those of Istio whose values could.
func checkUnquoted(p *pod) []finding {
	var out []finding
	if p.in.Unquoted != nil {
		for _, name := range slices.Sorted(maps.Keys(p.in.Unquoted)) {
			fields := p.in.Unquoted[name]
			shown := strings.Join(fields[:min(len(fields), 3)], ", ")
			if len(fields) > 3 {
				shown += fmt.Sprintf(" and %d more", len(fields)-3)
			}
			out = append(out, finding{
				path: annotationPath(name), current: p.annotations[name],
				message: fmt.Sprintf("the template prints the value of %s without quotes, and it changes more of the pod than one value: %s", name, shown),
			})
		}
		return out
	}
	if len(p.injected) == 0 {
		return nil
	}
	for _, name := range unquotedAnnotations {
		if value, ok := p.annotations[name]; ok && writesYAML.MatchString(value) {
			out = append(out, finding{
				path: annotationPath(name), current: value,
				message: fmt.Sprintf("the value of %s has characters that end a YAML value: templates of Istio 1.31 and older print it as it is, so that it can add fields to the proxy", name),
			})
		}
	}
	return out
}
