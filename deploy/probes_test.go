// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// TestProbesAskAnAddressOfTheirOwn has no sender of webhooks, no certificate and no address of the page make the kubelet kill the daemon: the
// probes ask the address that the daemon has for them, and the NetworkPolicy lets no pod reach it.
func TestProbesAskAnAddressOfTheirOwn(t *testing.T) {
	const certificate = "{certificate: /etc/prerig/tls/tls.crt, key: /etc/prerig/tls/tls.key}"
	for name, all := range map[string]objects{
		"base":                 build(t, "top", map[string]string{"top": "resources: [../deploy/base]\n"}),
		"chart":                install(t, "{}"),
		"TLS for webhooks":     install(t, "config: {tls: "+certificate+"}"),
		"TLS for the page":     install(t, "config: {admin: {tls: "+certificate+"}}"),
		"no page":              install(t, "config: {admin: {listen: ''}}"),
		"page of this machine": install(t, "config: {admin: null}"),
		"another port":         install(t, "config: {health: {listen: '0.0.0.0:9000'}}"),
		"no health":            install(t, "config: {health: null}"),
	} {
		container := into[appsv1.StatefulSet](t, all, "StatefulSet/prerig").Spec.Template.Spec.Containers[0]
		at := slices.Index(container.Args, "--health-listen")
		if at < 0 {
			t.Errorf("%s: the daemon has no address for probes: %v", name, container.Args)
			continue
		}
		port := int32(8083)
		if name == "another port" {
			port = 9000
		}
		if listen := container.Args[at+1]; portNamed(container, "health") != port || listen != fmt.Sprintf(":%d", port) && listen != fmt.Sprintf("0.0.0.0:%d", port) {
			t.Errorf("%s: the daemon listens at %s, and its ports are %v", name, listen, container.Ports)
		}
		for path, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
			if get := probe.HTTPGet; get.Path != path || get.Port.String() != "health" || get.Scheme != "" {
				t.Errorf("%s: the probe asks %+v", name, get)
			}
		}
		if get := container.StartupProbe.HTTPGet; get.Port.String() != "health" || get.Scheme != "" {
			t.Errorf("%s: the startup probe asks %+v", name, get)
		}
		for _, rule := range into[networkingv1.NetworkPolicy](t, all, "NetworkPolicy/prerig").Spec.Ingress {
			if len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port == nil || p.Port.String() == "health" }) {
				t.Errorf("%s: other pods reach the address of the probes by %+v", name, rule)
			}
		}
	}
}
