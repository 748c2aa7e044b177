// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/server"
	"github.com/prerig/prerig/pipeline/server/access"
)

// explainListenError names the field of the configuration for an address that another program uses.
func explainListenError(field string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w; another program uses the address: stop it, or set %s to another one", err, field)
	}
	return err
}

func listenHooks(c *config.Config) (net.Listener, error) {
	hooks, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening for webhooks: %w", explainListenError("listen", err))
	}
	return hooks, nil
}

// maxKeys bounds the keys that senders sign deliveries with, in bytes. Those of Google have two kilobytes.
const maxKeys = 1 << 20

// openServer makes what answers on the addresses. It adds to the options what the configuration holds.
func openServer(p *components, o server.Options) (*server.Server, error) {
	c, metrics := p.config, p.metrics
	var err error
	if o.Receivers, err = c.EventReceivers(egress.BoundAnswers(p.dialer.Transport(), maxKeys)); err != nil {
		return nil, err
	}
	for _, r := range o.Receivers {
		metrics.Receiver(r.Name)
	}
	if o.Tokens, err = access.OpenTokens(c.TokenFile(), c.Admin.Tokens, o.Log); err != nil {
		return nil, err
	}
	if o.Audit, err = access.OpenAudit(c.Admin.Audit, o.Log); err != nil {
		return nil, err
	}
	if o.SignIn, err = c.SignIn(o.Log); err != nil {
		return nil, err
	}
	o.Delivery, o.Metrics = metrics.Delivery, metrics.Handler()
	o.Session, o.ExternalURL = c.Admin.OIDC.Session, c.ExternalURL
	return server.New(o)
}

// openListeners opens the addresses and serves on them; hooks is nil where the one of webhooks is not open yet.
func openListeners(ctx context.Context, group *errgroup.Group, p *components, s *server.Server, hooks net.Listener) error {
	c, o := p.config, p.options
	overHooks, err := tlsConfig(c, "tls", c.TLS, o.Log)
	if err != nil {
		return err
	}
	overAdmin, err := tlsConfig(c, "admin.tls", c.Admin.TLS, o.Log)
	if err != nil {
		return err
	}
	if hooks == nil {
		if hooks, err = listenHooks(c); err != nil {
			return err
		}
	}
	group.Go(func() error { return server.Serve(ctx, server.MakingWay(hooks), overHooks, s.Hooks(), o.Log) })
	page := ""
	if c.Admin.Listen != "" {
		admin, err := net.Listen("tcp", c.Admin.Listen)
		if err != nil {
			hooks.Close()
			return fmt.Errorf("listening for the web page: %w", explainListenError("admin.listen", err))
		}
		page = admin.Addr().String()
		loopback := server.Loopback(c.Admin.Listen)
		if overAdmin == nil && !loopback {
			o.Log.Warn("tokens reach this address in the clear, unless a proxy with TLS is all that can reach it; "+
				"admin.tls sets its certificate", "address", page)
		}
		at := server.Access{Loopback: loopback && !c.Admin.NamesItsUsers(), Insecure: c.Admin.Insecure}
		group.Go(func() error { return server.Serve(ctx, admin, overAdmin, s.Admin(at), o.Log) })
	}
	health, err := serveHealth(ctx, group, p, s)
	if err != nil {
		return err
	}
	socket, err := listenSocket(c.Socket())
	if err != nil {
		return err
	}
	group.Go(func() error {
		return server.Serve(ctx, server.PeerListener(socket), nil, s.Admin(server.Access{Trusted: true}), o.Log)
	})
	o.Log.Info("listening", "hooks", hooks.Addr().String(), "page", page, "socket", c.Socket(), "health", health,
		"version", o.Version)
	if o.Listening != nil {
		o.Listening(hooks.Addr().String(), page)
	}
	return nil
}

// serveHealth serves health checks at their own address, which it returns; "" if none is configured.
func serveHealth(ctx context.Context, group *errgroup.Group, p *components, s *server.Server) (address string, err error) {
	if p.config.Health.Listen == "" {
		return "", nil
	}
	l, err := net.Listen("tcp", p.config.Health.Listen)
	if err != nil {
		return "", fmt.Errorf("listening for health checks: %w", explainListenError("health.listen", err))
	}
	group.Go(func() error { return server.Serve(ctx, server.BySender(l), nil, s.Health(), p.options.Log) })
	return l.Addr().String(), nil
}

// tlsConfig returns how an address speaks TLS, nil where it does not.
func tlsConfig(c *config.Config, key string, own config.TLS, log *slog.Logger) (*tls.Config, error) {
	if !own.Enabled() {
		return nil, nil
	}
	out, err := server.TLSConfig(own.Certificate, own.Key, log)
	if err != nil {
		return nil, c.Placed(key, err)
	}
	return out, nil
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
