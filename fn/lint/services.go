// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// serviceFacts is a Service and the pods that it selects.
type serviceFacts struct {
	*objectFacts
	selector map[string]string
	ports    []servicePort
	selected []*Summary
}

// servicePort is one port of a Service.
type servicePort struct {
	index            int
	name, transport  string
	number           int64
	target           int64
	targetName       string
	protocol         string
	declaredProtocol bool
}

// serviceLookupScope returns where a Service finds pods: its namespace, and among objects that name none, the directory
// of the file, because such files are often for several namespaces.
func serviceLookupScope(namespace string, file *result.File) string {
	if namespace != "" || file == nil {
		return namespace
	}
	return "\x00" + path.Dir(file.Path)
}

func newServiceFacts(o *objectFacts, x *podIndex) *serviceFacts {
	meta, _ := o.Object.Object["metadata"].(map[string]any)
	f := &serviceFacts{objectFacts: o, selector: stringMap(o.spec["selector"])}
	for i, m := range podmap.Maps(o.spec["ports"]) {
		if m != nil {
			f.ports = append(f.ports, newServicePort(i, m))
		}
	}
	// An ExternalName has no pods, and Istio makes the Services of Gateways itself (source: service/portname.go of istioctl analyze).
	if textOf(o.spec["type"]) == "ExternalName" || stringMap(meta["labels"])["gateway.istio.io/managed"] != "" {
		f.selector, f.ports = nil, nil
	}
	if len(f.selector) > 0 {
		f.selected = x.podsMatchingLabels(o.scope, f.selector)
		if len(f.selected) == 0 && o.Namespace == "" {
			f.selected = x.selectedInSiblingDirectory(o.scope, f.selector)
		}
	}
	return f
}

func newServicePort(index int, m map[string]any) servicePort {
	p := servicePort{index: index, name: textOf(m["name"]), transport: textOf(m["protocol"])}
	p.number, _ = integerOf(m["port"])
	p.target = p.number
	if n, ok := integerOf(m["targetPort"]); ok && n != 0 {
		p.target = n
	}
	p.targetName = textOf(m["targetPort"])
	p.protocol, p.declaredProtocol = protocolOf(p.name, m["appProtocol"])
	return p
}

// istioProtocols are the prefixes of ports' names that Istio knows, with what the proxy makes of them.
// Source: Parse in pkg/config/protocol/instance.go.
var istioProtocols = map[string]string{
	"http": "HTTP", "http2": "HTTP", "http_proxy": "HTTP", "grpc": "HTTP", "grpc-web": "HTTP",
	"tcp": "TCP", "udp": "UDP", "https": "TCP", "tls": "TCP", "mongo": "TCP", "redis": "TCP", "mysql": "TCP",
}

// protocolOf returns whether the proxy handles a port as HTTP or TCP; false if no declaration exists. Source:
// ConvertProtocol in pkg/config/kube/conversion.go.
func protocolOf(name string, appProtocol any) (string, bool) {
	if app, ok := appProtocol.(string); ok {
		name = app
		switch app {
		case "kubernetes.io/h2c", "kubernetes.io/ws":
			return "HTTP", true
		case "kubernetes.io/wss":
			return "TCP", true
		}
	}
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "grpc-web") {
		return "HTTP", true
	}
	name, _, _ = strings.Cut(name, "-")
	protocol, ok := istioProtocols[name]
	return protocol, ok
}

// needsProtocolDetection reports whether Istio has to find out the protocol. wellKnownPorts of
// pkg/config/kube/conversion.go are TCP at once.
func (p servicePort) needsProtocolDetection() bool {
	return !p.declaredProtocol && (p.transport == "" || p.transport == "TCP") && !slices.Contains([]int64{25, 53, 3306, 27017}, p.number)
}

// serverFirst are the ports of protocols in which the server speaks first: those that Istio's page on protocol selection lists,
// and the registered ones of FTP, SSH, POP3, IMAP and mail submission, whose servers greet their clients (RFC 959, 4253, 1939, 9051, 6409).
var serverFirst = map[int64]string{
	21: "FTP", 22: "SSH", 25: "SMTP", 110: "POP3", 143: "IMAP", 587: "SMTP", 3306: "MySQL", 27017: "MongoDB",
}

// serverFirstProtocol names the protocol that the port number, or that of the container, implies.
func (p servicePort) serverFirstProtocol() string {
	if name, ok := serverFirst[p.target]; ok && p.targetName == "" {
		return name
	}
	return serverFirst[p.number]
}

// isMetricsPort reports whether the port's name marks it as one for metrics. Prometheus scrapes the pods and not the
// Service, so its protocol does not matter; the names are those that charts use for such ports.
func (p servicePort) isMetricsPort() bool {
	for _, word := range []string{"metrics", "prometheus", "prom", "telemetry"} {
		if p.name == word || strings.HasSuffix(p.name, "-"+word) || strings.HasPrefix(p.name, word+"-") {
			return true
		}
	}
	return false
}

// hasSidecarPod reports whether a pod with a sidecar serves the Service.
func (f *serviceFacts) hasSidecarPod() bool {
	return slices.ContainsFunc(f.selected, func(pod *Summary) bool { return pod.sidecar })
}

