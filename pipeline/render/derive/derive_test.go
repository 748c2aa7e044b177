// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package derive_test

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/prerig/prerig/pipeline/render/derive"
)

var testSeed = []byte(strings.Repeat("0123456789abcdef", 2))

func keyFor(t testing.TB, parts ...string) *derive.Key {
	t.Helper()
	key, err := derive.NewKey(testSeed, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16] }

// TestValuesOfEarlierVersions holds what values are for good: a password that is another one locks people out.
func TestValuesOfEarlierVersions(t *testing.T) {
	key := keyFor(t, "shop", "web")
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rsaKey, err := key.Stream("rsa").RSA(2048)
	if err != nil {
		t.Fatal(err)
	}
	large, err := key.Stream("rsa").RSA(4096)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := derive.Certificate{CommonName: "web", Names: []string{"web.shop.svc"}, From: from, Days: 365}.Sign(key.Stream("serial"), rsaKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	byECDSA, err := derive.Certificate{CommonName: "web", From: from, Days: 365, Authority: true}.Sign(key.Stream("serial"), key.Stream("ecdsa").ECDSA(), nil)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := key.Stream("bcrypt").Bcrypt("secret")
	if err != nil {
		t.Fatal(err)
	}
	encode := func(of any) string {
		text, err := derive.EncodeKey(of)
		if err != nil {
			t.Fatal(err)
		}
		return sum(text)
	}
	shuffled := []rune("abcdefgh")
	key.Stream("shuffle").Shuffle(shuffled)
	got := []string{
		key.Stream("text").Text("abcdefghijklmnopqrstuvwxyz", 20), fmt.Sprint(key.Stream("number").Below(1000)), string(shuffled), encode(rsaKey), encode(large),
		encode(key.Stream("ecdsa").ECDSA()), encode(key.Stream("ed25519").Ed25519()), encode(key.Stream("dsa").DSA()), sum(certificate), sum(byECDSA), hash, key.Check(),
	}
	want := []string{
		"xwohoeoqdvcxcgfdzfma", "899", "hbcedgfa", "50504ad814268b91", "2b767f45956adf83", "73ddcea6b27dc2ba", "0a0ef63c9c4bc722", "0a714b14460cc7d0",
		"deec485a74bd22d0", "7292d890760d269d", "$2a$10$XWLmujLYkKszKrd5GGonDOAwUN786UWGcrYzzApVMesUY9MSW37Wm", "2147c79cf379f40baa00d7ac6027c8b5",
	}
	for i, one := range got {
		if i >= len(want) || one != want[i] {
			t.Errorf("%d: %s", i, one)
		}
	}
}

func TestKeysAreOfTheirPartsAndSeed(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][]string{{}, {""}, {"a"}, {"a", "b"}, {"ab"}, {"", "ab"}, {"b", "a"}} {
		seen[keyFor(t, parts...).Check()] = true
		seen[keyFor(t, "x").Stream(parts...).Text("0123456789abcdef", 32)] = true
	}
	other, err := derive.NewKey([]byte(strings.Repeat("x", 32)), "a")
	if err != nil {
		t.Fatal(err)
	}
	seen[other.Check()] = true
	if len(seen) != 15 {
		t.Errorf("%d of 15 are different", len(seen))
	}
	if _, err := derive.NewKey([]byte("short")); err == nil || strings.Contains(err.Error(), "short") {
		t.Error(err)
	}
	again, err := derive.KeyOf(other.Bytes())
	if err != nil || again.Check() != other.Check() {
		t.Error(err)
	}
	if _, err := derive.KeyOf([]byte("short")); err == nil {
		t.Error("a short key")
	}
}

