// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setCoreDefaults sets the defaults of kinds of the core group.
func setCoreDefaults(object runtime.Object) {
	switch o := object.(type) {
	case *corev1.Service:
		defaultService(&o.Spec)
	case *corev1.Secret:
		setWordIfEmpty(&o.Type, corev1.SecretTypeOpaque)
		for key, value := range o.StringData {
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[key] = []byte(value)
		}
		o.StringData = nil
	case *corev1.PersistentVolume:
		setWordIfEmpty(&o.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		setIfUnset(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	case *corev1.PersistentVolumeClaim:
		setIfUnset(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	case *corev1.Namespace:
		DefaultNamespace(o)
	}
}

// DefaultNamespace sets the name label, finalizer and phase of a Namespace.
func DefaultNamespace(o *corev1.Namespace) {
	if o.Name != "" && o.Labels[corev1.LabelMetadataName] != o.Name {
		labels := map[string]string{corev1.LabelMetadataName: o.Name}
		for key, value := range o.Labels {
			if key != corev1.LabelMetadataName {
				labels[key] = value
			}
		}
		o.Labels = labels
	}
	o.Status.Phase = corev1.NamespaceActive
	for _, f := range o.Spec.Finalizers {
		if f == corev1.FinalizerKubernetes {
			return
		}
	}
	o.Spec.Finalizers = append(o.Spec.Finalizers, corev1.FinalizerKubernetes)
}

func defaultService(s *corev1.ServiceSpec) {
	setWordIfEmpty(&s.SessionAffinity, corev1.ServiceAffinityNone)
	switch {
	case s.SessionAffinity == corev1.ServiceAffinityNone:
		s.SessionAffinityConfig = nil
	case s.SessionAffinity == corev1.ServiceAffinityClientIP:
		setIfUnset(&s.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		setIfUnset(&s.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		setIfUnset(&s.SessionAffinityConfig.ClientIP.TimeoutSeconds, corev1.DefaultClientIPServiceAffinitySeconds)
	}
	setWordIfEmpty(&s.Type, corev1.ServiceTypeClusterIP)
	for i := range s.Ports {
		port := &s.Ports[i]
		setWordIfEmpty(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	outside := s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer
	if outside || s.Type == corev1.ServiceTypeClusterIP {
		setIfUnset(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
		if outside || len(s.ExternalIPs) > 0 {
			setWordIfEmpty(&s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
		}
	}
	if s.Type == corev1.ServiceTypeLoadBalancer {
		setIfUnset(&s.AllocateLoadBalancerNodePorts, true)
	}
}
