// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"istio.io/istio/pilot/pkg/config/kube/crd"
	"istio.io/istio/pilot/test/xds"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/config/schema/collections"
	"istio.io/istio/pkg/config/schema/resource"
	"istio.io/istio/pkg/kube"
	"istio.io/istio/pkg/test"
)

// Labels and annotations that Istio adds.
const (
	gatewayLabel = "gateway.networking.k8s.io/gateway-name"
	redirection  = "ambient.istio.io/redirection"
)

// state is a cluster, as istiod sees it.
type state struct {
	server     *xds.FakeDiscoveryServer
	pods       map[string]*corev1.Pod
	services   map[string]*corev1.Service
	namespaces map[string]*corev1.Namespace
	sidecars   []string
	listeners  map[string][]*listener.Listener // by pod
}

func answer(r Request) (Answer, error) {
	objects, configs, invalid := read(r.Manifests)
	a := Answer{Invalid: invalid}
	if len(r.Calls) == 0 {
		return a, nil
	}
	err := test.Wrap(func(t test.Failer) {
		s, err := newState(t, r, objects, configs)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Calls {
			d, err := s.decide(c)
			if err != nil {
				t.Fatalf("deciding about %+v: %v", c, err)
			}
			a.Decisions = append(a.Decisions, d)
		}
	})
	return a, err
}

// read decodes manifests as Istio's clients and istiod do, and validates Istio's own kinds.
func read(manifests string) (objects []runtime.Object, configs []config.Config, invalid []string) {
	decode := kube.IstioCodec.UniversalDeserializer().Decode
	for _, text := range strings.Split("\n"+manifests, "\n---") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		object, kind, err := decode([]byte(text), nil, nil)
		if err != nil {
			invalid = append(invalid, fmt.Sprintf("decoding %q: %v", text, err))
			continue
		}
		objects = append(objects, object)
		schema, ok := collections.Pilot.FindByGroupVersionAliasesKind(resource.FromKubernetesGVK(kind))
		if !ok {
			continue
		}
		found, _, err := crd.ParseInputs(text)
		if err != nil {
			invalid = append(invalid, fmt.Sprintf("%s: %v", kind.Kind, err))
			continue
		}
		for _, c := range found {
			if _, err := schema.ValidateConfig(c); err != nil {
				invalid = append(invalid, fmt.Sprintf("%s %s/%s: %v", kind.Kind, c.Namespace, c.Name, err))
			}
		}
		configs = append(configs, found...)
	}
	return objects, configs, invalid
}

// newState starts istiod's discovery server over the objects, after what other controllers do: addresses, pods of waypoints, and the
// enrolment of pods.
func newState(t test.Failer, r Request, objects []runtime.Object, configs []config.Config) (*state, error) {
	s := &state{
		pods: map[string]*corev1.Pod{}, services: map[string]*corev1.Service{}, namespaces: map[string]*corev1.Namespace{}, sidecars: r.Sidecars,
		listeners: map[string][]*listener.Listener{},
	}
	for _, o := range slices.Clone(objects) {
		if g, ok := o.(*gateway.Gateway); ok && g.Spec.GatewayClassName == "istio-waypoint" {
			objects = append(objects, deploy(g)...)
		}
	}
	for i, o := range objects {
		switch o := o.(type) {
		case *corev1.Pod:
			s.pods[o.Namespace+"/"+o.Name] = o
			if o.Status.PodIP == "" {
				o.Status.PodIP = fmt.Sprintf("10.1.%d.%d", i/200, i%200+1)
			}
			o.Status.PodIPs = []corev1.PodIP{{IP: o.Status.PodIP}}
			o.Status.Phase = corev1.PodRunning
			o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if o.Spec.ServiceAccountName == "" {
				o.Spec.ServiceAccountName = "default"
			}
			if slices.Contains(r.Sidecars, o.Namespace+"/"+o.Name) {
				asInjected(o)
			}
		case *corev1.Service:
			s.services[o.Namespace+"/"+o.Name] = o
			if o.Spec.ClusterIP == "" {
				o.Spec.ClusterIP = fmt.Sprintf("10.2.%d.%d", i/200, i%200+1)
			}
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		case *corev1.Namespace:
			s.namespaces[o.Name] = o
		}
	}
	for _, o := range objects {
		if g, ok := o.(*gateway.Gateway); ok {
			if service := s.services[g.Namespace+"/"+g.Name]; service != nil {
				kind := gateway.IPAddressType
				g.Status.Addresses = []gateway.GatewayStatusAddress{{Type: &kind, Value: service.Spec.ClusterIP}}
			}
		}
	}
	s.enrol()
	m := mesh.DefaultMeshConfig()
	if r.MeshConfig != "" {
		var err error
		if m, err = mesh.ApplyMeshConfigDefaults(r.MeshConfig); err != nil {
			return nil, fmt.Errorf("reading the mesh config: %w", err)
		}
	}
	s.server = xds.NewFakeDiscoveryServer(t, xds.FakeOptions{KubernetesObjects: objects, Configs: configs, MeshConfig: m})
	return s, nil
}

// deploy returns what istiod's deployment controller makes of the Gateway of a waypoint, as far as istiod reads it.
func deploy(g *gateway.Gateway) []runtime.Object {
	labels := map[string]string{gatewayLabel: g.Name, "gateway.istio.io/managed": "istio.io-mesh-controller"}
	meta := metav1.ObjectMeta{Name: g.Name, Namespace: g.Namespace, Labels: labels}
	pod := meta
	pod.Name += "-0"
	return []runtime.Object{
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: map[string]string{gatewayLabel: g.Name}, Ports: []corev1.ServicePort{{Name: "mesh", Port: 15008}},
		}},
		&corev1.Pod{ObjectMeta: pod, Spec: corev1.PodSpec{ServiceAccountName: g.Name}},
	}
}

// asInjected adds to a pod what istiod reads of an injected one.
func asInjected(p *corev1.Pod) {
	p.Annotations, p.Labels = with(p.Annotations, "sidecar.istio.io/status", "{}"), with(p.Labels, "security.istio.io/tlsMode", "istio")
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "istio-proxy"})
}

// enrol annotates pods as Istio's CNI plugin does with its default selectors. Source: ambient.enablementSelectors in
// manifests/charts/istio-cni/values.yaml, and Matches in cni/pkg/util/enablement_selector.go.
func (s *state) enrol() {
	for name, p := range s.pods {
		mode := p.Labels["istio.io/dataplane-mode"]
		if ns := s.namespaces[p.Namespace]; ns != nil && mode != "none" && ns.Labels["istio.io/dataplane-mode"] == "ambient" {
			mode = "ambient"
		}
		if mode == "ambient" && !p.Spec.HostNetwork && !slices.Contains(s.sidecars, name) && p.Labels[gatewayLabel] == "" {
			p.Annotations = with(p.Annotations, redirection, "enabled")
		}
	}
}

func with(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range m {
		out[k] = v
	}
	return out
}
