// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// foreignCalls is where the numbers of the x32 interface begin.
	foreignCalls = 0x40000000
)

// startCalls are the calls by which a program of Go starts besides those of a running one.
var startCalls = []uint32{unix.SYS_ARCH_PRCTL}
