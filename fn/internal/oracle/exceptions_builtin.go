// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// The exceptions for the built-in policy, which docs/limits.md lists.
var (
	quoted = exception{
		"quoted annotations", "the built-in policy quotes annotations that the chart prints without quotes, so that a value that is not plain text stays one value",
		func(*Case, Difference) bool { return false },
	}
	bootstrapScript = exception{
		"script of grpc-simple", "the built-in policy writes the bootstrap file of gRPC with a script of its own",
		func(_ *Case, d Difference) bool {
			return d.Place == "spec.initContainers.[grpc-bootstrap-init].command.[2]"
		},
	}
)

// printedAsTheyAre are the annotations that charts before the fix of August 2026 print without quotes or escapes.
var printedAsTheyAre = []string{
	"sidecar.istio.io/proxyImage", "sidecar.istio.io/bootstrapOverride", "sidecar.istio.io/logLevel",
	"sidecar.istio.io/componentLogLevel", "sidecar.istio.io/agentLogLevel",
}

// exceptBuiltIn accepts the differences that the built-in policy has on purpose.
func (k *Case) exceptBuiltIn() {
	switch {
	case k.Result != Different:
	case k.hasUnquoted():
		k.Result, k.Exceptions = Excepted, []string{quoted.name}
	case len(k.Differences) > 0 && !slices.ContainsFunc(k.Differences, func(d Difference) bool { return !bootstrapScript.explains(k, d) }):
		k.Result, k.Exceptions = Excepted, []string{bootstrapScript.name}
	}
}

// hasUnquoted reports whether the pod has one of the unquoted annotations with a value that is not plain text to YAML.
func (k *Case) hasUnquoted() bool {
	meta, _ := templateOf(k.Workload)["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	return slices.ContainsFunc(printedAsTheyAre, func(name string) bool {
		text, ok := annotations[name].(string)
		var read any
		err := yaml.Unmarshal([]byte("a"+text), &read)
		var alone any
		return ok && (err != nil || read != "a"+text || strings.Contains(text, `"`) || yaml.Unmarshal([]byte(text), &alone) != nil || alone != text && text != "")
	})
}
