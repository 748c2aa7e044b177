// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newServe(streams Streams, version string) *cobra.Command { return onLinuxOnly("serve") }

func newWorker(streams Streams, version string) *cobra.Command { return onLinuxOnly("worker") }

func newDemo(streams Streams) *cobra.Command { return onLinuxOnly("demo") }

// onLinuxOnly replaces a command of the daemon, which renders untrusted input: only Linux isolates that.
func onLinuxOnly(name string) *cobra.Command {
	cmd := newCommand(name, "Not available on this system: the daemon runs on Linux only")
	cmd.DisableFlagParsing = true
	cmd.RunE = func(*cobra.Command, []string) error {
		return fmt.Errorf("prerig %s runs on Linux only, and this is %s: use the image or a Linux machine; "+
			"prerig render and prerig diff show what it would publish", name, runtime.GOOS)
	}
	return cmd
}
