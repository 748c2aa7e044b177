// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The files of a cluster that the processes share.
const (
	caFile             = "ca.crt"
	serverCertFile     = "server.crt"
	serverKeyFile      = "server.key"
	serviceAccountFile = "service-accounts.key"
	tokenFile          = "tokens.csv"
)

// writeCertificates writes a new authority, the API server's certificate and the key of service accounts into a directory.
func writeCertificates(dir string) error {
	caKey, err := newKey(dir, "ca.key")
	if err != nil {
		return err
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "prerig-test"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if err := writeCertificate(dir, caFile, ca, ca, caKey, caKey); err != nil {
		return err
	}
	serverKey, err := newKey(dir, serverKeyFile)
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"kubernetes", "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if err := writeCertificate(dir, serverCertFile, server, ca, serverKey, caKey); err != nil {
		return err
	}
	_, err = newKey(dir, serviceAccountFile)
	return err
}

// newKey makes a private key and writes it.
func newKey(dir, name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(dir, name, "EC PRIVATE KEY", der)
}

// writeCertificate writes a certificate that parent signs.
func writeCertificate(dir, name string, cert, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, parentKey)
	if err != nil {
		return fmt.Errorf("signing %s: %w", name, err)
	}
	return writePEM(dir, name, "CERTIFICATE", der)
}

func writePEM(dir, name, kind string, der []byte) error {
	return os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
