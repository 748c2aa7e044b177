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
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/build/discover"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/cli/images"
	"github.com/prerig/prerig/pipeline/cli/lock"
	"github.com/prerig/prerig/pipeline/cli/policy"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

func newLock(streams Streams, version string) *cobra.Command {
	var output string
	cmd := newCommand("lock [PIPELINE]...", "Lock what a source names on other servers: charts, remote bases, files and images")
	cmd.Long = `Ask the servers for everything that the source names on them by something that can change, and
write what it is now to charts.lock.yaml in the source: the newest version of each chart in its
range, with its digest; the commit of each remote base by branch or tag; the digest of each
remote file. Renders use what is locked. ImageLocks in the source get the current digests of
their tags. What is locked already is renewed, and what nothing needs any more is removed.

The pipelines say what is allowed, with which credentials (spec.build.chartRepositories and
spec.build.remoteBases). If there is no directory of pipelines, the builds of the source are
found as with prerig review, and everything that they name is locked, without credentials.

If anything fails to resolve, no file is changed; --keep-going writes the rest.

--check writes nothing, and compares instead:

  current  the server has what is locked
  newer    there is a newer version in the range of a chart, or a newer commit on a branch
  changed  the server has another archive, another commit for a tag, or another file
  lost     the server no longer has the version, or the branch or tag
  missing  something is not locked

Exit codes:
  0  success; with --check if everything is current or newer
  1  --check: something is changed, lost or missing
  2  something does not resolve, or a pipeline, a lock or a flag is invalid`
	cmd.Example = `  prerig lock
  prerig lock --check
  prerig lock --pipelines ../config/pipelines --source . team/shop`
	c := newLockRun(streams, cmd)
	c.discovers, c.images = true, &images.Options{UserAgent: "prerig/" + version}
	f := cmd.Flags()
	f.BoolVarP(&c.quiet, "quiet", "q", false, "do not print what was locked")
	f.BoolVar(&c.keepGoing, "keep-going", false, "lock what resolves, print the rest, and exit with 2")
	check := f.Bool("check", false, "write nothing, and compare the lock with the servers")
	formatFlag(cmd, streams, &output, textFormats)
	f.Lookup("output").Usage = "output format of --check: text, json or yaml"
	registryFlags(cmd, c.images)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.discovers = !cmd.Flags().Changed("pipelines")
		if *check {
			return c.runVerify(cmd.Context(), args, output)
		}
		return c.runLock(cmd.Context(), args, build.RenewLocked, func(string) bool { return true })
	}
	return cmd
}

// lockRun is the state of one command about locks.
type lockRun struct {
	localPipelines
	streams          Streams
	quiet, keepGoing bool
	discovers        bool            // the builds of a source without pipelines
	images           *images.Options // nil leaves ImageLocks alone
	finder           *dryrun.Renderer
	directories      []string // of sources
	failed           []error  // what --keep-going has passed over
}

func newLockRun(streams Streams, cmd *cobra.Command) *lockRun {
	c := &lockRun{streams: streams}
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

// collect finds what the pipelines need. Call closing at the end.
func (c *lockRun) collect(ctx context.Context, args []string, mode build.LockMode) (found *lock.Collector, closing func(), err error) {
	bar := newBar(c.streams.Err, "finding what the source names on other servers")
	defer bar.clearLine()
	if c.pool, err = render.NewPool(render.Options{}); err != nil {
		return nil, nil, err
	}
	fetcher := source.New(source.Options{StateDir: c.cache, Secrets: secret.Dir{Path: c.secrets}, AllowDir: true})
	c.finder = &dryrun.Renderer{
		Fetcher: fetcher, PipelinesDir: c.pipelines,
		Builder: &build.Builder{Renderer: c.pool, Limits: render.DefaultLimits(), Repositories: fetcher,
			Charts: c.newCharts()},
	}
	found = &lock.Collector{}
	if _, missing := os.Stat(c.pipelines); missing != nil && c.discovers && len(args) == 0 {
		err = c.collectDiscovered(ctx, found, mode)
	} else {
		err = c.collectPipelines(ctx, found, args, mode)
	}
	if err != nil {
		c.pool.Close()
	}
	return found, c.pool.Close, err
}

// collectPipelines finds what the pipelines of the catalog need.
func (c *lockRun) collectPipelines(ctx context.Context, found *lock.Collector, args []string,
	mode build.LockMode) error {
	if err := isDirectory("pipelines", c.pipelines); err != nil {
		return err
	}
	var err error
	if c.catalog, err = catalog.Open(c.pipelines, nil); err != nil {
		return err
	}
	sources, err := c.replacementDirectories()
	if err != nil {
		return err
	}
	entries, err := c.choosePipelines(args)
	if err != nil {
		return err
	}
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
		absolute, err := filepath.Abs(at)
		if err != nil {
			return err
		}
		c.finder.Sources = maps.Clone(sources)
		c.finder.Sources[""] = absolute
		errs = append(errs, c.add(ctx, found, e, at, mode))
	}
	return errors.Join(errs...)
}

