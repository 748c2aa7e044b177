// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"sigs.k8s.io/yaml"
)

const configAnnotation = "proxy.istio.io/config"

// checkIgnoredHold reads the pod's annotation only: a setting of the mesh is meant for other pods as well.
func checkIgnoredHold(p *pod) []finding {
	if !p.hasNativeProxy() || p.proxy.lifecycleHook("postStart").exists {
		return nil
	}
	var config struct {
		Hold bool `json:"holdApplicationUntilProxyStarts"`
	}
	if err := yaml.Unmarshal([]byte(p.annotations[configAnnotation]), &config); err != nil || !config.Hold {
		return nil
	}
	return []finding{{
		path: annotationPath(configAnnotation), container: proxyName,
		message: "holdApplicationUntilProxyStarts sets no postStart hook, because the proxy is a native sidecar: the kubelet waits for its startupProbe instead",
	}}
}
