// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/workload"
)

// skips says why istioctl kube-inject of the version leaves a pod alone, or "" if it does not. It knows no namespace labels
// and takes the policy to be enabled.
func skips(in *istio.Injector, t workload.Template) string {
	spec, _ := t.Pod["spec"].(map[string]any)
	if host, _ := spec["hostNetwork"].(bool); host {
		return "the pod uses the host network"
	}
	if slices.Contains(in.Profile().IgnoredNamespaces(), t.Declared.Namespace) {
		return "the namespace is ignored"
	}
	meta, _ := t.Pod["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	value, _ := annotations["sidecar.istio.io/inject"].(string)
	if label, ok := labels["sidecar.istio.io/inject"].(string); ok && in.Profile().Has(istio.InjectLabel) {
		value = label
	}
	if in.Profile().Has(istio.InjectStrictValues) {
		if value == "false" {
			return "sidecar.istio.io/inject is false"
		}
		return ""
	}
	switch strings.ToLower(value) {
	case "", "y", "yes", "true", "on":
		return ""
	default:
		return "sidecar.istio.io/inject is " + value
	}
}
