// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/cli/charts"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/cli/policy"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

func newCharts(streams Streams) *cobra.Command {
	cmd := newCommand("charts", "Lock the versions of charts from chart repositories")
	cmd.Long = `Lock the charts that pipelines use from chart repositories and registries, so that a render
depends only on the contents of Git: charts.lock.yaml in the source holds the version and the
digest of each chart.

lock adds missing charts, update moves to the newest versions, and verify compares the lock
with the repositories. All three read the pipelines, and the source in the current directory
or in that of --source. The credentials are those of the pipelines
(spec.build.chartRepositories).`
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(newChartsLock(streams), newChartsUpdate(streams), newChartsVerify(streams))
	return cmd
}

// chartsRun is the state of one prerig charts command.
type chartsRun struct {
	localPipelines
	streams Streams
	quiet   bool
	names   []string // of the charts to update, all if empty
	finder  *dryrun.Renderer
}

func newChartsRun(streams Streams, cmd *cobra.Command) *chartsRun {
	c := &chartsRun{streams: streams}
	c.completePipelines(cmd)
	f := cmd.Flags()
	f.StringVar(&c.pipelines, "pipelines", "pipelines", "directory of RenderPipeline files")
	f.StringVar(&c.secrets, "secrets", "secrets", "directory of secrets, with files NAMESPACE/NAME/KEY")
	f.StringVar(&c.cache, "cache", defaultCache(), "cache directory")
	f.StringArrayVar(&c.sources, "source", nil, "directory with the source: DIR for all pipelines, or URL=DIR for pipelines with that source; may be repeated (default: the current directory, or the source.dir of a pipeline)")
	for _, name := range []string{"pipelines", "secrets", "cache"} {
		mustRegister(cmd.MarkFlagDirname(name))
	}
	return c
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
	c := newChartsRun(streams, cmd)
	cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, "do not print what was locked")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.runLock(cmd.Context(), args, func(string) bool { return false })
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
	c := newChartsRun(streams, cmd)
	cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, "do not print what was locked")
	cmd.Flags().StringArrayVar(&c.names, "chart", nil, "name of a chart to update; may be repeated (default: all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.runLock(cmd.Context(), args, func(name string) bool { return len(c.names) == 0 || slices.Contains(c.names, name) })
	}
	return cmd
}

func newChartsVerify(streams Streams) *cobra.Command {
	output := "text"
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
	c := newChartsRun(streams, cmd)
	cmd.Flags().StringVarP(&output, "output", "o", output, "output format: text or json")
	completeChoice(cmd, "output", textOrJSONValues)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkChoice("output", output, textOrJSONValues); err != nil {
			return err
		}
		return c.runVerify(cmd.Context(), args, output)
	}
	return cmd
}

// collectChartLocks reads the pipelines and their sources.
func (c *chartsRun) collectChartLocks(ctx context.Context, args []string) (*charts.Collector, error) {
	if err := isDirectory("pipelines", c.pipelines); err != nil {
		return nil, err
	}
	var err error
	if c.catalog, err = catalog.Open(c.pipelines, nil); err != nil {
		return nil, err
	}
	sources, err := c.replacementDirectories()
	if err != nil {
		return nil, err
	}
	entries, err := c.choosePipelines(args)
	if err != nil {
		return nil, err
	}
	found := &charts.Collector{Limits: render.DefaultLimits().Read}
	var errs []error
	for _, e := range entries {
		if e.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.Key, e.Err))
			continue
		}
		at, ok := c.sourceDir(e, sources)
		if !ok {
			continue
		}
		if err := c.addCharts(ctx, found, e, at, sources); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.Key, err))
		}
	}
	if c.finder != nil {
		c.pool.Close()
	}
	return found, errors.Join(errs...)
}

// addCharts adds the charts that a pipeline needs. Those of releases are found by building it.
func (c *chartsRun) addCharts(ctx context.Context, found *charts.Collector, e catalog.Entry, at string, sources map[string]string) error {
	if e.Pipeline.Spec.Build.Releases == nil {
		return found.Add(ctx, e.Pipeline, at)
	}
	absolute, err := filepath.Abs(at)
	if err != nil {
		return err
	}
	if c.finder == nil {
		if c.pool, err = render.NewPool(render.Options{Warm: 1}); err != nil {
			return err
		}
		fetcher := source.New(source.Options{StateDir: c.cache, Secrets: secret.Dir{Path: c.secrets}, AllowDir: true})
		c.finder = &dryrun.Renderer{
			Fetcher: fetcher, PipelinesDir: c.pipelines,
			Builder: &build.Builder{Renderer: c.pool, Limits: render.DefaultLimits(), Repositories: fetcher, Charts: c.newCharts()},
		}
	}
	c.finder.Sources = maps.Clone(sources)
	c.finder.Sources[""] = absolute
	wanted, err := c.finder.FindCharts(ctx, e)
	if err != nil {
		return err
	}
	return found.AddFound(e.Pipeline, at, wanted)
}

