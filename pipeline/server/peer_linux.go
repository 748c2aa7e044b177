// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerOf asks the kernel who opened a connection.
func peerOf(conn *net.UnixConn) string {
	raw, err := conn.SyscallConn()
	if err != nil {
		return unknownPeer
	}
	var peer *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) { peer, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil || asked != nil {
		return unknownPeer
	}
	return fmt.Sprintf("uid %d", peer.Uid)
}

const unknownPeer = "uid unknown"