// collectDiscovered finds what the builds of a source without pipelines need.
func (c *lockRun) collectDiscovered(ctx context.Context, found *lock.Collector, mode build.LockMode) error {
	at := "."
	switch {
	case len(c.sources) > 1:
		return errors.New("several flags --source are for pipelines, and no directory of pipelines was found; specify it with --pipelines")
	case len(c.sources) == 1:
		at = c.sources[0]
	}
	here, urls, err := workEnd(at)
	if err != nil {
		return err
	}
	options := discover.Options{KubeVersion: gate.NewestKubernetes + ".0", PolicyName: policy.FileName, URLs: urls,
		Impure: v1alpha1.ImpureEmpty}
	if here.entries, err = discoverEntries(here.snapshot, options); err != nil {
		return err
	}
	c.finder.Instead, c.finder.Builder.AnyRemote = here.supply, true
	var errs []error
	for _, e := range here.entries {
		errs = append(errs, c.add(ctx, found, e, here.name, mode))
	}
	return errors.Join(errs...)
}

// add adds what a pipeline needs, whose source is in a directory.
func (c *lockRun) add(ctx context.Context, found *lock.Collector, e catalog.Entry, at string,
	mode build.LockMode) error {
	c.directories = append(c.directories, at)
	references, err := c.finder.FindReferences(ctx, e, mode)
	if references != nil && (err == nil || c.keepGoing) {
		err = errors.Join(err, found.Add(c.finder.Builder, e.Pipeline, at, references))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", e.Key, err)
	}
	return c.passOver(err)
}

// passOver keeps an error for the end with --keep-going, and returns it otherwise.
func (c *lockRun) passOver(err error) error {
	if err == nil || !c.keepGoing {
		return err
	}
	c.failed = append(c.failed, err)
	return nil
}

// sourceDir returns the directory with the source of a pipeline; ok is false where the flags name directories for
// others only.
func (c *lockRun) sourceDir(e catalog.Entry, sources map[string]string) (at string, ok bool) {
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

// runLock writes the locks.
func (c *lockRun) runLock(ctx context.Context, args []string, mode build.LockMode, renew func(string) bool) error {
	found, closing, err := c.collect(ctx, args, mode)
	if err != nil {
		return err
	}
	defer closing()
	locker := lock.Locker{Charts: c.newCharts(), Archives: c.pool, Renew: renew,
		Keep: len(args) > 0 || len(c.failed) > 0}
	var outs []files.Output
	var said strings.Builder
	bar := newBar(c.streams.Err, "querying the servers")
	defer bar.clearLine()
	for i, file := range found.Files {
		bar.setProgress(i, len(found.Files), file.Path)
		now, changes, err := locker.Lock(ctx, file)
		if err := c.passOver(err); err != nil {
			return fmt.Errorf("locking charts: %w", err)
		}
		data, err := v1alpha1.MarshalChartLock(now)
		if err != nil {
			return err
		}
		describeChanges(&said, policy.DisplayPath(file.Path), changes, now.Spec)
		if bytes.Equal(file.Content, data) {
			continue
		}
		// Links come from the author of the source.
		source, err := files.OpenDirectory(file.Source)
		if err != nil {
			return err
		}
		defer source.Close() //nolint:gocritic // what is written needs all of them
		out, err := source.To(filepath.FromSlash(file.Name), data)
		if err != nil {
			return err
		}
		outs = append(outs, out)
	}
	bar.clearLine()
	if c.images != nil {
		if outs, err = c.renewImages(ctx, outs, &said); err != nil {
			return err
		}
	}
	if err := files.Write(ctx, outs, nil); err != nil {
		return err
	}
	if said.Len() == 0 {
		said.WriteString("nothing to lock\n")
	}
	if !c.quiet {
		fmt.Fprint(c.streams.Err, said.String())
	}
	return errors.Join(c.failed...)
}

// addChanged adds a file to what is written, if its content differs.
func addChanged(outs []files.Output, at string, data []byte) ([]files.Output, error) {
	if old, err := os.ReadFile(at); err == nil && bytes.Equal(old, data) {
		return outs, nil
	}
	out, err := files.To(at, data)
	return append(outs, out), err
}

// describeChanges describes the changes of a lock.
func describeChanges(to *strings.Builder, name string, changes lock.Changes, now v1alpha1.ChartLockSpec) {
	counts := []string{countWithNoun(len(now.Charts), "chart")}
	if len(now.Bases) > 0 {
		counts = append(counts, countWithNoun(len(now.Bases), "remote base"))
	}
	if len(now.Files) > 0 {
		counts = append(counts, countWithNoun(len(now.Files), "remote file"))
	}
	fmt.Fprintf(to, "%s: %s locked\n", name, strings.Join(counts, ", "))
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
