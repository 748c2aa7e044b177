// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/internal/process/disk"
	"github.com/prerig/prerig/pipeline/server"
	"github.com/prerig/prerig/pipeline/server/access"
)

// socketPatience is how long a daemon on this machine may take to answer.
const socketPatience = 5 * time.Second

// checkState looks at the state directory, and reports whether a daemon works with it now.
func (l *look) checkState(ctx context.Context) (running bool) {
	dir := l.config.State
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		l.checkNewState(dir)
		return false
	}
	switch {
	case err != nil:
		l.addFailureUnlessHidden(State, dir, err, "")
		return false
	case !info.IsDir():
		l.addFailureUnlessHidden(State, dir, errors.New("it is not a directory"), "set state to another")
		return false
	}
	if err := tryWriting(dir); errors.Is(err, fs.ErrPermission) {
		if whose, me := fileOwner(info); l.isOfOtherUser(ctx, dir, whose, me) {
			return true
		}
	}
	if !l.checkWritable(dir) {
		return false
	}
	if info.Mode().Perm()&0o007 != 0 {
		l.addWarning(State, dir, "every user of this machine can read the state directory, which contains copies of repositories and a token", "chmod 700 "+dir)
	}
	if token, err := os.Stat(l.config.TokenFile()); err == nil && token.Mode().Perm()&othersMayRead != 0 {
		l.addWarning(State, l.config.TokenFile(), "every user of this machine can read the administrator's token",
			"chmod 600 "+l.config.TokenFile())
	}
	l.checkSpace(dir)
	connection, err := net.DialTimeout("unix", l.config.Socket(), socketPatience)
	if err != nil {
		return false
	}
	connection.Close()
	l.addPassedCheck(State, dir, "a daemon is using it; prerig daemon status --check reports its health")
	return true
}

// longestSocket is how many bytes the path of a socket can have on Linux.
const longestSocket = 107

// checkNewState looks at the place of a state directory that is made at the first start.
func (l *look) checkNewState(dir string) {
	above := filepath.Dir(filepath.Clean(dir))
	for above != filepath.Dir(above) {
		if _, err := os.Stat(above); err == nil {
			break
		}
		above = filepath.Dir(above)
	}
	if l.checkWritable(above) {
		l.addPassedCheck(State, dir, "is created at the first start")
		l.checkSpace(above)
	}
}

// tryWriting creates a file in a directory and removes it.
func tryWriting(dir string) error {
	file, err := os.CreateTemp(dir, ".prerig-doctor-")
	if err != nil {
		return err
	}
	file.Close()
	return os.Remove(file.Name())
}

// checkWritable looks whether the daemon can work in a directory.
func (l *look) checkWritable(dir string) bool {
	if err := tryWriting(dir); err != nil {
		l.addFailureUnlessHidden(State, dir, err, "the daemon must be able to write there")
		return false
	}
	if len(l.config.Socket()) > longestSocket {
		l.addFailureUnlessHidden(State, l.config.Socket(),
			fmt.Errorf("the path of the socket has %d bytes, and the system allows %d", len(l.config.Socket()),
				longestSocket),
			"use a state directory with a shorter path")
	}
	return true
}

// checkSpace compares what is free with what the daemon keeps at most of what it bounds.
func (l *look) checkSpace(dir string) {
	space, err := disk.Of(dir)
	if err == nil {
		err = space.Problem()
	}
	if err != nil {
		l.addFailureUnlessHidden(State, dir, err, "")
		return
	}
	wanted := uint64(0)
	for _, bound := range []func() (int64, error){l.config.NATS.StoreSize, l.config.PreviewsSize, l.config.BuildCacheSize} {
		if n, err := bound(); err == nil && n > 0 {
			wanted += uint64(n)
		}
	}
	const mib = 1 << 20
	if space.Available < wanted {
		l.addWarning(State, dir, fmt.Sprintf("%d MiB are free; the queue, previews and cached builds may use up to %d MiB, in addition to the copies of repositories", space.Available/mib, wanted/mib),
			"use a larger disk, or lower nats.max_store, previews.size and build_cache.size")
		return
	}
	l.addPassedCheck(State, dir, "%d MiB are free", space.Available/mib)
}

