// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/cli/preview"
)

func newDiff(streams Streams, version string) *cobra.Command {
	var l local
	var output, against string
	var exitCode bool
	cmd := newCommand("diff [PIPELINE...]", "Show what would change where pipelines publish to")
	cmd.Long = `Render pipelines as the daemon would and compare the result with what is published, at every
place: branches, for proposals the active branch, and artifacts. A change that many objects
have in common is shown once, with the list of the objects: the upgrade of a mesh reads as a
handful of changes, however many applications there are. Where lines differ by nothing but
an object's own name, <name> stands for it.

Where the path on a branch has changed, what the pipeline leaves at the old one is shown as deleted.
Branches that were taken out of spec.publish, and pipelines that were removed, are not compared:
what the daemon deletes there (deletionPolicy) it knows from its state alone. Nor are
directories of --against but the one that a pipeline has now.

Text and Markdown name the first objects of each change, and Markdown fits into a comment of
a pull request; both say what they leave out. JSON holds everything.

Exit codes, as those of diff:
  0  nothing would change
  1  something would change (0 with --exit-code=false)
  2  something could not be rendered or compared, or would be refused; the rest is shown`
	cmd.Example = `  prerig diff --source .                       # a pull request, checked out here
  prerig diff --source . -o markdown --exit-code=false > comment.md
  prerig diff team/shop --against rendered/`
	l.flags(cmd)
	l.sourceFlags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, markdown or json")
	cmd.Flags().StringVar(&against, "against", "", "directory that prerig render -o has written, instead of what is published")
	cmd.Flags().BoolVar(&exitCode, "exit-code", true, "exit with 1 where anything would change")
	register(cmd.MarkFlagDirname("against"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if output != "text" && output != "markdown" && output != "json" {
			return fmt.Errorf("the flag --output must be text, markdown or json, found %q", output)
		}
		if err := isDirectory("against", against); err != nil {
			return err
		}
		p, closing, err := l.open(streams, version)
		if err != nil {
			return err
		}
		defer closing()
		entries, err := l.choose(args)
		if err != nil {
			return err
		}
		c := p.Compare(cmd.Context(), entries, against)
		l.bar.done()
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
