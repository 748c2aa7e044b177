// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command prerig injects sidecars into Kubernetes manifests at build time.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/prerig/prerig/pipeline/cli"
)

// version is set by the linker: -X main.version=v1.2.3.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Main(ctx, os.Args[1:], cli.Standard(), version))
}
