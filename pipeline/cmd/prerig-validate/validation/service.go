// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	netutils "k8s.io/utils/net"
)

// The store of Services does part of their validation while it allocates addresses and ports (source: beginCreate and
// beginUpdate in pkg/registry/core/service/storage of Kubernetes 1.36). What follows is of that what needs no
// allocator.

// prepareServiceCreate fills in the fields of a new Service that depend on each other, and returns what does not fit.
func prepareServiceCreate(service *core.Service) []Problem {
	spec := &service.Spec
	allocateHealthCheckPort(service, service)
	if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	if spec.Type == core.ServiceTypeExternalName {
		return nil
	}
	if spec.IPFamilyPolicy == nil {
		policy := core.IPFamilyPolicySingleStack
		if spec.ClusterIP == core.ClusterIPNone && len(spec.Selector) == 0 {
			policy = core.IPFamilyPolicyRequireDualStack
		}
		spec.IPFamilyPolicy = &policy
	}
	if *spec.IPFamilyPolicy != core.IPFamilyPolicySingleStack {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("spec", "ipFamilyPolicy")
	if len(spec.ClusterIPs) == 2 {
		errs = append(errs, field.Invalid(path, spec.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"))
	}
	if len(spec.IPFamilies) == 2 {
		errs = append(errs, field.Invalid(path, spec.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"))
	}
	return problemsOfList(errs)
}

// Placeholders for the addresses and the port that a cluster has allocated, which are not known.
const (
	allocatedIPv4 = "10.255.255.254"
	allocatedIPv6 = "fd00:ffff:ffff::fffe"
	allocatedPort = 32767
)

// allocateClusterIPs adds to a Service that names no address what a cluster would have allocated. next is what is
// applied after it: if that names an address, it may be the allocated one.
func allocateClusterIPs(service, next *core.Service) {
	spec := &service.Spec
	if spec.Type == core.ServiceTypeExternalName || spec.ClusterIP != "" || len(spec.ClusterIPs) > 0 {
		return
	}
	wanted := next.Spec.ClusterIP
	family := core.IPv4Protocol
	switch {
	case len(spec.IPFamilies) > 0:
		family = spec.IPFamilies[0]
	case len(next.Spec.IPFamilies) > 0:
		family = next.Spec.IPFamilies[0]
	case netutils.IsIPv6String(wanted):
		family = core.IPv6Protocol
	}
	switch {
	case wanted != "" && wanted != core.ClusterIPNone:
		spec.ClusterIP = wanted
	case family == core.IPv6Protocol:
		spec.ClusterIP = allocatedIPv6
	default:
		spec.ClusterIP = allocatedIPv4
	}
	spec.ClusterIPs = []string{spec.ClusterIP}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []core.IPFamily{family}
	}
}

// allocateHealthCheckPort adds the port of health checks to a Service that needs one and names none. next is what is
// applied after it, or the Service itself: if that names a port, it may be the allocated one.
func allocateHealthCheckPort(service, next *core.Service) {
	if needsHealthCheckPort(service) && service.Spec.HealthCheckNodePort == 0 {
		service.Spec.HealthCheckNodePort = cmp.Or(next.Spec.HealthCheckNodePort, allocatedPort)
	}
}

// isAboutAllocated reports whether a problem quotes a placeholder: the problem follows from another one.
func isAboutAllocated(p Problem) bool {
	return strings.Contains(p.Message, allocatedIPv4) || strings.Contains(p.Message, allocatedIPv6)
}

// prepareServiceUpdate keeps the addresses and ports of the stored Service that the new one leaves empty.
func prepareServiceUpdate(service, old *core.Service) {
	if needsClusterIP(service) && needsClusterIP(old) {
		if service.Spec.ClusterIP == "" {
			service.Spec.ClusterIP = old.Spec.ClusterIP
		}
		if len(service.Spec.ClusterIPs) == 0 {
			service.Spec.ClusterIPs = old.Spec.ClusterIPs
		}
	}
	keepNodePorts(service, old)
	if needsHealthCheckPort(service) && needsHealthCheckPort(old) && service.Spec.HealthCheckNodePort == 0 {
		service.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
	allocateHealthCheckPort(service, service)
	if service.Spec.ClusterIP != "" && service.Spec.ClusterIP != old.Spec.ClusterIP && sameAddresses(service, old) {
		service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
	}
}

func keepNodePorts(service, old *core.Service) {
	if !needsNodePort(service) || !needsNodePort(old) {
		return
	}
	used, before := map[int32]bool{}, map[string]int32{}
	for _, p := range service.Spec.Ports {
		used[p.NodePort] = true
	}
	for _, p := range old.Spec.Ports {
		before[p.Name] = p.NodePort
	}
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		if p.NodePort == 0 && !used[before[p.Name]] {
			p.NodePort = before[p.Name]
		}
	}
}

func needsClusterIP(service *core.Service) bool {
	return service.Spec.Type != core.ServiceTypeExternalName
}

func needsNodePort(service *core.Service) bool {
	allocate := service.Spec.AllocateLoadBalancerNodePorts
	return service.Spec.Type == core.ServiceTypeNodePort ||
		service.Spec.Type == core.ServiceTypeLoadBalancer && (allocate == nil || *allocate)
}

func needsHealthCheckPort(service *core.Service) bool {
	return service.Spec.Type == core.ServiceTypeLoadBalancer &&
		service.Spec.ExternalTrafficPolicy == core.ServiceExternalTrafficPolicyLocal
}

func sameAddresses(service, old *core.Service) bool {
	if len(service.Spec.ClusterIPs) != len(old.Spec.ClusterIPs) {
		return false
	}
	for i, address := range service.Spec.ClusterIPs {
		if address != old.Spec.ClusterIPs[i] {
			return false
		}
	}
	return true
}
