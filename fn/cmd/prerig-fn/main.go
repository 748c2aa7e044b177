// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command prerig-fn is a KRM function that injects sidecars into workloads at build time.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/prerig/prerig/fn"
)

var version = "dev" // set with -ldflags -X

func main() {
	debug.SetGCPercent(200) // The process is short and memory is plenty: half the collections.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process whatever it does
	code := fn.Main(ctx, os.Args[1:], version, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
