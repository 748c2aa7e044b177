// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/internal/demo"
)

func newDemo(streams Streams) *cobra.Command {
	o := demo.Options{Out: streams.Out}
	cmd := newCommand("demo", "Try the daemon on this machine, without a cluster")
	cmd.Long = `Start a Git host with pull requests and prerig serve on this machine, with 20 applications for
three clusters: an upgrade of Istio waits for review, one application does not build, and one
was changed by hand. The command prints the addresses of the pages and five things to try, and
runs until it is interrupted. It then removes everything.

It needs the git command. It listens on loopback only, and writes only to a directory of its
own below that of temporary files ($TMPDIR).`
	cmd.Example = `  prerig demo
  prerig demo --exit     # do all five things, print what happens, and end`
	cmd.Args = noArguments
	cmd.Flags().BoolVar(&o.Exit, "exit", false, "do the five things, print what happens, and end")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if o.Program, err = os.Executable(); err != nil {
			return fmt.Errorf("finding this program: %w", err)
		}
		o.Shown = o.Program
		if found, err := exec.LookPath("prerig"); err == nil && sameFile(found, o.Program) {
			o.Shown = "prerig"
		}
		return demo.Run(cmd.Context(), o)
	}
	return cmd
}

func sameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, two)
}
