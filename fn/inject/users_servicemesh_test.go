// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
)

// TestServiceMeshIDs has the user and group of the proxy as inject of pkg/kube/inject/webhook.go of maistra/istio (branch
// maistra-2.4) takes them.
func TestServiceMeshIDs(t *testing.T) {
	const ranged = "openshift.io/sa.scc.uid-range"
	for name, tc := range map[string]struct {
		pod       string
		namespace map[string]string
		uid, gid  int64
	}{
		"nothing":           {`{spec: {containers: [{name: web}]}}`, nil, 1337, 1337},
		"the pod's":         {`{spec: {securityContext: {runAsUser: 1000}, containers: [{name: web}]}}`, nil, 1001, 1000},
		"the highest":       {`{spec: {containers: [{name: a, securityContext: {runAsUser: 2000}}, {name: b, securityContext: {runAsUser: 3000}}]}}`, nil, 3001, 2000},
		"pod and container": {`{spec: {securityContext: {runAsUser: 5000}, containers: [{name: a, securityContext: {runAsUser: 2000}}]}}`, nil, 5001, 5000},
		"an own proxy":      {`{spec: {containers: [{name: web}, {name: istio-proxy, securityContext: {runAsUser: 9000}}]}}`, nil, 1337, 1337},
		"a gateway":         {`{spec: {securityContext: {runAsUser: 7}, containers: [{name: istio-proxy, securityContext: {runAsGroup: 8}}]}}`, nil, 7, 8},
		"a gateway's own":   {`{spec: {containers: [{name: istio-proxy, securityContext: {runAsUser: 9}}]}}`, nil, 9, 9},
		"TPROXY":            {`{metadata: {annotations: {sidecar.istio.io/interceptionMode: TPROXY}}, spec: {securityContext: {runAsUser: 1000}, containers: [{name: web}]}}`, nil, 0, 0},
		"the annotation":    {`{metadata: {annotations: {sidecar.istio.io/proxyUID: "42"}}, spec: {securityContext: {runAsUser: 1000}, containers: [{name: web}]}}`, nil, 42, 1337},
		"no annotation":     {`{metadata: {annotations: {sidecar.istio.io/proxyUID: "x"}}, spec: {securityContext: {runAsUser: 1000}, containers: [{name: web}]}}`, nil, 1001, 1000},
		"the namespace's":   {`{spec: {containers: [{name: web}]}}`, map[string]string{ranged: "1000650000/10000"}, 1000650001, 1000650000},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newPod(podOf(t, tc.pod))
			if err != nil {
				t.Fatal(err)
			}
			uid, gid := serviceMeshIDs(p, Namespace{Annotations: tc.namespace})
			if uid != tc.uid || gid != tc.gid {
				t.Errorf("got %d and %d, want %d and %d", uid, gid, tc.uid, tc.gid)
			}
		})
	}
}

// TestServiceMeshPod has what OpenShift Service Mesh does to a pod besides its templates: the proxy and the init container get
// the proxy's user whatever they say, and an fsGroup of a container is dropped, as no Kubernetes has one.
func TestServiceMeshPod(t *testing.T) {
	in := newInjector(t, istio.Options{Values: "{}", Config: `policy: enabled
defaultTemplates: [sidecar]
templates:
  sidecar: |
    metadata: {labels: {maistra-version: "2.4.7"}}
    spec:
      initContainers:
      - {name: istio-validation, image: proxyv2, args: [istio-iptables, -u, "1337"], securityContext: {runAsGroup: {{ .ProxyUID }}, fsGroup: {{ .ProxyGID }}}}
      containers:
      - {name: istio-proxy, image: proxyv2, args: ["{{ .EstimatedConcurrency }}"]}
`})
	if got := in.Profile().Release().Minor; got != 16 {
		t.Errorf("got Istio 1.%d, want 1.16", got)
	}
	res, err := Istio(in, Request{Pod: podOf(t, `{metadata: {name: web}, spec: {containers: [{name: web, securityContext: {runAsUser: 1000650000}}]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	pod, err := newPod(res.Pod)
	if err != nil {
		t.Fatal(err)
	}
	if uid, _ := securityContextField(pod.findProxyContainer(true), "runAsUser"); uid != int64(1000650001) {
		t.Errorf("the proxy runs as %v", uid)
	}
	validation := podmap.Find(pod.specListMaps(initContainersKey), validationContainer)
	context, _ := validation["securityContext"].(map[string]any)
	args, _ := validation["args"].([]any)
	if _, has := context["fsGroup"]; has || context["runAsUser"] != int64(1000650001) || len(args) != 3 || args[2] != "1000650001" {
		t.Errorf("got the init container %v", validation)
	}
}
