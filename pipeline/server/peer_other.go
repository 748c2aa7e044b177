// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package server

import "net"

// peerOf identifies no one: only Linux supports it.
func peerOf(*net.UnixConn) string { return "uid unknown" }
