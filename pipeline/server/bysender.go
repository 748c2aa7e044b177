// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"sync"
	"time"
)

const (
	// maxProbes bounds the connections of one sender where BySender does. Those of a kubelet's probes are short and
	// few.
	maxProbes = 16
	// maxDeliveries bounds those of one sender of webhooks: half of all, as behind a proxy all senders are one.
	maxDeliveries = maxConnections / 2
)

// BySender bounds the number of concurrent connections per sender, so that none uses all of them: excess ones are
// closed. It is for addresses that senders reach directly: behind a proxy all senders are one.
func BySender(l net.Listener) net.Listener {
	return &bySender{Listener: l, most: maxProbes, open: map[string]map[*sentConn]bool{}}
}

// MakingWay bounds the number of concurrent connections per sender, so that none uses all of them: a further one
// closes the connection that has been silent for longest. So a sender that opens many and then stalls does not even
// block others of its address.
func MakingWay(l net.Listener) net.Listener {
	return &bySender{Listener: l, most: maxDeliveries, makeWay: true, open: map[string]map[*sentConn]bool{}}
}

type bySender struct {
	net.Listener
	most    int
	makeWay bool

	mu   sync.Mutex
	open map[string]map[*sentConn]bool // by the sender's host
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
		if sent := l.acquireConnection(host, c); sent != nil {
			return sent, nil
		}
		c.Close()
	}
}

// acquireConnection counts a connection, or returns nil if the limit is reached.
func (l *bySender) acquireConnection(host string, c net.Conn) *sentConn {
	l.mu.Lock()
	all := l.open[host]
	var oldest *sentConn
	if len(all) >= l.most {
		if !l.makeWay {
			l.mu.Unlock()
			return nil
		}
		for one := range all {
			if oldest == nil || one.lastRead() < oldest.lastRead() {
				oldest = one
			}
		}
		delete(all, oldest)
	}
	if all == nil {
		all = map[*sentConn]bool{}
		l.open[host] = all
	}
	sent := &sentConn{Conn: c}
	sent.release = sync.OnceFunc(func() { l.releaseConnection(host, sent) })
	sent.recordRead()
	all[sent] = true
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return sent
}

func (l *bySender) releaseConnection(host string, c *sentConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.open[host], c); len(l.open[host]) == 0 {
		delete(l.open, host)
	}
}

// sentConn is a connection that is counted until it is closed.
type sentConn struct {
	net.Conn
	release func()

	mu   sync.Mutex
	read time.Time // when something came last
}

// Read implements net.Conn.
func (c *sentConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.recordRead()
	}
	return n, err
}

func (c *sentConn) recordRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = time.Now()
}

// lastRead is when something came last, in nanoseconds since the process began.
func (c *sentConn) lastRead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read.Sub(processBegan)
}

var processBegan = time.Now()

// Close implements net.Conn.
func (c *sentConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