// sourceDir returns the directory with the source of a pipeline; ok is false where the flags name directories for others only.
func (c *chartsRun) sourceDir(e catalog.Entry, sources map[string]string) (at string, ok bool) {
	src := e.Source(c.pipelines)
	for _, url := range []string{sourceURL(e), ""} {
		if at, ok := sources[url]; ok {
			return at, true
		}
	}
	switch {
	case src.Dir != nil:
		return src.Dir.Path, true
	case len(c.sources) > 0:
		return "", false
	}
	return ".", true
}

// sourceURL returns the normal URL of a pipeline's source, "" for a directory.
func sourceURL(e catalog.Entry) string {
	src := e.Pipeline.Spec.Source
	switch {
	case src.Git != nil:
		return giturl.Normal(src.Git.URL)
	case src.OCI != nil:
		return giturl.Normal(src.OCI.URL)
	}
	return ""
}

func (c *chartsRun) runLock(ctx context.Context, args []string, renew func(string) bool) error {
	found, err := c.collectChartLocks(ctx, args)
	if err != nil {
		return err
	}
	pool, err := render.NewPool(render.Options{})
	if err != nil {
		return err
	}
	defer pool.Close()
	fetcher := c.newCharts()
	var outs []files.Output
	var said strings.Builder
	for _, file := range found.Files {
		lock, changes, err := file.Lock(ctx, fetcher, pool, renew, len(args) > 0)
		if err != nil {
			return fmt.Errorf("locking charts: %w", err)
		}
		data, err := v1alpha1.MarshalChartLock(lock)
		if err != nil {
			return err
		}
		old, err := os.ReadFile(file.Path)
		describeChanges(&said, policy.DisplayPath(file.Path), changes, len(lock.Spec.Charts))
		if err == nil && bytes.Equal(old, data) {
			continue
		}
		out, err := files.To(file.Path, data)
		if err != nil {
			return err
		}
		outs = append(outs, out)
	}
	if err := files.Write(ctx, outs, nil); err != nil {
		return err
	}
	if len(found.Files) == 0 {
		said.WriteString("no pipeline uses a chart from a repository\n")
	}
	if !c.quiet {
		fmt.Fprint(c.streams.Err, said.String())
	}
	return nil
}

// describeChanges describes the changes of a lock.
func describeChanges(to *strings.Builder, name string, changes charts.Changes, count int) {
	fmt.Fprintf(to, "%s: %s locked\n", name, countWithNoun(count, "chart"))
	for _, one := range changes.Added {
		fmt.Fprintf(to, "  added    %s\n", one)
	}
	for _, one := range changes.Moved {
		fmt.Fprintf(to, "  moved    %s\n", one)
	}
	for _, one := range changes.Dropped {
		fmt.Fprintf(to, "  dropped  %s\n", one)
	}
}

func (c *chartsRun) runVerify(ctx context.Context, args []string, output string) error {
	found, err := c.collectChartLocks(ctx, args)
	if err != nil {
		return err
	}
	fetcher := c.newCharts()
	statuses := []charts.Status{}
	count := map[charts.State]int{}
	for _, file := range found.Files {
		for _, s := range file.Verify(ctx, fetcher) {
			s.Lock = policy.DisplayPath(s.Lock)
			statuses = append(statuses, s)
			count[s.State]++
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.printStatuses(statuses, output); err != nil {
		return err
	}
	wrong := count[charts.Changed] + count[charts.Lost] + count[charts.Missing]
	switch {
	case count[charts.Unknown] > 0:
		return fmt.Errorf("%s could not be checked", countWithNoun(count[charts.Unknown], "chart"))
	case wrong > 0:
		return findingsError{fmt.Sprintf("%d of %s not as locked", wrong, countWithNoun(len(statuses), "chart"))}
	}
	return nil
}

func (c *chartsRun) printStatuses(statuses []charts.Status, output string) error {
	if output == "json" {
		return writeJSON(c.streams.Out, map[string]any{"charts": statuses})
	}
	for _, s := range statuses {
		line := fmt.Sprintf("%-7s  %s", s.State, strings.Join(strings.Fields(s.Name+" "+s.Version), " ")+" of "+s.Repository)
		switch s.State {
		case charts.Newer, charts.Changed:
			line += "  -> " + s.Now
		case charts.Missing:
			line += "  " + s.Range
		case charts.Unknown:
			line += "  " + strings.ReplaceAll(s.Message, "\n", " ")
		}
		if _, err := fmt.Fprintln(c.streams.Out, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}
