// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/render/gate/validation"
	"github.com/prerig/prerig/pipeline/review"
	"github.com/prerig/prerig/pipeline/review/dryrun"
)

func newDiff(streams Streams, version string) *cobra.Command {
	var o diffOptions
	cmd := newCommand("diff [PIPELINE...]", "Show how publishing would change the targets of pipelines")
	cmd.Long = `Render pipelines as the daemon would, and compare the result with what is published: branches
(for proposals, the active branch) and artifacts. A change that many objects share is shown
once, with the list of the objects, so that a mesh upgrade is a handful of changes, however
many applications there are. <name> is a placeholder for an object's own name where lines
differ only in that name.

If the path on a branch has changed, the files that the pipeline leaves at the old path are
shown as deleted. Branches that were removed from spec.publish, and removed pipelines, are not
compared: only the daemon's state records what it deletes there (deletionPolicy). In the
directory of --against, only the files of existing pipelines are compared.

Text and Markdown list the first objects of each change, and Markdown fits into a pull request
comment; both report what they omit. JSON is complete.

-o review writes Markdown for reviewers: first rejections, deletions and new findings, then
the changes by the source and by the injection, separately, requests and limits before and
after, changed images, and the origin. --limit sets the length that the host accepts.

Exit codes, like those of diff:
  0  no differences
  1  differences found (0 with --exit-code=false)
  2  a pipeline could not be rendered or compared, or would be rejected; the rest is shown`
	cmd.Example = `  prerig diff --source .                       # a pull request, checked out here
  prerig diff --source . -o markdown --exit-code=false > comment.md
  prerig diff --source . -o review --limit gitlab --exit-code=false > review.md
  prerig diff team/shop --against rendered/`
	o.addFlags(cmd)
	o.completePipelines(cmd)
	o.sourceFlags(cmd)
	formatFlag(cmd, streams, &o.output, []string{"text", "markdown", "review", "json", "yaml"})
	cmd.Flags().StringVar(&o.limit, "limit", "github",
		"for -o review: github, gitlab, gitea, bitbucket, azuredevops, or a number of characters; 0 for no limit")
	cmd.Flags().StringVar(&o.against, "against", "",
		"directory written by prerig render -o, to compare with instead of the published result")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", true, "exit with 1 if there are differences")
	mustRegister(cmd.MarkFlagDirname("against"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.runDiff(cmd.Context(), streams, version, args) }
	return cmd
}

// diffOptions are the flags of diff.
type diffOptions struct {
	localPipelines
	output, against, limit string
	exitCode               bool
}

func (o *diffOptions) runDiff(ctx context.Context, streams Streams, version string, args []string) error {
	most, err := readLimit(o.limit)
	if err != nil {
		return err
	}
	if err := isDirectory("against", o.against); err != nil {
		return err
	}
	o.results = o.against
	p, closing, err := o.openDryRun(streams, version)
	if err != nil {
		return err
	}
	defer closing()
	entries, err := o.choosePipelines(args)
	if err != nil {
		return err
	}
	if p.Builder.Validator == nil {
		fmt.Fprintln(streams.Err, "info: immutable fields were not checked: there is no "+validation.Name+" beside prerig")
	}
	p.KeepFiles = o.output == "review"
	c := p.Compare(ctx, entries, o.against)
	o.bar.clearLine()
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.output == "review" {
		return showReview(ctx, streams, c, most, o.exitCode)
	}
	return showComparison(streams, c, o.output, o.exitCode)
}

func showComparison(streams Streams, c *dryrun.Comparison, output string, exitCode bool) (err error) {
	switch output {
	case "json", "yaml":
		err = writeStructured(streams.Out, output, c)
	case "markdown":
		err = c.Markdown(streams.Out)
	default:
		err = c.Text(streams.Out, streams.Colour)
	}
	if err != nil {
		return fmt.Errorf("writing the differences: %w", err)
	}
	return comparisonResult(c, output != "text", exitCode)
}

// comparisonResult returns the error that determines the exit code. explain reports whether problems still have to be
// printed.
func comparisonResult(c *dryrun.Comparison, explain, exitCode bool) error {
	switch {
	case c.Failed():
		if explain {
			return c.Problem()
		}
		return errReported
	case exitCode && !c.Empty():
		return errDifferent
	}
	return nil
}

func showReview(ctx context.Context, streams Streams, c *dryrun.Comparison, limit int, exitCode bool) error {
	text, _, err := review.Body(ctx, c.Review(), limit)
	if err == nil {
		_, err = io.WriteString(streams.Out, text)
	}
	if err != nil {
		return fmt.Errorf("writing the review: %w", err)
	}
	return comparisonResult(c, true, exitCode)
}

// readLimit reads how many characters a review may have.
func readLimit(text string) (int, error) {
	hosts := map[string]int{
		"github": review.LimitGitHub, "gitlab": review.LimitGitLab, "gitea": review.LimitGitea,
		"bitbucket": review.LimitBitbucket, "azuredevops": review.LimitAzureDevOps,
	}
	if limit, ok := hosts[text]; ok {
		return limit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 0 {
		return 0, fmt.Errorf("the flag --limit must be %s or a number of characters, found %q", strings.Join(slices.Sorted(maps.Keys(hosts)), ", "), text)
	}
	return limit, nil
}
