// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// ValidateProxyConfig checks the proxy config that results from the annotation proxy.istio.io/config over the
// defaults, and the defaultConfig of a mesh config. The webhook rejects pods for which it is invalid, and istiod such a mesh
// config (source: validateProxyConfig in pkg/kube/inject/validate.go, which calls ValidateProxyConfig, later ValidateMeshConfigProxyConfig, of
// pkg/config/validation). It returns the first problem as the error. Up to 1.16 the proxy's former process had its
// own shutdown time, which has to be longer than the drain.
func ValidateProxyConfig(pc *ProxyConfig, r release.Release) error {
	if err := validatePlaces(pc); err != nil {
		return err
	}
	if err := validateDrain(pc, r); err != nil {
		return err
	}
	if err := validateAddresses(pc, r); err != nil {
		return err
	}
	if err := validateTLS(pc.GetTracing().GetTlsSettings(), r); err != nil {
		return fmt.Errorf("tracing.tlsSettings: %w", err)
	}
	if err := validatePorts(pc, r); err != nil {
		return err
	}
	if p := pc.GetControlPlaneAuthPolicy(); p != AuthenticationPolicyNone && p != AuthenticationPolicyMutualTls {
		return fmt.Errorf("controlPlaneAuthPolicy: %s is neither NONE nor MUTUAL_TLS", p)
	}
	if feature.In(r, feature.ValidatePrivateKeyProvider) {
		if err := validatePrivateKeyProvider(pc.GetPrivateKeyProvider()); err != nil {
			return fmt.Errorf("privateKeyProvider: %w", err)
		}
	}
	if feature.In(r, feature.ValidateConnectionSettings) {
		if err := validateConnectionSettings(pc.GetConnectionSettings()); err != nil {
			return fmt.Errorf("connectionSettings: %w", err)
		}
	}
	return nil
}

// validateAddresses checks where the proxy finds other services.
func validateAddresses(pc *ProxyConfig, r release.Release) error {
	tracing := pc.GetTracing()
	// The addresses of tracers can have the node's as a variable of the pod.
	onNode := func(address string) string { return strings.Replace(address, "$(HOST_IP)", "127.0.0.1", 1) }
	zipkin := tracing.GetZipkin().GetAddress()
	if feature.In(r, feature.ValidateHostIP) {
		zipkin = onNode(zipkin)
	}
	for _, a := range []struct {
		field, port, address string // port is the usual one
		needed               bool
	}{
		{"discoveryAddress", "15012", pc.GetDiscoveryAddress(), true},
		{"tracing.lightstep.address", "8383", tracing.GetLightstep().GetAddress(), tracing.GetLightstep() != nil},
		{"tracing.zipkin.address", "9411", zipkin, tracing.GetZipkin() != nil},
		{"tracing.datadog.address", "8126", onNode(tracing.GetDatadog().GetAddress()), tracing.GetDatadog() != nil},
		{"statsdUdpAddress", "9125", pc.GetStatsdUdpAddress(), false},
		{"envoyMetricsServiceAddress", "15000", pc.GetEnvoyMetricsServiceAddress(), false},
		{"envoyMetricsService.address", "15000", pc.GetEnvoyMetricsService().GetAddress(), false},
		{"envoyAccessLogService.address", "15000", pc.GetEnvoyAccessLogService().GetAddress(), false},
	} {
		if a.address == "" && !a.needed {
			continue
		}
		if a.address != "" && !strings.Contains(a.address, ":") {
			return fmt.Errorf("%s: %q is not HOST:PORT; add the port, such as %s:%s", a.field, a.address, a.address, a.port)
		}
		if err := proxyAddress(a.address); err != nil {
			return fmt.Errorf("%s: %w", a.field, err)
		}
	}
	if l := tracing.GetLightstep(); l != nil && l.GetAccessToken() == "" {
		return errors.New("tracing.lightstep.accessToken: it must not be empty")
	}
	return nil
}

