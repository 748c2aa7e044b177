// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/git"
)

// Keys of a signing secret.
const (
	KeyOpenPGP    = "git.asc"
	KeySSH        = "identity"
	KeyPassphrase = "password"
)

// NewSigner returns the signer for the key in a secret. Errors never contain parts of the key.
func NewSigner(format v1alpha1.SigningFormat, secret map[string][]byte) (git.Signer, error) {
	if format == v1alpha1.SigningAuto || format == "" {
		format = v1alpha1.SigningSSH
		if len(secret[KeyOpenPGP]) > 0 {
			format = v1alpha1.SigningOpenPGP
		}
	}
	if format == v1alpha1.SigningOpenPGP {
		return newOpenPGP(secret)
	}
	return newSSH(secret)
}

type openPGP struct{ entity *openpgp.Entity }

func newOpenPGP(secret map[string][]byte) (git.Signer, error) {
	ring, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(secret[KeyOpenPGP]))
	if err != nil || len(ring) != 1 || ring[0].PrivateKey == nil {
		return nil, fmt.Errorf("signing secret's %s is not one armored OpenPGP private key", KeyOpenPGP)
	}
	if err := ring[0].DecryptPrivateKeys(secret[KeyPassphrase]); err != nil {
		return nil, fmt.Errorf("signing secret's %s is not opened by its %s", KeyOpenPGP, KeyPassphrase)
	}
	return &openPGP{ring[0]}, nil
}

// Sign implements git.Signer.
func (s *openPGP) Sign(message []byte) (string, error) {
	var out strings.Builder
	if err := openpgp.ArmoredDetachSign(&out, s.entity, bytes.NewReader(message), nil); err != nil {
		return "", err
	}
	return out.String() + "\n", nil
}

type sshKey struct{ signer ssh.Signer }

func newSSH(secret map[string][]byte) (git.Signer, error) {
	signer, err := ssh.ParsePrivateKey(secret[KeySSH])
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(secret[KeySSH], secret[KeyPassphrase])
	}
	if err != nil {
		return nil, fmt.Errorf("signing secret has neither %s nor an %s that is a private key which its %s opens", KeyOpenPGP, KeySSH, KeyPassphrase)
	}
	return &sshKey{signer}, nil
}

// Sign implements git.Signer, with the namespace and digest that git itself uses (gpg.format=ssh).
func (s *sshKey) Sign(message []byte) (string, error) {
	signature, err := sshsig.Sign(bytes.NewReader(message), s.signer, sshsig.HashSHA512, "git")
	if err != nil {
		return "", err
	}
	return string(sshsig.Armor(signature)), nil
}
