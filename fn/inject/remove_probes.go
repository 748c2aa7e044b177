// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/prerig/prerig/fn/manifest"
)

// restoreProbes puts the application's own probes back in place of those that the agent answers.
func (r *removal) restoreProbes() {
	probers, readable := r.probers()
	for _, key := range []string{containersKey, initContainersKey} {
		for _, e := range r.pod.list(key) {
			c, _ := e.(map[string]any)
			name, _ := c["name"].(string)
			for _, k := range checks {
				holder := c
				if k.parent != "" {
					holder, _ = c[k.parent].(map[string]any)
				}
				probe, _ := holder[k.field].(map[string]any)
				action, _ := probe["httpGet"].(map[string]any)
				path := fmt.Sprintf(k.path, name)
				if action["path"] != path {
					continue
				}
				field := k.field
				if k.parent != "" {
					field = k.parent + "." + field
				}
				field = fmt.Sprintf("spec.%s[%s].%s", key, name, field)
				if !readable {
					r.cannotKnow(field+".httpGet", "it still points to the agent: "+probersEnv+" of the proxy, which would tell what it was, cannot be read; set path and port again")
					continue
				}
				r.restoreProbe(field, c, probe, action, probers[path])
			}
		}
	}
}

// probers are the actions of the pod's own probes by the path under which the agent answers, in one form for all versions:
// httpGet, tcpSocket or grpc. It reports false for a variable that nobody can read: the pod's own value of it wins over the
// injection's, whatever it is.
func (r *removal) probers() (map[string]map[string]any, bool) {
	text, ok := r.env[probersEnv]
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

// restoreProbe restores one probe. c is the container that has it.
func (r *removal) restoreProbe(field string, c, probe, action, own map[string]any) {
	for _, kind := range []string{"tcpSocket", "grpc"} {
		if a, ok := own[kind].(map[string]any); ok {
			delete(probe, "httpGet")
			// A service that is not set is empty for the webhook, and null for istioctl kube-inject.
			if a["service"] == "" {
				r.assume(field+".grpc.service", "it was either empty or not written, which means the same")
			}
			maps.DeleteFunc(a, func(key string, v any) bool { return v == nil || key == "service" && v == "" })
			probe[kind] = a
			if kind == "tcpSocket" {
				r.notePort(field+".tcpSocket", c, a)
			}
			return
		}
	}
	get, ok := own["httpGet"].(map[string]any)
	if !ok {
		r.cannotKnow(field+".httpGet", "it still points to the agent: its port was a name that the container does not have, so injection kept nothing of it; set path and port again")
		return
	}
	defaulted := false
	for _, key := range []string{"path", "port", "scheme", "host"} {
		v, ok := get[key]
		_, written := action[key]
		switch {
		case key == "scheme" && v == "HTTP" && !written: // the default, which the injection does not write
			defaulted = true
		case ok:
			action[key] = v
		default:
			delete(action, key)
		}
	}
	if action["path"] == "/" {
		r.assume(field+".httpGet.path", "it was either / or not written, which means the same")
		if r.bare && defaulted {
			delete(action, "path")
		}
	}
	r.notePort(field+".httpGet", c, action)
}

// notePort gives a port the name that the container has for it, if it has one and the pod is no bare Pod: what
// the agent knows is the number only. Both mean the same.
func (r *removal) notePort(field string, c, action map[string]any) {
	ports, _ := c["ports"].([]any)
	for _, e := range ports {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		if name == "" || m["containerPort"] != action["port"] {
			continue
		}
		if r.bare {
			r.assume(field+".port", fmt.Sprintf("it was either %v, which was taken, or the name %q of the same port", action["port"], name))
			return
		}
		r.assume(field+".port", fmt.Sprintf("it was either %v or the name %q of the same port, which was taken", action["port"], name))
		action["port"] = name
		return
	}
}

// prometheus returns the pod's own Prometheus settings as the proxy knows them.
func (r *removal) prometheus() (scrapeSettings, bool, error) {
	text, ok := r.env[prometheusEnv]
	if !ok {
		return scrapeSettings{}, false, nil
	}
	var s scrapeSettings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, false, fmt.Errorf("reading %s of the injected proxy: %w", prometheusEnv, err)
	}
	return s, true, nil
}
