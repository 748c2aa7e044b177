// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/server"
	"github.com/prerig/prerig/pipeline/server/access"
)

func listenHooks(c *config.Config) (net.Listener, error) {
	hooks, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening for webhooks: %w", err)
	}
	return hooks, nil
}

// maxKeys bounds the keys that senders sign deliveries with, in bytes. Those of Google have two kilobytes.
const maxKeys = 1 << 20

// openServer makes what answers on the addresses.
func (p *components) openServer(planner *plan.Planner) (*server.Server, error) {
	receivers, err := p.c.EventReceivers(egress.BoundAnswers(p.dialer.Transport(), maxKeys))
	if err != nil {
		return nil, err
	}
	for _, r := range receivers {
		p.metrics.Receiver(r.Name)
	}
	tokens, err := access.OpenTokens(p.c.TokenFile(), p.c.Admin.Tokens, p.o.Log)
	if err != nil {
		return nil, err
	}
	audit, err := access.OpenAudit(p.c.Admin.Audit, p.o.Log)
	if err != nil {
		return nil, err
	}
	signIn, err := p.c.SignIn(p.o.Log)
	if err != nil {
		return nil, err
	}
	return server.New(server.Options{
		Catalog: p.catalog, Store: p.store, Queue: p.queue, Planner: planner, Keeper: p.keeper, Promoter: p.promoter, Receivers: receivers, Delivery: p.metrics.Delivery,
		Problem: p.readinessProblem, IsWaiting: p.workers.isWaiting, Metrics: p.metrics.Handler(), Tokens: tokens, SignIn: signIn, Audit: audit, Version: p.o.Version, Log: p.o.Log,
		Session: p.c.Admin.OIDC.Session, ExternalURL: p.c.ExternalURL,
	})
}

// openListeners opens the addresses and serves on them; hooks is nil where the one of webhooks is not open yet.
func (p *components) openListeners(ctx context.Context, group *errgroup.Group, planner *plan.Planner, hooks net.Listener) error {
	s, err := p.openServer(planner)
	if err != nil {
		return err
	}
	overHooks, err := p.tlsConfig(p.c.TLS)
	if err != nil {
		return err
	}
	overAdmin, err := p.tlsConfig(p.c.Admin.TLS)
	if err != nil {
		return err
	}
	p.registerPolledMetrics(s)
	if hooks == nil {
		if hooks, err = listenHooks(p.c); err != nil {
			return err
		}
	}
	group.Go(func() error { return server.Serve(ctx, server.MakingWay(hooks), overHooks, s.Hooks(), p.o.Log) })
	page := ""
	if p.c.Admin.Listen != "" {
		admin, err := net.Listen("tcp", p.c.Admin.Listen)
		if err != nil {
			hooks.Close()
			return fmt.Errorf("listening for the web page: %w", err)
		}
		page = admin.Addr().String()
		loopback := server.Loopback(p.c.Admin.Listen)
		if overAdmin == nil && !loopback {
			p.o.Log.Warn("tokens reach this address in the clear, unless a proxy with TLS is all that can reach it; admin.tls gives it a certificate", "address", page)
		}
		at := server.Access{Loopback: loopback && !p.c.Admin.NamesItsUsers(), Insecure: p.c.Admin.Insecure}
		group.Go(func() error { return server.Serve(ctx, admin, overAdmin, s.Admin(at), p.o.Log) })
	}
	health, err := p.serveHealth(ctx, group, s)
	if err != nil {
		return err
	}
	socket, err := listenSocket(p.c.Socket())
	if err != nil {
		return err
	}
	group.Go(func() error {
		return server.Serve(ctx, server.PeerListener(socket), nil, s.Admin(server.Access{Trusted: true}), p.o.Log)
	})
	p.o.Log.Info("listening", "hooks", hooks.Addr().String(), "page", page, "socket", p.c.Socket(), "health", health, "version", p.o.Version)
	if p.o.Listening != nil {
		p.o.Listening(hooks.Addr().String(), page)
	}
	return nil
}

// serveHealth serves health checks at their own address, which it returns; "" if none is configured.
func (p *components) serveHealth(ctx context.Context, group *errgroup.Group, s *server.Server) (address string, err error) {
	if p.c.Health.Listen == "" {
		return "", nil
	}
	l, err := net.Listen("tcp", p.c.Health.Listen)
	if err != nil {
		return "", fmt.Errorf("listening for health checks: %w", err)
	}
	group.Go(func() error { return server.Serve(ctx, server.BySender(l), nil, s.Health(), p.o.Log) })
	return l.Addr().String(), nil
}

// tlsConfig returns how an address speaks TLS, nil where it does not.
func (p *components) tlsConfig(c config.TLS) (*tls.Config, error) {
	if !c.Enabled() {
		return nil, nil
	}
	return server.TLSConfig(c.Certificate, c.Key, p.o.Log)
}

// listenSocket opens the socket for its owner only. One that a process left behind that was killed is replaced; that none
// uses it is known, as the queue's directory is ours.
func listenSocket(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("replacing the socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EINVAL) {
		return nil, fmt.Errorf("listening on the socket: its path has %d bytes, which is more than the system takes: give a state directory with a shorter path (--state): %w", len(path), err)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on the socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("protecting the socket: %w", err)
	}
	return l, nil
}
