// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"

	"github.com/prerig/prerig/pipeline/internal/process/livefile"
)

// TLSConfig returns the TLS configuration of an address with the certificate and key of two files. They are
// reloaded when they change; an invalid pair leaves the previous one in use. It returns an error if the initial
// pair is invalid.
func TLSConfig(certificateFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	var joined int // where the key begins in what was read
	pair, err := livefile.Open("the certificate "+certificateFile, log, func() ([]byte, error) {
		certificate, err := os.ReadFile(certificateFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate: %w", err)
		}
		key, err := os.ReadFile(keyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the key of the certificate: %w", err)
		}
		joined = len(certificate)
		return bytes.Join([][]byte{certificate, key}, nil), nil
	}, func(data []byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(data[:joined], data[joined:])
		if err != nil {
			return nil, fmt.Errorf("reading the certificate %s with the key %s: %w", certificateFile, keyFile, err)
		}
		return &pair, nil
	})
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// A connection of HTTP/2 has many requests at once, and the bounds of this server are for connections.
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Get(), nil },
	}, nil
}
