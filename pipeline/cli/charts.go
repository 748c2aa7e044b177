// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/build"
)

func newCharts(streams Streams) *cobra.Command {
	cmd := newCommand("charts", "Lock the versions of charts from chart repositories")
	cmd.Long = `Lock the charts that pipelines use from chart repositories and registries, so that a render
depends only on the contents of Git: charts.lock.yaml in the source holds the version and the
digest of each chart.

lock adds missing charts, update moves to the newest versions, and verify compares the lock
with the repositories. All three read the pipelines, and the source in the current directory
or in that of --source. The credentials are those of the pipelines
(spec.build.chartRepositories). The lock also holds remote bases and files of kustomizations:
lock and update add missing ones. prerig lock is all of it in one command.`
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(newChartsLock(streams), newChartsUpdate(streams), newChartsVerify(streams))
	return cmd
}

func newChartsLock(streams Streams) *cobra.Command {
	cmd := newCommand("lock [PIPELINE]...", "Lock the charts that are not locked yet")
	cmd.Long = `Choose a version for each chart that a pipeline uses from a repository and that is not locked
yet, and write it with the digest of its archive to charts.lock.yaml in the source. A locked
version stays as long as it is in the requested range. If no pipelines are named, charts that
no pipeline uses are removed.

If any chart fails to resolve, the file is left unchanged.

Exit codes:
  0  success
  2  a chart does not resolve, or a pipeline, a lock or a flag is invalid`
	cmd.Example = `  prerig charts lock
  prerig charts lock --pipelines ../config/pipelines --source . team/shop`
	c := newLockRun(streams, cmd)
	cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, "do not print what was locked")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.runLock(cmd.Context(), args, build.KeepLocked, func(string) bool { return false })
	}
	return cmd
}

func newChartsUpdate(streams Streams) *cobra.Command {
	cmd := newCommand("update [PIPELINE]...", "Lock the newest versions in the allowed ranges")
	cmd.Long = `Like lock, but also moves locked charts to the newest version of their range.

Exit codes:
  0  success
  2  a chart does not resolve, or a pipeline, a lock or a flag is invalid`
	cmd.Example = `  prerig charts update
  prerig charts update --chart podinfo`
	c := newLockRun(streams, cmd)
	cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, "do not print what was locked")
	var names []string
	cmd.Flags().StringArrayVar(&names, "chart", nil, "name of a chart to update; may be repeated (default: all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.runLock(cmd.Context(), args, build.KeepLocked, func(name string) bool { return len(names) == 0 || slices.Contains(names, name) })
	}
	return cmd
}

func newChartsVerify(streams Streams) *cobra.Command {
	var output string
	cmd := newCommand("verify [PIPELINE]...", "Compare the lock with the chart repositories")
	cmd.Long = `Query the repositories for the locked charts. Nothing is changed.

  current  the repository has the locked archive
  newer    the repository has the locked archive, and a newer version in the range
  changed  the repository has a different archive for the locked version
  lost     the repository no longer has the locked version
  missing  a pipeline uses a chart that is not locked

Exit codes:
  0  all charts are current or newer
  1  some charts are changed, lost or missing
  2  a repository could not be queried, or a pipeline, a lock or a flag is invalid`
	cmd.Example = `  prerig charts verify
  prerig charts verify -o json`
	c := newLockRun(streams, cmd)
	formatFlag(cmd, streams, &output, textFormats)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.runVerify(cmd.Context(), args, output)
	}
	return cmd
}
