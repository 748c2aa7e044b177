// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/cli/preview"
)

func newDiff(streams Streams, version string) *cobra.Command {
	var l localPipelines
	var output, against string
	var exitCode bool
	cmd := newCommand("diff [PIPELINE...]", "Show what would change where pipelines publish to")
	cmd.Long = `Render pipelines as the daemon would, and compare the result with what is published:
branches (for proposals the active branch) and artifacts. A change that many objects share is
shown once, with the list of the objects, so the upgrade of a mesh reads as a handful of
changes, however many applications there are. <name> stands for an object's own name where
lines differ only by that.

If the path on a branch has changed, what the pipeline leaves at the old path is shown as
deleted. Branches that were removed from spec.publish, and pipelines that were removed, are
not compared: only the daemon's state says what it deletes there (deletionPolicy). Of the
directory of --against, only what belongs to pipelines that exist now is compared.

Text and Markdown name the first objects of each change, and Markdown fits into a comment on
a pull request; both say what they leave out. JSON has everything.

Exit codes, like those of diff:
  0  nothing would change
  1  something would change (0 with --exit-code=false)
  2  something could not be rendered or compared, or would be refused; the rest is shown`
	cmd.Example = `  prerig diff --source .                       # a pull request, checked out here
  prerig diff --source . -o markdown --exit-code=false > comment.md
  prerig diff team/shop --against rendered/`
	l.addFlags(cmd)
	l.sourceFlags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, markdown or json")
	cmd.Flags().StringVar(&against, "against", "", "directory written by prerig render -o, to compare with instead of what is published")
	cmd.Flags().BoolVar(&exitCode, "exit-code", true, "exit with 1 if anything would change")
	mustRegister(cmd.MarkFlagDirname("against"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if output != "text" && output != "markdown" && output != "json" {
			return fmt.Errorf("the flag --output must be text, markdown or json, found %q", output)
		}
		if err := isDirectory("against", against); err != nil {
			return err
		}
		p, closing, err := l.openPreviewer(streams, version)
		if err != nil {
			return err
		}
		defer closing()
		entries, err := l.choosePipelines(args)
		if err != nil {
			return err
		}
		c := p.Compare(cmd.Context(), entries, against)
		l.bar.clearLine()
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		return showComparison(streams, c, output, exitCode)
	}
	return cmd
}

func showComparison(streams Streams, c *preview.Comparison, output string, exitCode bool) (err error) {
	switch output {
	case "json":
		err = writeJSON(streams.Out, c)
	case "markdown":
		err = c.Markdown(streams.Out)
	default:
		err = c.Text(streams.Out, streams.Colour)
	}
	switch {
	case err != nil:
		return fmt.Errorf("writing the differences: %w", err)
	case c.Failed():
		if output != "text" {
			return c.Problem()
		}
		return errReported
	case exitCode && !c.Empty():
		return errDifferent
	}
	return nil
}
