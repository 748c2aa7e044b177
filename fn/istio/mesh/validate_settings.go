// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
)

// configMapCredential begins the credentialName of a certificate that is in a ConfigMap.
const configMapCredential = "configmap://"

// validateTLS checks the TLS settings of the tracer (source: ValidateTLS in pkg/config/validation).
func validateTLS(s *ClientTLSSettings, r release.Release) error {
	if s == nil {
		return nil
	}
	simple, mutual := s.Mode == TLSmodeSimple, s.Mode == TLSmodeMutual
	if feature.In(r, feature.ValidateTLSConfigMap) && strings.HasPrefix(s.CredentialName, configMapCredential) {
		return errors.New("credentialName: a ConfigMap is of a namespace, and a proxy config is of none")
	}
	if feature.In(r, feature.ValidateTLSUnverified) && s.InsecureSkipVerify.GetValue() {
		if (simple || mutual) && (s.CaCertificates != "" || len(s.SubjectAltNames) > 0) || simple && s.CredentialName != "" {
			return errors.New("insecureSkipVerify: it must not be true beside what is to be verified")
		}
	}
	if feature.In(r, feature.ValidateTLSCredentials) && (simple || mutual) && s.CredentialName != "" {
		revocation := feature.In(r, feature.ValidateTLSRevocation) && s.CaCrl != ""
		if s.ClientCertificate != "" || s.CaCertificates != "" || s.PrivateKey != "" || revocation {
			return errors.New("credentialName: it must not stand beside certificates")
		}
		return nil
	}
	if mutual && (s.ClientCertificate == "" || s.PrivateKey == "") {
		return errors.New("mode MUTUAL needs clientCertificate and privateKey")
	}
	return nil
}

// validatePrivateKeyProvider checks the hardware that signs (source: validatePrivateKeyProvider in pkg/config/validation).
func validatePrivateKeyProvider(p *PrivateKeyProvider) error {
	switch {
	case p == nil:
		return nil
	case p.Cryptomb != nil:
		return pollDelay("cryptomb", p.Cryptomb.PollDelay)
	case p.Qat != nil:
		return pollDelay("qat", p.Qat.PollDelay)
	default:
		return errors.New("it names no provider")
	}
}

func pollDelay(provider string, d *Duration) error {
	if d.GetSeconds() == 0 && d.GetNanos() == 0 {
		return fmt.Errorf("%s.pollDelay: it must be set and not be 0s", provider)
	}
	return nil
}

// smallestWindow is the smallest window of HTTP/2, in bytes.
const smallestWindow = 65535

// validateConnectionSettings checks limits and timeouts (source: validateConnectionSettings in pkg/config/validation).
func validateConnectionSettings(s *ConnectionSettings) error {
	if s == nil {
		return nil
	}
	for _, d := range []struct {
		field string
		value *Duration
	}{
		{"httpIdleTimeout", s.HttpIdleTimeout}, {"httpMaxConnectionDuration", s.HttpMaxConnectionDuration},
		{"httpDrainTimeout", s.HttpDrainTimeout}, {"httpRequestTimeout", s.HttpRequestTimeout},
		{"httpRequestHeadersTimeout", s.HttpRequestHeadersTimeout}, {"httpStreamIdleTimeout", s.HttpStreamIdleTimeout},
		{"httpMaxStreamDuration", s.HttpMaxStreamDuration},
	} {
		if d.value.AsDuration() < 0 {
			return fmt.Errorf("%s: %s is less than 0s", d.field, d.value.AsDuration())
		}
	}
	for _, n := range []struct {
		field string
		value *Int32Value
		least int32
	}{
		{"listenerPerConnectionBufferLimitBytes", s.ListenerPerConnectionBufferLimitBytes, 0},
		{"clusterPerConnectionBufferLimitBytes", s.ClusterPerConnectionBufferLimitBytes, 0},
		{"httpMaxConcurrentStreams", s.HttpMaxConcurrentStreams, 1},
		{"http2InitialStreamWindowSize", s.Http2InitialStreamWindowSize, smallestWindow},
		{"http2InitialConnectionWindowSize", s.Http2InitialConnectionWindowSize, smallestWindow},
		{"listenerConnectionLimit", s.ListenerConnectionLimit, 1},
		{"globalDownstreamConnectionLimit", s.GlobalDownstreamConnectionLimit, 1},
	} {
		if n.value != nil && n.value.Value < n.least {
			return fmt.Errorf("%s: %d is less than %d", n.field, n.value.Value, n.least)
		}
	}
	return nil
}