func (f *serviceFacts) newFinding(field *result.Field, message string) setFinding {
	out := f.objectFacts.newFinding("", message)
	out.field = field
	return out
}

func (p servicePort) String() string {
	if p.name == "" {
		return fmt.Sprintf("port %d", p.number)
	}
	return fmt.Sprintf("port %d (%s)", p.number, p.name)
}

// checkPortProtocols reports the ports of a Service together.
func checkPortProtocols(s *workloadSet) []setFinding {
	var out []setFinding
	for _, f := range s.services {
		if !f.hasSidecarPod() {
			continue
		}
		var ports []string
		first := -1
		for _, p := range f.ports {
			if !p.needsProtocolDetection() || p.serverFirstProtocol() != "" || p.isMetricsPort() {
				continue
			}
			ports = append(ports, p.String())
			if first < 0 {
				first = p.index
			}
		}
		if first < 0 {
			continue
		}
		verb := "declares"
		if len(ports) > 1 {
			verb = "declare"
		}
		out = append(out, f.newFinding(&result.Field{Path: fmt.Sprintf("spec.ports[%d]", first)},
			fmt.Sprintf("%s %s no protocol, neither by name nor by appProtocol: Istio guesses between HTTP and TCP; set appProtocol, or begin the name with it, such as http-web or tcp-web", strings.Join(ports, ", "), verb)))
	}
	return out
}

func checkServerFirst(s *workloadSet) []setFinding {
	var out []setFinding
	for _, f := range s.services {
		if !f.hasSidecarPod() {
			continue
		}
		for _, p := range f.ports {
			if name := p.serverFirstProtocol(); name != "" && p.needsProtocolDetection() {
				out = append(out, f.newFinding(&result.Field{Path: fmt.Sprintf("spec.ports[%d]", p.index), ProposedValue: map[string]any{"appProtocol": "tcp"}},
					fmt.Sprintf("%s looks like %s, where the server speaks first, and declares no protocol: Istio waits for the client to speak", p, name)))
			}
		}
	}
	return out
}

// targetPortNumber returns the number of the port in a pod, or 0 if the pod does not reveal it.
func (p servicePort) targetPortNumber(pod *Summary) int64 {
	if p.targetName != "" {
		return pod.ports[p.targetName]
	}
	return p.target
}

// checkProtocolConflicts reports the second of two Services.
func checkProtocolConflicts(s *workloadSet) []setFinding {
	type place struct {
		pod  *Summary
		port int64
	}
	type use struct {
		service *serviceFacts
		port    servicePort
	}
	declared := map[place]use{}
	reported := map[string]bool{}
	var out []setFinding
	for _, f := range s.services {
		for _, p := range f.ports {
			if !p.declaredProtocol || p.protocol == "UDP" || p.transport != "" && p.transport != "TCP" {
				continue
			}
			for _, pod := range f.selected {
				at := place{pod, p.targetPortNumber(pod)}
				if !pod.sidecar || at.port == 0 {
					continue
				}
				other, ok := declared[at]
				if !ok {
					declared[at] = use{f, p}
					continue
				}
				pair := f.Namespace + "/" + f.Name + " " + other.service.Name + fmt.Sprint(at.port)
				if other.service.Name == f.Name || other.port.protocol == p.protocol || reported[pair] {
					continue
				}
				reported[pair] = true
				out = append(out, f.newFinding(&result.Field{Path: fmt.Sprintf("spec.ports[%d]", p.index)},
					fmt.Sprintf("%s declares protocol %s for port %d of %s, and the Service %s declares %s: the proxy follows one of them",
						p, p.protocol, at.port, pod.ref, other.service.Name, other.port.protocol)))
			}
		}
	}
	return out
}

// checkServiceSelectors reports a Service only where a workload was plainly meant: it has the Service's name and all the keys of the
// selector, with other values. Other pods may come from files that are not here.
func checkServiceSelectors(s *workloadSet) []setFinding {
	var out []setFinding
	for _, f := range s.services {
		if len(f.selector) == 0 || len(f.selected) > 0 || s.selectedAnywhere(f) {
			continue
		}
		for _, pod := range s.index.byName[f.scope+"\x00"+f.Name] {
			differs := differentLabels(pod.labels, f.selector)
			if len(differs) == 0 {
				continue
			}
			key := differs[0]
			out = append(out, f.newFinding(&result.Field{Path: fmt.Sprintf("spec.selector[%q]", key), CurrentValue: f.selector[key]},
				fmt.Sprintf("no workload among the files has these labels: %s has %s=%s, and not %s", pod.ref, key, pod.labels[key], f.selector[key])))
			break
		}
	}
	return out
}

// selectedAnywhere reports whether a pod of any directory fits, where the namespace is not known.
func (s *workloadSet) selectedAnywhere(f *serviceFacts) bool {
	return f.Namespace == "" && len(s.index.podsMatchingLabels(anyDirectory, f.selector)) > 0
}

// differentLabels returns the keys whose values differ; none where the labels lack a key, which something may add to the pods later.
func differentLabels(labels, selector map[string]string) []string {
	var out []string
	for _, k := range sortedKeys(selector) {
		have, ok := labels[k]
		if !ok {
			return nil
		}
		if have != selector[k] {
			out = append(out, k)
		}
	}
	return out
}
