// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Certificate is the content of a certificate.
type Certificate struct {
	// CommonName of the subject, and its other names.
	CommonName string
	IPs        []net.IP
	Names      []string
	// From is when it begins, and Days how long it is valid.
	From time.Time
	Days int
	// Authority reports whether it can sign others.
	Authority bool
}

// Signer is who signs a certificate: the text of its own one, and its key.
type Signer struct{ Certificate, Key string }

// Sign returns the text of a certificate for a key. Without a signer it is signed by its own key. The serial number comes from the stream.
func (c Certificate) Sign(serial *Stream, key crypto.Signer, by *Signer) (string, error) {
	number := new(big.Int).SetBytes(serial.Bytes(16))
	template := &x509.Certificate{
		SerialNumber: number.SetBit(number, 0, 1), // never 0
		Subject:      pkix.Name{CommonName: c.CommonName},
		IPAddresses:  c.IPs,
		DNSNames:     c.Names,
		NotBefore:    c.From,
		NotAfter:     c.From.Add(24 * time.Hour * time.Duration(c.Days)),
		KeyUsage:     x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},

		BasicConstraintsValid: true,
	}
	if c.Authority {
		template.KeyUsage |= x509.KeyUsageCertSign
		template.IsCA = true
	}
	parent, signing := template, key
	if by != nil {
		var err error
		if parent, err = decodeCertificate(by.Certificate); err != nil {
			return "", err
		}
		if signing, err = DecodeKey(by.Key); err != nil {
			return "", err
		}
	}
	// Without a reader, signatures are those of RFC 6979 where they would need randomness.
	der, err := x509.CreateCertificate(nil, template, parent, key.Public(), signing)
	if err != nil {
		return "", fmt.Errorf("signing a certificate for %s: %w", c.CommonName, err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), nil
}

func decodeCertificate(text string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("reading the signer's certificate: it is no PEM")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the signer's certificate: %w", err)
	}
	return certificate, nil
}
