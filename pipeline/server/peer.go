// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import "net"

// PeerListener returns a listener on a Unix socket whose connections have the user at the other end as their address, such as
// "uid 1000", for the record of who did what.
func PeerListener(l net.Listener) net.Listener { return peerListener{l} }

type peerListener struct{ net.Listener }

func (l peerListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if unix, ok := conn.(*net.UnixConn); ok {
		return peerConn{conn, peerAddress(peerOf(unix))}, nil
	}
	return conn, nil
}

type peerConn struct {
	net.Conn
	peer peerAddress
}

func (c peerConn) RemoteAddr() net.Addr { return c.peer }

// peerAddress is who is at the other end of a socket.
type peerAddress string

func (peerAddress) Network() string  { return "unix" }
func (a peerAddress) String() string { return string(a) }
