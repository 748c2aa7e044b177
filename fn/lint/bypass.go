// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// callers are native sidecars that call a server as soon as they start, by the last part of their image's name; "*" ends a prefix. Names of
// containers are those that the injectors of Vault, Dapr, Linkerd, OpenTelemetry, Consul and Datadog use.
var (
	callers      = []string{"vault", "vault-enterprise", "daprd", "opentelemetry-collector*", "cloud-sql-proxy", "alloydb-auth-proxy", "gce-proxy", "consul-dataplane"}
	callersNamed = []string{"vault-agent", "vault-agent-init", "daprd", "linkerd-proxy", "otc-container", "consul-dataplane", "datadog-agent", "datadog-agent-injected"}
	// callersOf are images whose last part alone is ambiguous.
	callersOf = []string{"linkerd/proxy", "datadoghq/agent", "datadog/agent"}
)

// needsNetworkAtStart reports whether a native sidecar is known to need the network from its start.
func (c container) needsNetworkAtStart() bool {
	return c.servesLocally() || slices.Contains(callersNamed, c.name) || slices.ContainsFunc(callers, func(name string) bool {
		prefix, wild := strings.CutSuffix(name, "*")
		return c.imageName() == prefix || wild && strings.HasPrefix(c.imageName(), prefix)
	}) || slices.ContainsFunc(callersOf, func(end string) bool {
		return strings.HasSuffix("/"+imageRepository(textOf(c.fields["image"])), "/"+end)
	})
}

// describeForFindings returns how findings name the container.
func (c container) describeForFindings() string {
	if c.isNativeSidecar() {
		return "native sidecar " + c.name
	}
	return "init container " + c.name
}

// remotePorts are the ports that the container is known to connect to; none where that is not known. The proxies of Google's databases call
// the API and then the instance (docs of the Cloud SQL Auth Proxy and of the AlloyDB Auth Proxy); Vault's agent has its server's address.
func (c container) remotePorts() []string {
	switch {
	case c.servesLocally() && strings.Contains(c.imageName(), "alloydb"):
		return []string{"443", "5433"}
	case c.servesLocally():
		return []string{"443", "3307"}
	}
	address, _ := c.literalEnvValue("VAULT_ADDR")
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return nil
	case u.Port() != "":
		return []string{u.Port()}
	case u.Scheme == "https":
		return []string{"443"}
	}
	return []string{"80"}
}

// capturesDNS reports whether the proxy answers the pod's DNS requests. Rules for that leave out the proxy's own user only: excluded ports
// do not count. Source: handleCaptureByOwnerGroup and ConfigureRules of tools/istio-iptables in Istio 1.31.
func capturesDNS(proxy *container) bool {
	v, _ := proxy.literalEnvValue("ISTIO_META_DNS_CAPTURE")
	return v == "true"
}

// excludesPorts reports whether the ports that the container needs are not captured; where they are not known, whether any port is left out.
func excludesPorts(p *pod, c container) bool {
	excluded := fieldsOf(p.trafficSetting("-o", "excludeOutboundPorts", ""))
	needed := c.remotePorts()
	missing := slices.ContainsFunc(needed, func(port string) bool { return !slices.Contains(excluded, port) })
	return len(excluded) > 0 && !missing
}

// excludesAddresses reports whether addresses are not captured. Those of a cloud's metadata server are left out in many meshes as a whole and
// are not what an init container is about.
func excludesAddresses(p *pod) bool {
	return slices.ContainsFunc(fieldsOf(p.trafficSetting("-x", "excludeOutboundIPRanges", "")), func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && !prefix.Addr().IsLinkLocalUnicast() && !prefix.Addr().IsLoopback()
	})
}

// bypassesProxy reports whether settings of the pod keep the traffic of the container out of the capture.
func bypassesProxy(p *pod, c container) bool {
	return excludesAddresses(p) || excludesPorts(p, c) && !capturesDNS(p.proxy)
}

// bypassAdvice describes what is missing from an ineffective exclusion.
func bypassAdvice(p *pod, c container) string {
	needed := c.remotePorts()
	switch {
	case capturesDNS(p.proxy):
		return "; its DNS requests are captured too, so that excludeOutboundPorts does not help: let it run as user 1337"
	case len(needed) > 0:
		return fmt.Sprintf("; set traffic.sidecar.istio.io/excludeOutboundPorts: %q, or let it run as user 1337", strings.Join(needed, ","))
	}
	return ""
}
