// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/prerig/prerig/fn/podmap"
)

// probeRestorer restores the probes of a pod that the agent of the injected proxy answers.
type probeRestorer struct {
	pod   *pod
	proxy injectedProxy
	*removalNotes
	bare bool
}

// restoreProbes puts the application's own probes back in place of those that the agent answers.
func (r *probeRestorer) restoreProbes() {
	probers, readable := r.proxy.originalProbers()
	for _, key := range []string{containersKey, initContainersKey} {
		for _, e := range r.pod.specListMaps(key) {
			c, _ := e.(map[string]any)
			name, _ := c["name"].(string)
			for _, k := range checks {
				probe := k.probeOfContainer(c)
				action, _ := probe["httpGet"].(map[string]any)
				path, own := httpPath(probe), fmt.Sprintf(k.path, name)
				renamed := path != own && k.isAgentProbe(path) && fmt.Sprint(action["port"]) == ownStatusPort(r.pod)
				if path != own && !renamed {
					continue
				}
				field := k.containerFieldPath(key, name)
				if !readable {
					r.recordUnknownValue(field+".httpGet", "it still points to the agent: "+probersEnv+" of the proxy, which would tell what it was, cannot be read; set path and port again")
					continue
				}
				if renamed && probers[path] != nil {
					r.recordAssumption(field+".httpGet", "the agent answers it for a container of another name, which this one had or was copied from")
				}
				r.restoreProbe(field, c, probe, action, probers[path])
			}
		}
	}
}

// restoreProbe restores one probe. c is the container that has it.
func (r *probeRestorer) restoreProbe(field string, c, probe, action, own map[string]any) {
	for _, kind := range []string{"tcpSocket", "grpc"} {
		if a, ok := own[kind].(map[string]any); ok {
			delete(probe, "httpGet")
			// A service that is not set is empty for the webhook, and null for istioctl kube-inject.
			if a["service"] == "" {
				r.recordAssumption(field+".grpc.service", "it was either empty or not written, which means the same")
			}
			maps.DeleteFunc(a, func(key string, v any) bool { return v == nil || key == "service" && v == "" })
			probe[kind] = a
			if kind == "tcpSocket" {
				r.restoreNamedPort(field+".tcpSocket", c, a)
			}
			return
		}
	}
	get, ok := own["httpGet"].(map[string]any)
	if !ok {
		r.recordUnknownValue(field+".httpGet", "it still points to the agent: its port was a name that the container does not have, so injection kept nothing of it; set path and port again")
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
		r.recordAssumption(field+".httpGet.path", "it was either / or not written, which means the same")
		if r.bare && defaulted {
			delete(action, "path")
		}
	}
	r.restoreNamedPort(field+".httpGet", c, action)
}

// restoreNamedPort replaces a port number by the name that the container has for it, if it has one and the pod is not a
// bare Pod: the agent only knows the number. Both mean the same.
func (r *probeRestorer) restoreNamedPort(field string, c, action map[string]any) {
	ports, _ := c["ports"].([]any)
	for _, e := range ports {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		if name == "" || m["containerPort"] != action["port"] {
			continue
		}
		if r.bare {
			r.recordAssumption(field+".port", fmt.Sprintf("it was either %v, which was taken, or the name %q of the same port", action["port"], name))
			return
		}
		r.recordAssumption(field+".port", fmt.Sprintf("it was either %v or the name %q of the same port, which was taken", action["port"], name))
		action["port"] = name
		return
	}
	r.noteFormerPort(field, c, action)
}

// podPortsEnv is a variable of the proxy that has the ports of the pod's containers as they were.
const podPortsEnv = "ISTIO_META_POD_PORTS"

// noteFormerPort replaces a port number by the name it had when the pod was injected, if no container has this
// number any more and this one still has a port of that name: its number was changed since.
func (r *probeRestorer) noteFormerPort(field string, c, action map[string]any) {
	var former []struct {
		Name          string `json:"name"`
		ContainerPort int64  `json:"containerPort"`
	}
	if err := json.Unmarshal([]byte(r.proxy.env[podPortsEnv]), &former); err != nil || hasPort(r.pod, action["port"]) {
		return
	}
	lost := ""
	for _, p := range former {
		if p.Name == "" || any(p.ContainerPort) != action["port"] {
			continue
		}
		if now, ok := portNamed(c, p.Name); ok {
			r.recordAssumption(field+".port", fmt.Sprintf("it was %d or the name %q, which was taken: the port has the number %d now", p.ContainerPort, p.Name, now))
			action["port"] = p.Name
			return
		}
		lost = p.Name
	}
	if lost != "" {
		r.recordUnknowableValue(field+".port", fmt.Sprintf("%v stays; it may have been the name %q, which no port of the container has any more", action["port"], lost))
	}
}

// hasPort reports whether a container of the pod has a port of a number.
func hasPort(p *pod, number any) bool {
	for _, key := range []string{containersKey, initContainersKey} {
		for _, e := range p.specListMaps(key) {
			c, _ := e.(map[string]any)
			ports, _ := c["ports"].([]any)
			if podmap.FindBy(ports, "containerPort", number) != nil {
				return true
			}
		}
	}
	return false
}
