// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"sync"
)

// maxBySender bounds the connections of one sender where BySender does. Those of a kubelet's probes are short and few.
const maxBySender = 16

// BySender bounds how many connections one sender has at once, so that none takes all of them: more are closed. It is for addresses that
// senders reach themselves: behind a proxy all are one.
func BySender(l net.Listener) net.Listener {
	return &bySender{Listener: l, open: map[string]int{}}
}

type bySender struct {
	net.Listener
	mu   sync.Mutex
	open map[string]int // connections by the sender's host
}

// Accept implements net.Listener.
func (l *bySender) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, _, err := net.SplitHostPort(c.RemoteAddr().String())
		if err != nil {
			host = c.RemoteAddr().String()
		}
		if l.take(host) {
			return &sentConn{Conn: c, release: sync.OnceFunc(func() { l.release(host) })}, nil
		}
		c.Close()
	}
}

func (l *bySender) take(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host] >= maxBySender {
		return false
	}
	l.open[host]++
	return true
}

func (l *bySender) release(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host]--; l.open[host] == 0 {
		delete(l.open, host)
	}
}

// sentConn is a connection that is counted until it is closed.
type sentConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *sentConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
