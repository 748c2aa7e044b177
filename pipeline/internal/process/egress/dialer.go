// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package egress connects to servers that pipelines name, but not to those that they must not reach through the
// daemon. Addresses are checked when a connection is made, after name resolution, so that neither a changing name
// nor a redirect bypasses the check.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/proxy"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

// RefusedError is returned for a server whose address must not be connected to. It does not reveal the address that
// a name resolves to.
type RefusedError struct{ Host, Kind string }

// Error describes the kind of address, and who can allow it.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s leads to %s address, which the daemon does not connect to; who runs it can allow the address with egress.allow", e.Host, e.Kind)
}

// IsRefused reports whether an error is about an address that must not be connected to, or a URL that must not be
// read: a retry fails again.
func IsRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) || isOutOfReach(err)
}

// Dialer connects to addresses that its rules allow. It is safe for concurrent use.
type Dialer struct {
	rules  Rules
	dialer net.Dialer

	mu sync.Mutex
	// proxies are the servers that the environment has named as proxies, as HOST:PORT. Who runs the daemon has chosen
	// them.
	proxies map[string]bool
	shared  *http.Transport
}

// NewDialer returns a dialer.
func NewDialer(rules Rules) *Dialer {
	return &Dialer{rules: rules, dialer: net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second},
		proxies: map[string]bool{}}
}

// OrDefault returns the dialer, or one with the zero [Rules] in place of nil.
func OrDefault(d *Dialer) *Dialer {
	if d == nil {
		return NewDialer(Rules{})
	}
	return d
}

// DialContext connects as net.Dialer does. An address that the rules refuse is a *[RefusedError].
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	guarded := d.dialer
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	guarded.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return errors.New("the address of the connection cannot be read")
		}
		if kind := d.rules.Check(to.Addr()); kind != "" {
			return &RefusedError{host, kind}
		}
		return nil
	}
	conn, err := guarded.DialContext(ctx, network, address)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return nil, refused // the wrapping error contains the address
	}
	return conn, err
}

// DialTunnel connects to an address directly, or through the SOCKS proxy that ALL_PROXY and NO_PROXY choose for it.
func (d *Dialer) DialTunnel(ctx context.Context, network, address string) (net.Conn, error) {
	forward := &forwarder{d, address}
	chosen := proxy.FromEnvironmentUsing(forward)
	if chosen != proxy.Dialer(forward) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if err := d.checkLiteral(host); err != nil {
			return nil, err
		}
	}
	if with, ok := chosen.(proxy.ContextDialer); ok {
		return with.DialContext(ctx, network, address)
	}
	return chosen.Dial(network, address)
}

// forwarder connects to a target, or to the proxy in front of it.
type forwarder struct {
	d      *Dialer
	target string
}

// Dial implements proxy.Dialer.
func (f *forwarder) Dial(network, address string) (net.Conn, error) {
	return f.DialContext(context.Background(), network, address)
}

// DialContext implements proxy.ContextDialer.
func (f *forwarder) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if address == f.target {
		return f.d.DialContext(ctx, network, address)
	}
	return f.d.dialer.DialContext(ctx, network, address)
}

// maxHeader bounds the header of an answer, in bytes. Servers that send so much are not worth the default of 10 MiB.
const maxHeader = 256 << 10

// Guard makes a transport connect through the dialer, and through the proxies of the environment if these are set.
// A proxy resolves names itself, so only literal addresses in a URL are checked before it is called.
func (d *Dialer) Guard(t *http.Transport) *http.Transport {
	t.MaxResponseHeaderBytes = maxHeader
	t.Proxy = func(request *http.Request) (*url.URL, error) {
		chosen, err := http.ProxyFromEnvironment(request)
		if err != nil || chosen == nil {
			return chosen, err
		}
		if err := d.checkLiteral(request.URL.Hostname()); err != nil {
			return nil, err
		}
		d.noteProxy(chosen)
		return chosen, nil
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if d.isProxy(address) {
			return d.dialer.DialContext(ctx, network, address)
		}
		return d.DialContext(ctx, network, address)
	}
	return t
}

// Transport returns a transport that all who ask share, with its open connections.
func (d *Dialer) Transport() *http.Transport {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shared == nil {
		d.shared = d.Guard(&http.Transport{
			ForceAttemptHTTP2: true, MaxIdleConns: 100, MaxIdleConnsPerHost: 50, IdleConnTimeout: 90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
		})
	}
	return d.shared
}

// checkLiteral refuses a host that is written as an address, where the rules do.
func (d *Dialer) checkLiteral(host string) error {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	if kind := d.rules.Check(address); kind != "" {
		return &RefusedError{host, kind}
	}
	return nil
}

func (d *Dialer) noteProxy(u *url.URL) {
	port := u.Port()
	if port == "" {
		if port = giturl.DefaultPort(u.Scheme); port == "" {
			port = "1080" // as net/http has it for SOCKS
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.proxies[net.JoinHostPort(u.Hostname(), port)] = true
}

func (d *Dialer) isProxy(address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.proxies[address]
}
