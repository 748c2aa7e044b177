// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// validateProxyConfig checks the proxy config that results from the annotation proxy.istio.io/config over the
// defaults. The webhook rejects pods for which it is invalid (source: validateProxyConfig in
// pkg/kube/inject/validate.go, which calls ValidateProxyConfig, later ValidateMeshConfigProxyConfig, of
// pkg/config/validation). It returns the first problem as the error. Up to 1.16 the proxy's former process had its
// own shutdown time, which has to be longer than the drain.
func validateProxyConfig(pc *mesh.ProxyConfig, profile *istio.Profile) error {
	if err := validatePlaces(pc); err != nil {
		return err
	}
	if err := validateDrain(pc, profile.Release()); err != nil {
		return err
	}
	if err := validateAddresses(pc, profile); err != nil {
		return err
	}
	if err := validateTLS(pc.GetTracing().GetTlsSettings(), profile); err != nil {
		return fmt.Errorf("tracing.tlsSettings: %w", err)
	}
	if err := validatePorts(pc, profile); err != nil {
		return err
	}
	if p := pc.GetControlPlaneAuthPolicy(); p != mesh.AuthenticationPolicyNone && p != mesh.AuthenticationPolicyMutualTls {
		return fmt.Errorf("controlPlaneAuthPolicy: %s is neither NONE nor MUTUAL_TLS", p)
	}
	if profile.Has(feature.ValidatePrivateKeyProvider) {
		if err := validatePrivateKeyProvider(pc.GetPrivateKeyProvider()); err != nil {
			return fmt.Errorf("privateKeyProvider: %w", err)
		}
	}
	if profile.Has(feature.ValidateConnectionSettings) {
		if err := validateConnectionSettings(pc.GetConnectionSettings()); err != nil {
			return fmt.Errorf("connectionSettings: %w", err)
		}
	}
	return nil
}

// validateAddresses checks where the proxy finds other services.
func validateAddresses(pc *mesh.ProxyConfig, profile *istio.Profile) error {
	tracing := pc.GetTracing()
	// The addresses of tracers can have the node's as a variable of the pod.
	onNode := func(address string) string { return strings.Replace(address, "$(HOST_IP)", "127.0.0.1", 1) }
	zipkin := tracing.GetZipkin().GetAddress()
	if profile.Has(feature.ValidateHostIP) {
		zipkin = onNode(zipkin)
	}
	for _, a := range []struct {
		field, address string
		needed         bool
	}{
		{"discoveryAddress", pc.GetDiscoveryAddress(), true},
		{"tracing.lightstep.address", tracing.GetLightstep().GetAddress(), tracing.GetLightstep() != nil},
		{"tracing.zipkin.address", zipkin, tracing.GetZipkin() != nil},
		{"tracing.datadog.address", onNode(tracing.GetDatadog().GetAddress()), tracing.GetDatadog() != nil},
		{"statsdUdpAddress", pc.GetStatsdUdpAddress(), false},
		{"envoyMetricsServiceAddress", pc.GetEnvoyMetricsServiceAddress(), false},
		{"envoyMetricsService.address", pc.GetEnvoyMetricsService().GetAddress(), false},
		{"envoyAccessLogService.address", pc.GetEnvoyAccessLogService().GetAddress(), false},
	} {
		if a.address == "" && !a.needed {
			continue
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

func validatePorts(pc *mesh.ProxyConfig, profile *istio.Profile) error {
	for _, p := range []struct {
		field   string
		port    int32
		checked bool
	}{{"proxyAdminPort", pc.GetProxyAdminPort(), true}, {"statusPort", pc.GetStatusPort(), profile.Has(feature.ValidateStatusPort)}} {
		if p.checked && (p.port < 1 || p.port > 65535) {
			return fmt.Errorf("%s: %d is not a port", p.field, p.port)
		}
	}
	return nil
}

func validatePlaces(pc *mesh.ProxyConfig) error {
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

func validateDrain(pc *mesh.ProxyConfig, in release.Release) error {
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
func wholeSeconds(d *mesh.Duration) (time.Duration, error) {
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
