// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProxyContainer is the name of the container that Istio's templates inject.
const ProxyContainer = "istio-proxy"

// annotationOr is a pod's annotation, or the default in text if the pod has none of the name. meta is a metav1.ObjectMeta; as
// a reflect.Value it is not copied for each of the many calls in a template.
func annotationOr(meta reflect.Value, name string, otherwise any) (string, error) {
	m, err := objectMeta(meta)
	if err != nil {
		return "", err
	}
	if v, ok := m.Annotations[name]; ok {
		return v, nil
	}
	if text, ok := otherwise.(string); ok {
		return text, nil
	}
	return fmt.Sprint(otherwise), nil
}

func objectMeta(v reflect.Value) (*metav1.ObjectMeta, error) {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil, errors.New("there is no metadata to look for an annotation in")
	}
	if v.CanAddr() {
		v = v.Addr()
	}
	switch m := v.Interface().(type) {
	case *metav1.ObjectMeta:
		if m != nil {
			return m, nil
		}
	case metav1.ObjectMeta:
		return &m, nil
	}
	return nil, fmt.Errorf("want the metadata of an object to look for an annotation in, not %s", v.Type())
}

// excludeInboundPort adds a port to a textual list of ports. It ignores port 0 and a missing port.
func excludeInboundPort(port any, excluded string) string {
	want := strings.TrimSpace(fmt.Sprint(port))
	if want == "" || want == "0" {
		return excluded
	}
	var out []string
	for p := range strings.SplitSeq(excluded, ",") {
		if p == want {
			return excluded
		}
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(append(out, want), ",")
}

// includeInboundPorts lists the TCP ports of all containers.
func includeInboundPorts(containers []corev1.Container) string {
	return portsOf(containers, true, true)
}

// applicationPorts lists the TCP ports of all containers but the proxy.
func applicationPorts(containers []corev1.Container) string {
	return portsOf(containers, false, true)
}

// everyInboundPort and everyApplicationPort are the same up to 1.2, with the ports of every protocol.
func everyInboundPort(containers []corev1.Container) string {
	return portsOf(containers, true, false)
}

func everyApplicationPort(containers []corev1.Container) string {
	return portsOf(containers, false, false)
}

func portsOf(containers []corev1.Container, proxy, tcpOnly bool) string {
	var out []string
	for _, c := range containers {
		if c.Name == ProxyContainer && !proxy {
			continue
		}
		for _, p := range c.Ports {
			if tcpOnly && (p.Protocol == corev1.ProtocolUDP || p.Protocol == corev1.ProtocolSCTP) {
				continue
			}
			out = append(out, strconv.Itoa(int(p.ContainerPort)))
		}
	}
	return strings.Join(out, ",")
}
