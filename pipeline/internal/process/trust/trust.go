// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package trust adds certificate authorities of users' own to those of the system.
package trust

import (
	"crypto/tls"
	"crypto/x509"
)

// Authorities returns the settings of a TLS client that trusts the authorities of the system and those of
// certificates in PEM form, or false if these contain no certificate.
func Authorities(certificates []byte) (config *tls.Config, ok bool) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, pool.AppendCertsFromPEM(certificates)
}
