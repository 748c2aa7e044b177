// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/podmap"
)

const (
	probersEnv              = "ISTIO_KUBE_APP_PROBERS"
	rewriteProbesAnnotation = "sidecar.istio.io/rewriteAppHTTPProbers"
	statusPortAnnotation    = "status.sidecar.istio.io/port"
)

// prober is what the agent does in place of the kubelet.
type prober struct {
	HTTPGet        *corev1.HTTPGetAction   `json:"httpGet,omitempty"`
	TCPSocket      *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
	GRPC           *corev1.GRPCAction      `json:"grpc,omitempty"`
	TimeoutSeconds int32                   `json:"timeoutSeconds,omitempty"`
}

// check is a field of a container that the kubelet calls, and the path under which the agent answers for it.
type check struct {
	parent, field, path string
	feature             feature.Name
}

// checks are all of them in order; %s is the container's name.
var checks = []check{
	{"", "readinessProbe", "/app-health/%s/readyz", feature.ProbeRewrite},
	{"", "livenessProbe", "/app-health/%s/livez", feature.ProbeRewrite},
	{"", "startupProbe", "/app-health/%s/startupz", feature.ProberStartup},
	{"lifecycle", "preStop", "/app-lifecycle/%s/prestopz", feature.ProberLifecycle},
	{"lifecycle", "postStart", "/app-lifecycle/%s/poststartz", feature.ProberLifecycle},
}

// rewriteProbes makes the agent answer the kubelet's probes of the application, which cannot speak mutual TLS.
func (r *run) rewriteProbes() error {
	proxy := r.injectedProxyContainer()
	if proxy == nil || !r.wantsRewrite() {
		return nil
	}
	port := int64(r.in.Mesh().GetDefaultConfig().GetStatusPort())
	probers := map[string]prober{}
	targets := r.containersWithProbes()
	for _, c := range targets {
		if err := r.collectContainerProbers(c, port, probers); err != nil {
			return err
		}
	}
	if len(probers) > 0 || !r.profile.Has(feature.ProberOmitEmpty) {
		if err := r.setProbers(proxy, probers); err != nil {
			return err
		}
	}
	if text, ok := r.pod.annotation(statusPortAnnotation); ok {
		own, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return &podmap.FieldError{Field: "metadata.annotations[" + statusPortAnnotation + "]", Err: err}
		}
		port = own
	}
	for _, c := range targets {
		r.rewriteContainerProbes(c, port)
	}
	return nil
}

// wantsRewrite returns the setting of the pod's annotation, or that of the values if the pod has none.
func (r *run) wantsRewrite() bool {
	if text, ok := r.pod.annotation(rewriteProbesAnnotation); ok && r.profile.Has(feature.ProbeRewriteAnnotation) {
		if want, err := strconv.ParseBool(text); err == nil {
			return want
		}
	}
	return r.in.Values().Bool("sidecarInjectorWebhook", "rewriteAppHTTPProbe")
}

// containersWithProbes returns the containers whose probes are rewritten.
func (r *run) containersWithProbes() []map[string]any {
	var out []map[string]any
	add := func(list []any) {
		for _, e := range list {
			if c, _ := e.(map[string]any); c["name"] != proxyContainer {
				out = append(out, c)
			}
		}
	}
	if r.profile.Has(feature.ProberInitContainers) {
		add(r.pod.specListMaps(initContainersKey))
	}
	add(r.pod.specListMaps(containersKey))
	return out
}

// forEachRewrittenProbe calls do with every check of the container that the version rewrites: the map that holds it,
// and the agent's path.
func (r *run) forEachRewrittenProbe(c map[string]any, do func(holder map[string]any, k check, path string) error) error {
	name, _ := c["name"].(string)
	for _, k := range checks {
		if !r.profile.Has(k.feature) {
			continue
		}
		holder := c
		if k.parent != "" {
			holder, _ = c[k.parent].(map[string]any)
		}
		if _, ok := holder[k.field].(map[string]any); !ok {
			continue
		}
		if err := do(holder, k, fmt.Sprintf(k.path, name)); err != nil {
			return err
		}
	}
	return nil
}

