// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command prerig-render is the renderer that prerig starts for each render. It reads requests from standard input and is of no
// use by itself.
package main

import (
	"os"

	"github.com/prerig/prerig/pipeline/render"
)

func main() { os.Exit(render.Main(os.Stdin, os.Stdout)) }
