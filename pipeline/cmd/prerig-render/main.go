// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command prerig-render is the renderer that prerig starts for each render. It reads requests from standard input and is of no
// use by itself.
package main

import (
	"fmt"
	"os"

	"github.com/prerig/prerig/pipeline/render/engine"
	"github.com/prerig/prerig/pipeline/render/isolation"
)

// version is set by the linker.
var version = "dev"

func main() {
	if len(os.Args) > 2 && os.Args[1] == isolation.ConfineArgument {
		fmt.Fprintln(os.Stderr, "prerig-render:", engine.Confine(os.Args[2], os.Args[3:]...))
		os.Exit(1)
	}
	if len(os.Args) > 1 {
		fmt.Printf("prerig-render %s: prerig starts this program to render; do not run it directly.\n"+
			"Keep it beside the prerig that it was built with; see prerig render --help.\n", version)
		return
	}
	os.Exit(engine.Main(os.Stdin, os.Stdout))
}
