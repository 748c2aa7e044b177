// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package testbed

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from a process, so that its parent ends it in order.
func detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
