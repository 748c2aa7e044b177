// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	foreignCalls = 0 // none exist
)

// startCalls are the calls by which a program of Go starts besides those of a running one.
var startCalls []uint32
