// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/review/dryrun"
)

// renderRun is the state of one prerig render.
type renderRun struct {
	localPipelines
	streams   Streams
	version   string
	daemon    daemonClient
	against   string // directory with what is published
	out       destination
	snapshots []string
	verbose   bool
}

func newRender(streams Streams, version string) *cobra.Command {
	r := &renderRun{streams: streams, version: version}
	cmd := newCommand("render [PIPELINE...]", "Render pipelines once, as the daemon would, and print the result")
	cmd.Long = `Render pipelines once, with the same steps as the daemon, and publish nothing. The result goes
to standard output or, with --to, to a directory, laid out as on the branch: files that an
earlier render of a pipeline wrote there and that are no longer in its result are removed, and
all other files are left alone. Jobs and bare Pods keep the injection that they have there, or
in the directory of --against, as long as their own spec is unchanged (spec.jobs of the
policy). The trailers of a rendered commit contain the command that reproduces the result.

A policy with from: Cluster is rendered with the --snapshot of the cluster that a result was
rendered with: a file that prerig daemon snapshot has written, or a digest, which is requested from
the daemon.`
	cmd.Example = `  prerig render team/shop --revision main@sha1:f0e1d2…
  prerig render team/shop --revision main@sha1:f0e1d2… --snapshot mesh.yaml
  prerig render --source . --to rendered/`
	r.addFlags(cmd)
	r.completePipelines(cmd)
	r.sourceFlags(cmd)
	cmd.Flags().StringVar(&r.against, "against", "",
		"directory with the published manifests, whose Jobs and bare Pods keep their injection (default: the directory of --to)")
	cmd.Flags().StringArrayVar(&r.snapshots, "snapshot", nil,
		"file or digest of a cluster snapshot, for a policy with from: Cluster; may be repeated")
	cmd.Flags().DurationVar(&r.timeout, "timeout", 0,
		"time limit of one render, for pipelines that set no shorter one (default: 2m)")
	r.daemon.addFlags(cmd)
	cmd.Flags().BoolVar(&r.noCache, "no-cache", false,
		"build everything, and fail if a result differs from the cached build")
	cmd.Flags().BoolVarP(&r.verbose, "verbose", "v", false,
		"print every finding; by default, a finding that many objects share is printed once, with their number")
	r.out.destinationFlags(cmd, streams, "", "directory to write to (default: standard output)", manifestFormats)
	mustRegister(cmd.MarkFlagDirname("to"))
	mustRegister(cmd.MarkFlagDirname("against"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return r.renderPipelines(cmd.Context(), args) }
	return cmd
}

func (r *renderRun) renderPipelines(ctx context.Context, args []string) error {
	var err error
	if r.given, err = r.daemon.readSnapshots(ctx, r.snapshots); err != nil {
		return err
	}
	if r.out.to != "" && r.out.format != "yaml" {
		return fmt.Errorf("-o %s is for standard output; the files in %s are those of the branch", r.out.format,
			r.out.to)
	}
	if err := isDirectory("against", r.against); err != nil {
		return err
	}
	r.results = cmp.Or(r.against, r.out.to)
	p, closing, err := r.openDryRun(r.streams, r.version)
	if err != nil {
		return err
	}
	defer closing()
	entries, err := r.choosePipelines(args)
	if err != nil {
		return err
	}
	results := p.All(ctx, entries)
	r.bar.clearLine()
	failed := reportProblems(r.streams.Err, r.pipelines, results, r.verbose)
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.out.to == "" {
		err = printResults(r.streams.Out, results, r.out.format)
	} else {
		err = r.writeResults(ctx, r.streams.Err, results, r.out.to)
	}
	if err != nil {
		return err
	}
	if failed {
		return errReported
	}
	return nil
}

// printResults prints the available results in a format.
func printResults(out io.Writer, results []dryrun.Result, format string) error {
	if format == "json" {
		var stream bytes.Buffer
		if err := printResults(&stream, results, "yaml"); err != nil {
			return err
		}
		text, err := objectList(stream.Bytes())
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	first := true
	for _, r := range results {
		if r.Err != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(r.Files)) {
			if !first {
				if _, err := io.WriteString(out, "---\n"); err != nil {
					return err
				}
			}
			first = false
			if _, err := out.Write(r.Files[name]); err != nil {
				return err
			}
		}
	}
	return nil
}
