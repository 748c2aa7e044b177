// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/prerig/prerig/fn/istio"
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
func rewriteProbes(in *istio.Injector, p *pod, warn *warnings) error {
	proxy := injectedProxyContainer(in, p)
	if proxy == nil || !wantsProbeRewrite(in, p, in.Values().Bool("sidecarInjectorWebhook", "rewriteAppHTTPProbe")) {
		return nil
	}
	port := int64(in.Mesh().GetDefaultConfig().GetStatusPort())
	probers, err := collectProbers(in, p, port)
	if err != nil {
		return err
	}
	if len(probers) > 0 || !in.Profile().Has(feature.ProberOmitEmpty) {
		_, before := p.annotation(statusAnnotation)
		if err := setProbers(in.Profile(), proxy, probers, before, warn); err != nil {
			return err
		}
	}
	own, err := agentPortOf(p, port)
	if err != nil {
		return err
	}
	pointProbes(in, p, own)
	return nil
}

// wantsProbeRewrite returns the setting of the pod's annotation, or another one if the pod has none.
func wantsProbeRewrite(in *istio.Injector, p *pod, otherwise bool) bool {
	if !in.Profile().Has(feature.ProbeRewriteAnnotation) {
		return otherwise
	}
	return p.boolAnnotation(rewriteProbesAnnotation, otherwise)
}

// agentPortOf returns the agent's port according to the pod's annotation, or another one if the pod has none.
func agentPortOf(p *pod, otherwise int64) (int64, error) {
	text, ok := p.annotation(statusPortAnnotation)
	if !ok {
		return otherwise, nil
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, &podmap.FieldError{Field: "metadata.annotations[" + statusPortAnnotation + "]", Err: err}
	}
	return port, nil
}

// rewrittenProbe is a check of a container that the version rewrites: the map that holds it, and the agent's path.
type rewrittenProbe struct {
	check
	container, holder map[string]any
	agentPath         string
}

// rewrittenProbes returns the checks of the pod's containers that the version rewrites.
func rewrittenProbes(profile *istio.Profile, p *pod) (out []rewrittenProbe) {
	list := p.specListMaps(containersKey)
	if profile.Has(feature.ProberInitContainers) {
		list = slices.Concat(p.specListMaps(initContainersKey), list)
	}
	for _, e := range list {
		c, _ := e.(map[string]any)
		name, _ := c["name"].(string)
		if name == proxyContainer {
			continue
		}
		for _, k := range checks {
			holder := c
			if k.parent != "" {
				holder, _ = c[k.parent].(map[string]any)
			}
			if _, ok := holder[k.field].(map[string]any); ok && profile.Has(k.feature) {
				out = append(out, rewrittenProbe{k, c, holder, fmt.Sprintf(k.path, name)})
			}
		}
	}
	return out
}

// collectProbers returns the probers of the pod's containers, with the containers' named ports as numbers. A name that
// the container does not have is left out, although its probe is rewritten all the same. What an earlier injection
// rewrote is known by its path, and by the agent's port.
func collectProbers(in *istio.Injector, p *pod, statusPort int64) (map[string]prober, error) {
	_, before := p.annotation(statusAnnotation)
	probers := map[string]prober{}
	for _, k := range rewrittenProbes(in.Profile(), p) {
		own, err := readProber(in, k.holder[k.field])
		if err != nil {
			field := fmt.Sprintf("containers[%v].%s", k.container["name"], k.field)
			return nil, &podmap.FieldError{Field: field, Err: err}
		}
		var port *intstr.IntOrString
		switch {
		case own.HTTPGet != nil && before && own.HTTPGet.Path == k.agentPath:
			continue
		case own.HTTPGet != nil:
			port = &own.HTTPGet.Port
		case own.TCPSocket != nil:
			port = &own.TCPSocket.Port
		case own.GRPC != nil:
			probers[k.agentPath] = own
			continue
		default:
			continue
		}
		if port.Type == intstr.String {
			n, ok := portNamed(k.container, port.StrVal)
			if !ok {
				continue
			}
			*port = intstr.FromInt32(n)
		} else if int64(port.IntVal) == statusPort && in.Profile().Has(feature.ProberSkipRewritten) {
			continue
		}
		probers[k.agentPath] = own
	}
	return probers, nil
}

// readProber reads a probe or a lifecycle handler. Kinds that the version does not rewrite are left out.
func readProber(in *istio.Injector, v any) (prober, error) {
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
	case p.TCPSocket != nil && in.RewritesTCPProbes():
		p.GRPC = nil
	case p.GRPC != nil && p.TCPSocket == nil && in.Profile().Has(feature.ProberGRPC):
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

// setProbers passes the probers to the agent. After an earlier injection, which before reports, the probers that it
// left are kept.
func setProbers(
	profile *istio.Profile, proxy map[string]any, probers map[string]prober, before bool, warn *warnings,
) error {
	if before && profile.Has(feature.ProberMerge) {
		env, _ := proxy["env"].([]any)
		e := podmap.Find(env, probersEnv)
		if e == nil && !profile.Has(feature.ProberMergeAppends) {
			return nil
		}
		if e != nil {
			var existing map[string]prober
			text, _ := e["value"].(string)
			if err := json.Unmarshal([]byte(text), &existing); err != nil {
				warn.addf("%s of the injected proxy cannot be read and stays as it is: %v", probersEnv, err)
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

// pointProbes points the probes of the pod's containers at the agent. The agent speaks HTTP with the kubelet, whatever
// it speaks with the application.
func pointProbes(in *istio.Injector, p *pod, port int64) {
	for _, k := range rewrittenProbes(in.Profile(), p) {
		probe, _ := k.holder[k.field].(map[string]any)
		httpGet, isHTTP := probe["httpGet"].(map[string]any)
		_, isTCP := probe["tcpSocket"].(map[string]any)
		_, isGRPC := probe["grpc"].(map[string]any)
		switch {
		case isHTTP:
		case isTCP && in.RewritesTCPProbes():
			delete(probe, "tcpSocket")
		case isGRPC && k.parent == "" && in.Profile().Has(feature.ProberGRPC):
			delete(probe, "grpc")
		default:
			continue
		}
		if httpGet == nil {
			httpGet = map[string]any{}
			probe["httpGet"] = httpGet
		}
		httpGet["port"], httpGet["path"] = port, k.agentPath
		if httpGet["scheme"] == "HTTPS" {
			httpGet["scheme"] = "HTTP"
		}
	}
}
