// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// authority makes certificates for this machine.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	a := &authority{t: t, key: key, file: filepath.Join(dir, "ca.crt")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	a.certificate, err = x509.ParseCertificate(der)
	must(t, err)
	must(t, os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return a
}

// issue writes a certificate with a serial number to tls.crt, and its key to tls.key.
func (a *authority) issue(dir string, serial int64) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	must(a.t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(a.t, err)
	must(a.t, os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	must(a.t, os.WriteFile(filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
}

// serial connects to an address and returns the serial number of its certificate.
func (a *authority) serial(address string) (int64, error) {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

const bothOverTLS = "tls: {certificate: tls.crt, key: tls.key}\nadmin: {listen: \"127.0.0.1:0\", tls: {certificate: tls.crt, key: tls.key}}\n"

// TestCommandsOverTLS has both addresses speak TLS, and the commands trust an authority of one's own.
func TestCommandsOverTLS(t *testing.T) {
	dir := twoTeams(t, bothOverTLS)
	a := newAuthority(t, dir)
	a.issue(dir, 7)
	page, log := runServe(t, filepath.Join(dir, "prerig.yaml"))
	hooks := regexp.MustCompile(`msg=listening hooks=(\S+)`).FindStringSubmatch(log.String())[1]
	token := filepath.Join(dir, "state", "admin.token")
	if code, stdout, stderr := command(t, "", "suspend", "shop/web", "--server", "https://"+page, "--ca-file", a.file, "--token-file", token); code != 0 {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := command(t, "", "status", "--server", "https://"+page, "--token-file", token); code != 2 || !strings.Contains(stderr, "certificate signed by unknown authority") {
		t.Errorf("without the authority: code %d\n%s", code, stderr)
	}
	if code, _, stderr := command(t, "", "status", "--server", "https://"+page, "--ca-file", token, "--token-file", token); code != 2 || !strings.Contains(stderr, "contains none in PEM format") {
		t.Errorf("an authority that is none: code %d\n%s", code, stderr)
	}
	for name, address := range map[string]string{"hooks": hooks, "page": page} {
		if serial, err := a.serial(address); err != nil || serial != 7 {
			t.Errorf("%s: serial %d, %v", name, serial, err)
		}
		response, err := http.Get("http://" + address + "/healthz")
		must(t, err)
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "HTTPS server") {
			t.Errorf("%s in the clear: %s %s", name, response.Status, body)
		}
		if conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
			conn.Close()
			t.Errorf("%s speaks TLS 1.1", name)
		}
	}
}

// TestHealthHasItsOwnAddress has health checks answered in plain HTTP where the other addresses speak TLS, and nothing else there.
func TestHealthHasItsOwnAddress(t *testing.T) {
	dir := twoTeams(t, "tls: {certificate: tls.crt, key: tls.key}\nhealth: {listen: \"127.0.0.1:0\"}\nadmin: {listen: \"127.0.0.1:0\", tls: {certificate: tls.crt, key: tls.key}}\n")
	newAuthority(t, dir).issue(dir, 7)
	_, log := runServe(t, filepath.Join(dir, "prerig.yaml"))
	address := regexp.MustCompile(` health=(\S+)`).FindStringSubmatch(log.String())
	if address == nil {
		t.Fatalf("there is no address for health checks in\n%s", log)
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/": http.StatusNotFound, "/metrics": http.StatusNotFound, "/hook/github": http.StatusNotFound} {
		response, err := http.Get("http://" + address[1] + path)
		must(t, err)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, response.Status, want)
		}
	}
}

// TestCertificatesAreFollowed changes the certificate under the daemon: a new one is served, and one that does not fit its key is not.
func TestCertificatesAreFollowed(t *testing.T) {
	dir := twoTeams(t, bothOverTLS)
	a := newAuthority(t, dir)
	a.issue(dir, 7)
	page, log := runServe(t, filepath.Join(dir, "prerig.yaml"))
	serves := func(want int64, logged string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			serial, err := a.serial(page)
			if err == nil && serial == want && strings.Contains(log.String(), logged) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("serial %d, %v, want %d and in the log %q\n%s", serial, err, want, logged, log)
			}
		}
	}
	serves(7, "")
	a.issue(dir, 8)
	serves(8, "a changed file was read again")
	key, err := os.ReadFile(filepath.Join(dir, "tls.key"))
	must(t, err)
	a.issue(dir, 9)
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	serves(8, "private key does not match public key")
	must(t, os.Remove(filepath.Join(dir, "tls.crt")))
	serves(8, "reading the certificate: open")
	a.issue(dir, 10)
	serves(10, "")
}

func TestCertificatesThatDoNotWorkAtTheStart(t *testing.T) {
	for name, tc := range map[string]struct{ more, want string }{
		"no file": {bothOverTLS, "reading the certificate: open"},
		"no key":  {"tls: {certificate: tls.crt}\n", "configuration tls: must have both certificate and key"},
	} {
		dir := twoTeams(t, tc.more)
		if code, _, stderr := command(t, "", "serve", "--config", filepath.Join(dir, "prerig.yaml")); code != 2 || !strings.Contains(stderr, tc.want) {
			t.Errorf("%s: code %d\n%s", name, code, stderr)
		}
	}
}

// TestTokensStayOutOfTheClear has the commands asked to send a token by plain HTTP to another machine, and to one that redirects.
func TestTokensStayOutOfTheClear(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	must(t, os.WriteFile(token, []byte("a-token-of-some-length\n"), 0o600))
	code, _, stderr := command(t, "", "status", "--server", "http://prerig.invalid:8081", "--token-file", token)
	if code != 2 || !strings.Contains(stderr, "the token would be sent to prerig.invalid unencrypted") {
		t.Errorf("code %d\n%s", code, stderr)
	}
	if code, _, stderr := command(t, "", "status", "--server", "http://prerig.invalid:8081", "--token-file", token, "--plain-http"); code != 2 || strings.Contains(stderr, "unencrypted") {
		t.Errorf("where it is asked for: code %d\n%s", code, stderr)
	}
	got := &lockedBuffer{}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fmt.Fprintln(got, r.Header) }))
	defer elsewhere.Close()
	redirecting := httptest.NewTLSServer(http.RedirectHandler(elsewhere.URL+"/api/v1/pipelines", http.StatusTemporaryRedirect))
	defer redirecting.Close()
	ca := filepath.Join(dir, "ca.crt")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: redirecting.Certificate().Raw}), 0o600))
	code, _, stderr = command(t, "", "status", "--server", redirecting.URL, "--ca-file", ca, "--token-file", token)
	if code != 2 || !strings.Contains(stderr, "307 Temporary Redirect") || got.String() != "" {
		t.Errorf("code %d\n%s\nand elsewhere came %s", code, stderr, got)
	}
}