// collectContainerProbers adds the probers of a container, with the container's named ports as numbers. A name that the
// container does not have is left out, although its probe is rewritten all the same. What an earlier injection rewrote
// is known by its path, and by the agent's port.
func (r *run) collectContainerProbers(c map[string]any, statusPort int64, probers map[string]prober) error {
	_, before := r.pod.annotation(statusAnnotation)
	return r.forEachRewrittenProbe(c, func(holder map[string]any, k check, path string) error {
		p, err := r.readProber(holder[k.field])
		if err != nil {
			return &podmap.FieldError{Field: fmt.Sprintf("containers[%v].%s", c["name"], k.field), Err: err}
		}
		var port *intstr.IntOrString
		switch {
		case p.HTTPGet != nil && before && p.HTTPGet.Path == path:
			return nil
		case p.HTTPGet != nil:
			port = &p.HTTPGet.Port
		case p.TCPSocket != nil:
			port = &p.TCPSocket.Port
		case p.GRPC != nil:
			probers[path] = p
			return nil
		default:
			return nil
		}
		if port.Type == intstr.String {
			n, ok := portNamed(c, port.StrVal)
			if !ok {
				return nil
			}
			*port = intstr.FromInt32(n)
		} else if int64(port.IntVal) == statusPort && r.profile.Has(feature.ProberSkipRewritten) {
			return nil
		}
		probers[path] = p
		return nil
	})
}

// readProber reads a probe or a lifecycle handler. Kinds that the version does not rewrite are left out.
func (r *run) readProber(v any) (prober, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return prober{}, err
	}
	var p prober
	if err := json.Unmarshal(text, &p); err != nil {
		return prober{}, err
	}
	switch {
	case p.HTTPGet != nil:
		p.TCPSocket, p.GRPC = nil, nil
	case p.TCPSocket != nil && r.in.RewritesTCPProbes():
		p.GRPC = nil
	case p.GRPC != nil && p.TCPSocket == nil && r.profile.Has(feature.ProberGRPC):
	default:
		return prober{}, nil
	}
	return p, nil
}

// portNamed is the number of one of the container's own ports.
func portNamed(c map[string]any, name string) (int32, bool) {
	ports, _ := c["ports"].([]any)
	for i := len(ports) - 1; i >= 0; i-- {
		m, _ := ports[i].(map[string]any)
		if n, ok := m["containerPort"].(int64); ok && name != "" && m["name"] == name {
			return int32(n), true
		}
	}
	return 0, false
}

// setProbers passes the probers to the agent. After an earlier injection the probers that it left are kept.
func (r *run) setProbers(proxy map[string]any, probers map[string]prober) error {
	if _, before := r.pod.annotation(statusAnnotation); before && r.profile.Has(feature.ProberMerge) {
		env, _ := proxy["env"].([]any)
		e := podmap.Find(env, probersEnv)
		if e == nil && !r.profile.Has(feature.ProberMergeAppends) {
			return nil
		}
		if e != nil {
			var existing map[string]prober
			text, _ := e["value"].(string)
			if err := json.Unmarshal([]byte(text), &existing); err != nil {
				r.warnings = append(r.warnings, fmt.Sprintf("%s of the injected proxy cannot be read and stays as it is: %v", probersEnv, err))
				return nil
			}
			maps.Copy(probers, existing)
			out, err := marshalProbers(probers)
			if err == nil {
				e["value"] = out
			}
			return err
		}
	}
	text, err := marshalProbers(probers)
	if err == nil {
		addEnv(proxy, probersEnv, text)
	}
	return err
}

func marshalProbers(probers map[string]prober) (string, error) {
	text, err := json.Marshal(probers)
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", probersEnv, err)
	}
	return string(text), nil
}

// rewriteContainerProbes points a container's probes at the agent. The agent speaks HTTP with the kubelet, whatever it
// speaks with the application.
func (r *run) rewriteContainerProbes(c map[string]any, port int64) {
	_ = r.forEachRewrittenProbe(c, func(holder map[string]any, k check, path string) error {
		p, _ := holder[k.field].(map[string]any)
		httpGet, isHTTP := p["httpGet"].(map[string]any)
		_, isTCP := p["tcpSocket"].(map[string]any)
		_, isGRPC := p["grpc"].(map[string]any)
		switch {
		case isHTTP:
		case isTCP && r.in.RewritesTCPProbes():
			delete(p, "tcpSocket")
		case isGRPC && k.parent == "" && r.profile.Has(feature.ProberGRPC):
			delete(p, "grpc")
		default:
			return nil
		}
		if httpGet == nil {
			httpGet = map[string]any{}
			p["httpGet"] = httpGet
		}
		httpGet["port"], httpGet["path"] = port, path
		if httpGet["scheme"] == "HTTPS" {
			httpGet["scheme"] = "HTTP"
		}
		return nil
	})
}
