// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"crypto"
	"crypto/dsa" //nolint:staticcheck // charts can ask for such keys
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
)

// RSA returns a key of so many bits, a multiple of 16.
func (s *Stream) RSA(bits int) (*rsa.PrivateKey, error) {
	one, exponent := big.NewInt(1), big.NewInt(65537)
	p, q := s.prime(bits/2, exponent), s.prime(bits/2, exponent)
	// FIPS 186-5, A.1.3: primes that are close to each other are easily found.
	for near := bits/2 - 100; new(big.Int).Sub(p, q).BitLen() <= near; {
		q = s.prime(bits/2, exponent)
	}
	if p.Cmp(q) < 0 {
		p, q = q, p
	}
	pLess, qLess := new(big.Int).Sub(p, one), new(big.Int).Sub(q, one)
	lambda := new(big.Int).Mul(pLess, qLess)
	lambda.Div(lambda, new(big.Int).GCD(nil, nil, pLess, qLess))
	key := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: int(exponent.Int64())},
		D:         new(big.Int).ModInverse(exponent, lambda),
		Primes:    []*big.Int{p, q},
	}
	key.Precompute()
	if err := key.Validate(); err != nil {
		return nil, fmt.Errorf("deriving a key: %w", err)
	}
	return key, nil
}

// ECDSA returns a key on the curve P-256.
func (s *Stream) ECDSA() *ecdsa.PrivateKey {
	for {
		// The numbers that are none of a key are as rare as guesses of it.
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), s.Bytes(32)); err == nil {
			return key
		}
	}
}

// Ed25519 returns a key.
func (s *Stream) Ed25519() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(s.Bytes(ed25519.SeedSize))
}

// DSA returns a key of 2048 bits in a group of 256, with parameters of its own.
func (s *Stream) DSA() *dsa.PrivateKey {
	const bits, groupBits = 2048, 256
	one := big.NewInt(1)
	q := s.prime(groupBits, nil)
	step := new(big.Int).Lsh(q, 1)
	var p *big.Int
	for p == nil {
		start := s.number(bits)
		start.Sub(start, new(big.Int).Mod(start, step)) // and one more, so that q divides p-1
		p = firstPrime(start.Add(start, one), step, bits)
	}
	key := &dsa.PrivateKey{}
	key.P, key.Q = p, q
	power := new(big.Int).Div(new(big.Int).Sub(p, one), q)
	for h := int64(2); key.G == nil || key.G.Cmp(one) == 0; h++ {
		key.G = new(big.Int).Exp(big.NewInt(h), power, p)
	}
	// 64 bits more than the group has, so that all numbers are as good as equally likely.
	key.X = new(big.Int).SetBytes(s.Bytes(groupBits/8 + 8))
	key.X.Add(key.X.Mod(key.X, new(big.Int).Sub(q, one)), one)
	key.Y = new(big.Int).Exp(key.G, key.X, p)
	return key
}

// dsaKey is how OpenSSL writes keys of DSA.
type dsaKey struct {
	Version       int
	P, Q, G, Y, X *big.Int
}

// EncodeKey returns a key as OpenSSL writes keys of its kind: PKCS#1 for RSA, SEC 1 for ECDSA, PKCS#8 for others.
func EncodeKey(key crypto.PrivateKey) (string, error) {
	block := &pem.Block{}
	var err error
	switch key := key.(type) {
	case *rsa.PrivateKey:
		block.Type, block.Bytes = "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)
	case *ecdsa.PrivateKey:
		block.Type = "EC PRIVATE KEY"
		block.Bytes, err = x509.MarshalECPrivateKey(key)
	case *dsa.PrivateKey:
		block.Type = "DSA PRIVATE KEY"
		block.Bytes, err = asn1.Marshal(dsaKey{0, key.P, key.Q, key.G, key.Y, key.X})
	default:
		block.Type = "PRIVATE KEY"
		block.Bytes, err = x509.MarshalPKCS8PrivateKey(key)
	}
	if err != nil {
		return "", fmt.Errorf("writing a private key: %w", err)
	}
	return string(pem.EncodeToMemory(block)), nil
}

// DecodeKey parses the output of EncodeKey, except for keys that cannot sign certificates. Errors contain no part
// of the text.
func DecodeKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("reading a private key: it is no PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("reading a private key: keys of the type %q cannot be used for certificates", block.Type)
	}
	if err != nil {
		return nil, errors.New("reading a private key: it is none")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading a private key: one of type %T cannot sign", key)
	}
	return signer, nil
}
