// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"golang.org/x/crypto/ssh"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/publish"
)

func TestSignSSH(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("open"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	secret := map[string][]byte{"identity": pem.EncodeToMemory(block), "password": []byte("open")}
	signer, err := publish.NewSigner("Auto", secret)
	if err != nil {
		t.Fatal(err)
	}
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	b.Signer = signer
	run(t, b, change(t, "shop", "shop", configMap("a", "1")))
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	allowed := filepath.Join(t.TempDir(), "allowed")
	if err := os.WriteFile(allowed, append([]byte("prerig@prerig.dev "), ssh.MarshalAuthorizedKey(key)...), 0o600); err != nil {
		t.Fatal(err)
	}
	repository.Git("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", "rendered")
	if _, err := publish.NewSigner("SSH", map[string][]byte{"identity": secret["identity"], "password": []byte("wrong-one")}); err == nil || strings.Contains(err.Error(), "wrong-one") {
		t.Errorf("got %v", err)
	}
}

func TestSignOpenPGP(t *testing.T) {
	entity, err := openpgp.NewEntity("Prerig", "", "prerig@prerig.dev", nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := publish.NewSigner("Auto", map[string][]byte{"git.asc": armored(t, openpgp.PrivateKeyType, func(w *bytes.Buffer) error { return entity.SerializePrivate(w, nil) })})
	if err != nil {
		t.Fatal(err)
	}
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	b.Signer = signer
	run(t, b, change(t, "shop", "shop", configMap("a", "1")))
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("gpg is not installed")
	}
	t.Setenv("GNUPGHOME", t.TempDir())
	importing := exec.Command("gpg", "--batch", "--quiet", "--import")
	importing.Stdin = bytes.NewReader(armored(t, openpgp.PublicKeyType, func(w *bytes.Buffer) error { return entity.Serialize(w) }))
	if out, err := importing.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	repository.Git("verify-commit", "rendered")
}

func armored(t *testing.T, kind string, write func(*bytes.Buffer) error) []byte {
	t.Helper()
	var plain, out bytes.Buffer
	if err := write(&plain); err != nil {
		t.Fatal(err)
	}
	w, err := armor.Encode(&out, kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
