// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/result"
)

var holdRules = []Rule{
	{
		Code: "PR211", Title: "holdApplicationUntilProxyStarts has no effect", Severity: result.Info, Audience: Applications,
		Why: "The proxy is a native sidecar. Istio's template leaves out the postStart hook that the setting asks for, as the kubelet starts the application only " +
			"after the startup probe of the proxy has succeeded.",
		Change: "Remove the setting. If the proxy has no startup probe, enable it (values.global.proxy.startupProbe.enabled); PR203 reports that.",
		Issues: []string{"59690"},
		check:  checkIgnoredHold,
	},
}

const configAnnotation = "proxy.istio.io/config"

// checkIgnoredHold reads the pod's annotation only: a setting of the mesh is meant for other pods as well.
func checkIgnoredHold(p *pod) []finding {
	if !p.native() || p.proxy.lifecycleHook("postStart").exists {
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