func validatePorts(pc *ProxyConfig, r release.Release) error {
	for _, p := range []struct {
		field   string
		port    int32
		checked bool
	}{{"proxyAdminPort", pc.GetProxyAdminPort(), true}, {"statusPort", pc.GetStatusPort(), feature.In(r, feature.ValidateStatusPort)}} {
		if p.checked && (p.port < 1 || p.port > 65535) {
			return fmt.Errorf("%s: %d is not a port", p.field, p.port)
		}
	}
	return nil
}

func validatePlaces(pc *ProxyConfig) error {
	for _, f := range []struct{ field, value string }{{"configPath", pc.GetConfigPath()}, {"binaryPath", pc.GetBinaryPath()}} {
		if f.value == "" {
			return fmt.Errorf("%s: it must not be empty", f.field)
		}
	}
	if pc.Cluster != nil && *pc.Cluster == "" {
		return errors.New("serviceCluster: it must not be empty")
	}
	return nil
}

// maxDrain is how long draining could take at most up to 1.16.
const maxDrain = time.Hour

func validateDrain(pc *ProxyConfig, in release.Release) error {
	drain, err := wholeSeconds(pc.GetDrainDuration())
	if err != nil {
		return fmt.Errorf("drainDuration: %w", err)
	}
	if !feature.In(in, feature.ParentShutdown) {
		return nil
	}
	parent, err := wholeSeconds(pc.GetParentShutdownDuration())
	switch {
	case err != nil:
		return fmt.Errorf("parentShutdownDuration: %w", err)
	case parent <= drain:
		return fmt.Errorf("parentShutdownDuration: %s is not longer than drainDuration, which is %s", parent, drain)
	case parent > maxDrain:
		return fmt.Errorf("parentShutdownDuration: %s is longer than %s", parent, maxDrain)
	}
	return nil
}

// wholeSeconds is a duration of the mesh, which has to be of whole seconds, and more than none.
func wholeSeconds(d *Duration) (time.Duration, error) {
	if d == nil {
		return 0, errors.New("it is not set")
	}
	out := time.Duration(d.Seconds)*time.Second + time.Duration(d.Nanos)
	switch {
	case out < time.Millisecond:
		return 0, fmt.Errorf("%s is too short", out)
	case out%time.Second != 0:
		return 0, fmt.Errorf("%s is not in whole seconds", out)
	}
	return out, nil
}

// hostLabel is one part of a host's name.
var hostLabel = lazyregexp.New(`^[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$`)

// proxyAddress checks HOST:PORT, where the host is a name or an address.
func proxyAddress(s string) error {
	host, text, ok := hostAndPort(s)
	if !ok {
		return fmt.Errorf("%q is not HOST:PORT", s)
	}
	if port, err := strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
		return fmt.Errorf("%q is not a port", text)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	labels := strings.Split(host, ".")
	_, notName := strconv.Atoi(labels[len(labels)-1])
	if len(host) > 255 || notName == nil {
		return fmt.Errorf("%q is neither the name of a host nor an IP address", host)
	}
	for _, label := range strings.Split(strings.TrimSuffix(host, "."), ".") {
		if !hostLabel.MatchString(label) {
			return fmt.Errorf("%q is neither the name of a host nor an IP address", host)
		}
	}
	return nil
}

// hostAndPort splits HOST:PORT as Go's net does, without importing that package. A host with colons must be in
// brackets, and brackets are not allowed elsewhere.
func hostAndPort(s string) (host, port string, ok bool) {
	last := strings.LastIndexByte(s, ':')
	if last < 0 {
		return "", "", false
	}
	host, port = s[:last], s[last+1:]
	if inside, bracketed := strings.CutPrefix(host, "["); bracketed {
		if host, ok = strings.CutSuffix(inside, "]"); !ok {
			return "", "", false
		}
	} else if strings.Contains(host, ":") {
		return "", "", false
	}
	return host, port, !strings.ContainsAny(host+port, "[]")
}
