// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/util/sets"
)

const trustDomain = "cluster.local"

// peer is the other end of a connection.
type peer struct {
	trust, namespace, account string // all empty without mutual TLS
	ip                        netip.Addr
}

// identity is the SPIFFE ID of a peer; empty if it has none.
func (p peer) identity() string {
	if p.account == "" {
		return ""
	}
	return "spiffe://" + p.trust + "/ns/" + p.namespace + "/sa/" + p.account
}

// connection is a call, as the proxy before a pod or a Service sees it.
type connection struct {
	peer
	call Call
	to   netip.Addr
	port uint32
}

// decide follows a call through the proxies. A client in ambient mode passes the waypoint of the Service that it calls; a sidecar and a client
// outside of the mesh do not.
func (s *state) decide(c Call) (Decision, error) {
	pod := s.pods[c.Pod]
	if pod == nil {
		return Decision{}, fmt.Errorf("there is no pod %s", c.Pod)
	}
	ip, err := netip.ParseAddr(c.Client.IP)
	if err != nil {
		return Decision{}, err
	}
	from := peer{ip: ip}
	if c.Client.Mode != "" {
		from = peer{trustDomain, c.Client.Namespace, c.Client.ServiceAccount, ip}
	}
	conn := connection{peer: from, call: c, port: c.Port}
	d := Decision{Allowed: true}
	if c.Service != "" {
		service := s.services[c.Service]
		if service == nil {
			return Decision{}, fmt.Errorf("there is no Service %s", c.Service)
		}
		conn.to = netip.MustParseAddr(service.Spec.ClusterIP)
		if waypoint := s.waypointOf(service); waypoint != nil && c.Client.Mode == "ambient" {
			if err := s.atWaypoint(&d, waypoint, service, conn); err != nil || !d.Allowed {
				return d, err
			}
			conn.peer = peer{trustDomain, waypoint.Namespace, waypoint.Spec.ServiceAccountName, netip.MustParseAddr(waypoint.Status.PodIP)}
		}
		if conn.port, err = targetPort(service, pod, c.Port); err != nil {
			return Decision{}, err
		}
	}
	conn.to = netip.MustParseAddr(pod.Status.PodIP)
	switch {
	case slices.Contains(s.sidecars, c.Pod):
		err = s.atSidecar(&d, pod, conn)
	case pod.Annotations[redirection] == "enabled":
		err = s.atZtunnel(&d, pod, conn)
	}
	return d, err
}

// waypointOf returns the pod of the waypoint that istiod sends to ztunnel for a Service, or nil.
func (s *state) waypointOf(service *corev1.Service) *corev1.Pod {
	host := service.Name + "." + service.Namespace + ".svc." + trustDomain
	infos, _ := s.server.AmbientIndex.AddressInformation(sets.New(service.Namespace + "/" + host))
	for _, info := range infos {
		if info.GetService().GetHostname() != host {
			continue
		}
		address, _ := netip.AddrFromSlice(info.GetService().GetWaypoint().GetAddress().GetAddress())
		hostname := info.GetService().GetWaypoint().GetHostname()
		for name, waypoint := range s.services {
			reached := hostname != nil && hostname.Namespace == waypoint.Namespace && strings.HasPrefix(hostname.Hostname, waypoint.Name+".")
			if waypoint.Spec.ClusterIP == address.String() || reached {
				return s.pods[name+"-0"]
			}
		}
	}
	return nil
}

func targetPort(service *corev1.Service, pod *corev1.Pod, port uint32) (uint32, error) {
	for _, p := range service.Spec.Ports {
		if uint32(p.Port) != port {
			continue
		}
		if name := p.TargetPort.StrVal; name != "" {
			for _, c := range pod.Spec.Containers {
				for _, declared := range c.Ports {
					if declared.Name == name {
						return uint32(declared.ContainerPort), nil
					}
				}
			}
			return 0, fmt.Errorf("pod %s has no port %s", pod.Name, name)
		}
		if p.TargetPort.IntVal != 0 {
			return uint32(p.TargetPort.IntVal), nil
		}
		return port, nil
	}
	return 0, fmt.Errorf("Service %s has no port %d", service.Name, port)
}

// proxy is the sidecar or waypoint of a pod, as it connects to istiod.
func (s *state) proxy(pod *corev1.Pod, kind model.NodeType) *model.Proxy {
	return s.server.SetupProxy(&model.Proxy{
		Type: kind, ID: pod.Name + "." + pod.Namespace, ConfigNamespace: pod.Namespace, IPAddresses: []string{pod.Status.PodIP}, Labels: pod.Labels,
		Metadata: &model.NodeMetadata{
			Namespace: pod.Namespace, Labels: pod.Labels, IstioVersion: "1.31.0", ServiceAccount: pod.Spec.ServiceAccountName, ClusterID: "Kubernetes",
		},
	})
}
