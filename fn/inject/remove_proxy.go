// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// Variables of the proxy that have the pod's metadata as it was. Istio's own templates set that of the annotations for
// a long time (it is in those of 1.5 to 1.10 and no more in those of 1.24), unless the pod has no annotations.
const (
	metadataEnv = "ISTIO_METAJSON_ANNOTATIONS"
	labelsEnv   = "ISTIO_METAJSON_LABELS"
)

// injectedProxy is the proxy that an injection has left in a pod, and so what it knows about the pod.
type injectedProxy struct {
	// container is nil if the pod has none, and env has its variables as they were found.
	container map[string]any
	env       map[string]string
}

func readProxy(p *pod) injectedProxy {
	x := injectedProxy{container: p.findProxyContainer(true), env: map[string]string{}}
	env, _ := x.container["env"].([]any)
	for _, e := range env {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		if value, ok := m["value"].(string); ok {
			x.env[name] = value
		}
	}
	return x
}

// formerLabels returns the pod's own labels if the proxy received them, as it did from Istio's own templates up to
// 1.8.
func (x injectedProxy) formerLabels() (map[string]string, bool) { return x.stringMap(labelsEnv) }

// formerAnnotations returns the pod's own annotations if the proxy received them. appended reports whether it is of
// Istio up to 1.8.
func (x injectedProxy) formerAnnotations(appended bool) (map[string]string, bool) {
	_, written := x.env[metadataEnv]
	_, stock := x.env["JWT_POLICY"]
	_, labels := x.env[labelsEnv]
	if !written && appended && (stock || labels) {
		return nil, true // Istio's own templates of 1.2 to 1.8 write the variable unless there are no annotations
	}
	return x.stringMap(metadataEnv)
}

// stringMap reads a variable that has a map of strings as JSON.
func (x injectedProxy) stringMap(name string) (map[string]string, bool) {
	out := map[string]string{}
	if err := json.Unmarshal([]byte(strings.TrimSpace(x.env[name])), &out); err != nil {
		return nil, false
	}
	return out, true
}

// usesSDS reports whether the proxy gets its certificates from a node agent, for whose socket versions before 1.5 need
// the group.
func (x injectedProxy) usesSDS() bool {
	if x.env["SDS_ENABLED"] == "true" {
		return true
	}
	mounts, _ := x.container["volumeMounts"].([]any)
	for _, name := range podmap.Names(mounts) {
		if strings.HasPrefix(name, "sds") {
			return true
		}
	}
	return false
}

// originalProbers returns the actions of the pod's own probes by the path under which the agent answers, in one
// form for all versions: httpGet, tcpSocket or grpc. It reports false for an unreadable variable: the pod's own value
// of it overrides the injection's, whatever it is.
func (x injectedProxy) originalProbers() (map[string]map[string]any, bool) {
	text, ok := x.env[probersEnv]
	if !ok {
		return nil, true
	}
	v, err := manifest.Decode([]byte(text))
	all, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, false
	}
	out := map[string]map[string]any{}
	for path, v := range all {
		p, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		_, get := p["httpGet"]
		_, socket := p["tcpSocket"]
		_, grpc := p["grpc"]
		if !get && !socket && !grpc {
			p = map[string]any{"httpGet": p} // up to 1.4
		}
		out[path] = p
	}
	return out, true
}

// originalPrometheus returns the pod's own Prometheus settings as the proxy knows them.
func (x injectedProxy) originalPrometheus() (scrapeSettings, bool, error) {
	text, ok := x.env[prometheusEnv]
	if !ok {
		return scrapeSettings{}, false, nil
	}
	var s scrapeSettings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, false, fmt.Errorf("reading %s of the injected proxy: %w", prometheusEnv, err)
	}
	return s, true, nil
}