// TestKeysDoNotPrint looks for the bytes of a key in whatever prints one.
func TestKeysDoNotPrint(t *testing.T) {
	key := keyFor(t, "shop")
	text, err := json.Marshal(map[string]any{"key": key})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", key)
	holder := struct{ Key *derive.Key }{key}
	for _, text := range []string{string(text), log.String(), fmt.Sprintf("%v %+v %#v %x %s %q %d", key, key, key, key, key, key, key), fmt.Sprintf("%+v", holder)} {
		if strings.Contains(text, fmt.Sprintf("%x", key.Bytes())) || strings.Contains(text, string(key.Bytes())) || strings.Contains(text, fmt.Sprint(key.Bytes())[1:20]) {
			t.Error(text)
		}
	}
}

func TestNumbersAreEquallyLikely(t *testing.T) {
	stream := keyFor(t).Stream("n")
	var counts [7]int
	for range 70_000 {
		counts[stream.Below(7)]++
	}
	for i, n := range counts {
		if n < 9_500 || n > 10_500 {
			t.Errorf("%d came %d times", i, n)
		}
	}
	if err := quick.Check(func(n uint64) bool { return n == 0 || stream.Below(n) < n }, nil); err != nil {
		t.Error(err)
	}
}

func TestBcrypt(t *testing.T) {
	for i, password := range []string{"", "x", "pässwörd", strings.Repeat("x", 72)} {
		hash, err := keyFor(t).Stream(fmt.Sprint(i)).Bcrypt(password)
		if err != nil || bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) != nil {
			t.Errorf("%q: %s, %v", password, hash, err)
		}
		if bcrypt.CompareHashAndPassword([]byte(hash), []byte(password[:len(password)/2]+"y")) == nil {
			t.Errorf("%q is not needed", password)
		}
	}
	if _, err := keyFor(t).Stream().Bcrypt(strings.Repeat("x", 73)); err == nil {
		t.Error("a password that is too long")
	}
}

// TestKeysForOpenSSL has OpenSSL check the keys, and a chain of certificates of all that can sign.
func TestKeysForOpenSSL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	key, dir := keyFor(t, "openssl"), t.TempDir()
	write := func(name, text string) string {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("openssl", args...).CombinedOutput()
		if err != nil {
			t.Errorf("openssl %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	rsaKey, err := key.Stream("rsa").RSA(2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]any{"rsa": rsaKey, "ecdsa": key.Stream("ecdsa").ECDSA(), "ed25519": key.Stream("ed").Ed25519(), "dsa": key.Stream("dsa").DSA()} {
		text, err := derive.EncodeKey(one)
		if err != nil {
			t.Fatal(err)
		}
		at := write(name+".pem", text)
		run("pkey", "-in", at, "-noout", "-text", "-check")
		signer, err := derive.DecodeKey(text)
		if name == "dsa" {
			if err == nil {
				t.Error("a key of DSA for certificates")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now().Add(-time.Hour)
		ca, err := derive.Certificate{CommonName: "ca " + name, From: now, Days: 10, Authority: true}.Sign(key.Stream("serial", name), signer, nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := derive.Certificate{CommonName: "web", Names: []string{"web.shop.svc"}, From: now, Days: 5}.Sign(key.Stream("serial 2", name), rsaKey, &derive.Signer{Certificate: ca, Key: text})
		if err != nil {
			t.Fatal(err)
		}
		run("verify", "-x509_strict", "-CAfile", write("ca.crt", ca), "-verify_hostname", "web.shop.svc", write("leaf.crt", leaf))
	}
}

// TestManyKeys makes many small keys, as two primes of which the second is drawn again are rare.
func TestManyKeys(t *testing.T) {
	seen := map[string]bool{}
	for i := range 10 {
		key, err := keyFor(t).Stream(fmt.Sprint(i)).RSA(1024)
		if err != nil {
			t.Fatal(err)
		}
		if key.N.BitLen() != 1024 || key.Primes[0].Cmp(key.Primes[1]) <= 0 || seen[key.N.String()] {
			t.Errorf("%d bits", key.N.BitLen())
		}
		seen[key.N.String()] = true
		sealed, err := rsa.SignPKCS1v15(nil, key, 0, []byte("text"))
		if err != nil || rsa.VerifyPKCS1v15(&key.PublicKey, 0, []byte("text"), sealed) != nil {
			t.Error(err)
		}
	}
}
