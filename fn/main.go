// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/prerig/prerig/fn/version"
)

const usage = `prerig-fn is a KRM function that injects sidecars into workloads at build time.

It reads a ResourceList (config.kubernetes.io/v1) with an InjectionPolicy (prerig.dev/v1alpha1) as its functionConfig
from standard input, and writes the ResourceList with the sidecars injected to standard output. kustomize and kpt run it:

  # kustomize: in a file that a kustomization lists under transformers
  apiVersion: prerig.dev/v1alpha1
  kind: InjectionPolicy
  metadata:
    name: mesh
    annotations:
      config.kubernetes.io/function: |
        exec: {path: prerig-fn}
  spec:
    istio:
      injector: {builtIn: istio}

  kustomize build --enable-alpha-plugins --enable-exec .

Without --enable-exec kustomize skips the function and exits 0.

Flags:
  -h, --help      this text
      --version   the version, and with -o json all that is known of it as JSON

To inject into plain files use the command prerig.
`

// Main is the command prerig-fn. It returns the exit status: 0, or 1 if anything failed.
func Main(ctx context.Context, args []string, linked string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "-h", "--help", "help":
			fmt.Fprint(stdout, usage)
			return 0
		case "--version", "version":
			return printVersion(args[1:], linked, stdout, stderr)
		}
		fmt.Fprintf(stderr, "error: prerig-fn takes no argument %q; it reads a ResourceList from standard input (see --help)\n", args[0])
		return 1
	}
	if err := Execute(ctx, stdin, stdout, stderr); err != nil {
		if !errors.Is(err, ErrResults) {
			fmt.Fprintf(stderr, "error: %v\n", err)
		}
		return 1
	}
	return 0
}

// printVersion prints the version as a line, or as JSON with -o json.
func printVersion(args []string, linked string, stdout, stderr io.Writer) int {
	info := version.Of(linked)
	switch strings.Join(args, " ") {
	case "":
		fmt.Fprintln(stdout, info.Line("prerig-fn"))
	case "-o json", "-o=json", "--output json", "--output=json":
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(info); err != nil {
			fmt.Fprintf(stderr, "error: writing the version: %v\n", err)
			return 1
		}
	default:
		fmt.Fprintf(stderr, "error: --version takes -o json or nothing, and not %q\n", strings.Join(args, " "))
		return 1
	}
	return 0
}
