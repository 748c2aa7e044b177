// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command release makes everything that a release of Prerig consists of: see make release.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/prerig/prerig/internal/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := release.Main(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		os.Stderr.WriteString("error: " + err.Error() + "\n")
		os.Exit(1)
	}
}