// checkAddresses looks whether the addresses can be listened on, unless a daemon does that now, and at certificates and
// tokens.
func (l *look) checkAddresses(running bool) {
	for key, address := range map[string]string{"listen": l.config.Listen, "admin.listen": l.config.Admin.Listen, "health.listen": l.config.Health.Listen} {
		if address == "" || running {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			l.addFailureUnlessHidden(Addresses, key, err,
				"another program uses the address, or it does not belong to this machine")
			continue
		}
		listener.Close()
		l.addPassedCheck(Addresses, key, "%s is free", address)
	}
	for key, t := range map[string]config.TLS{"tls": l.config.TLS, "admin.tls": l.config.Admin.TLS} {
		if t.Enabled() {
			l.checkCertificate(key, t)
		}
	}
	if a := l.config.Admin; a.Listen != "" && !a.TLS.Enabled() && !server.Loopback(a.Listen) {
		l.addWarning(Addresses, "admin.listen", "tokens reach "+a.Listen+" unencrypted",
			"set admin.tls, or make it reachable only through a proxy with TLS")
	}
	if l.config.Admin.Insecure && !server.Loopback(l.config.Admin.Listen) {
		l.addWarning(Addresses, "admin.insecure", "everyone who can reach "+l.config.Admin.Listen+" can read pages and metrics without a token", "set admin.insecure: false")
	}
	l.checkTokens()
	if _, err := l.config.SignIn(slog.New(slog.DiscardHandler)); err != nil {
		l.addFailureUnlessHidden(Addresses, "admin.oidc", err, "")
	}
}

// soon is the remaining lifetime below which an expiring certificate needs attention.
const soon = 14 * 24 * time.Hour

func (l *look) checkCertificate(key string, t config.TLS) {
	config, err := server.TLSConfig(t.Certificate, t.Key, slog.New(slog.DiscardHandler))
	if err != nil {
		l.addFailureUnlessHidden(Addresses, key, err, "")
		return
	}
	pair, err := config.GetCertificate(nil)
	if err != nil {
		l.addFailureUnlessHidden(Addresses, key, err, "")
		return
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	left := time.Duration(0)
	switch {
	case err != nil:
		l.addFailureUnlessHidden(Addresses, key, err, "")
	case time.Now().After(leaf.NotAfter):
		l.addFailureUnlessHidden(Addresses, key, fmt.Errorf("the certificate %s expired on %s", t.Certificate, leaf.NotAfter.UTC().Format(time.DateOnly)), "replace it; the new one is read without a restart")
	default:
		if left = time.Until(leaf.NotAfter); left < soon {
			l.addWarning(Addresses, key, fmt.Sprintf("the certificate %s expires on %s", t.Certificate, leaf.NotAfter.UTC().Format(time.DateOnly)), "replace it; the new one is read without a restart")
			return
		}
		l.addPassedCheck(Addresses, key, "the certificate is valid until %s", leaf.NotAfter.UTC().Format(time.DateOnly))
	}
}

func (l *look) checkTokens() {
	name := l.config.Admin.Tokens
	if name == "" {
		return
	}
	info, err := os.Stat(name)
	if err != nil {
		l.addFailureUnlessHidden(Addresses, "admin.tokens", err, "prerig daemon token create writes one")
		return
	}
	if info.IsDir() {
		return // its files are read by the daemon, which logs what is wrong with each
	}
	text, err := os.ReadFile(name)
	if err == nil {
		err = access.CheckTokens(name, text)
	}
	if err != nil {
		l.addFailureUnlessHidden(Addresses, "admin.tokens", err, "")
		return
	}
	l.addPassedCheck(Addresses, "admin.tokens", "%s can be read", name)
}

// shortestWebhookSecret is how long the secret of a receiver should be, in bytes.
const shortestWebhookSecret = 16

// checkWebhooks looks at the receivers and their secrets.
func (l *look) checkWebhooks() {
	if len(l.config.Receivers) == 0 {
		l.addPassedCheck(Webhooks, "receivers", "none configured: each source is checked at its interval (10m), and on prerig daemon reconcile")
	}
	for i, one := range l.config.Receivers {
		where := fmt.Sprintf("receivers[%d] %s", i, one.Name)
		own := *l.config
		own.Receivers = []config.Receiver{one}
		found, err := own.EventReceivers(http.DefaultTransport)
		if err != nil {
			l.addFailureUnlessHidden(Webhooks, where, err,
				"the sender needs the same secret; openssl rand -hex 32 creates one")
			continue
		}
		switch {
		case one.Insecure:
			l.addWarning(Webhooks, where, "accepts unsigned deliveries: anyone who can reach it can trigger pipelines",
				"configure a secret, and share it with the sender")
			continue
		case one.Secret == "":
			l.addPassedCheck(Webhooks, where, "checks tokens")
			continue
		}
		bad := false
		for _, value := range found[0].Secrets() {
			l.secrets.rememberSecretLines(value)
			if len(value) < shortestWebhookSecret {
				bad = true
				l.addWarning(Webhooks, where, fmt.Sprintf("the secret has only %d bytes, and can be guessed", len(value)), "openssl rand -hex 32 > "+one.Secret+", and share it with the sender")
			}
		}
		if info, err := os.Stat(one.Secret); err == nil && info.Mode().Perm()&othersMayRead != 0 && !isPrivateDirectory(filepath.Dir(one.Secret)) {
			bad = true
			l.addWarning(Webhooks, where, "every user of this machine can read "+one.Secret, "chmod 600 "+one.Secret)
		}
		if !bad {
			l.addPassedCheck(Webhooks, where, "receives at /hook/%s, and has its secret", one.Name)
		}
	}
}
