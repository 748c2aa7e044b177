// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/build/cache"
	"github.com/prerig/prerig/pipeline/cli/images"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/kubernetes/mesh"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/chart"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// localPipelines is what the commands need that work on pipelines without a daemon.
type localPipelines struct {
	pipelines, policies, secrets, cache string
	sources                             []string
	revisions                           []string
	jobs                                int
	timeout                             time.Duration // of one render; 0 for the default
	noCache                             bool
	given                               mesh.Given // in place of what a cluster has
	results                             string     // a directory of results, which is not part of a source; "" for none

	catalog *catalog.Catalog
	pool    *render.Pool
	bar     *progressBar
}

func (l *localPipelines) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.pipelines, "pipelines", "pipelines", "directory of RenderPipeline files")
	f.StringVar(&l.policies, "policies", "policies",
		"directory of the policies that pipelines reference by policies[].file")
	f.StringVar(&l.secrets, "secrets", "secrets", "directory of secrets, with files NAMESPACE/NAME/KEY")
	f.StringVar(&l.cache, "cache", defaultCache(), "cache directory")
	f.IntVarP(&l.jobs, "jobs", "j", 0, "number of concurrent renders (default: one per processor)")
	for _, name := range []string{"pipelines", "policies", "secrets", "cache"} {
		mustRegister(cmd.MarkFlagDirname(name))
	}
}

func (l *localPipelines) sourceFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&l.sources, "source", nil, "directory to use as the source: DIR for all pipelines, or URL=DIR for pipelines with that source, including mounted ones; may be repeated")
	f.StringArrayVar(&l.revisions, "revision", nil,
		"commit or digest of the source, as in the commit trailers; MOUNTPATH=REVISION for a mounted source (default: what the pipeline follows)")
}

// localCacheSize bounds the builds that are remembered, in bytes.
const localCacheSize = 256 << 20

func defaultCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "prerig")
	}
	return filepath.Join(dir, "prerig")
}

// localMaxTimeout is the longest time limit that a pipeline may set where no operator has configured one.
const localMaxTimeout = time.Hour

// openDryRun reads the pipelines and returns their renderer. Call closing at the end.
func (l *localPipelines) openDryRun(streams Streams, version string) (p *dryrun.Renderer, closing func(), err error) {
	if info, err := os.Stat(l.pipelines); err != nil || !info.IsDir() {
		return nil, nil, fmt.Errorf("reading pipelines: %s is not a directory; specify it with --pipelines, or write pipelines with prerig init --source .; prerig review needs none", l.pipelines)
	}
	if l.catalog, err = catalog.Open(l.pipelines, nil); err != nil {
		return nil, nil, err
	}
	if err := l.checkRevisions(); err != nil {
		return nil, nil, err
	}
	sources, err := l.replacementDirectories()
	if err != nil {
		return nil, nil, err
	}
	if p, closing, err = l.startRenderer(streams, version); err != nil {
		return nil, nil, err
	}
	p.Results, p.PipelinesDir, p.Sources, p.Revision = l.results, l.pipelines, sources, l.revisionOf
	return p, closing, nil
}

// startRenderer returns a renderer of pipelines, wherever they are from. Call closing at the end.
func (l *localPipelines) startRenderer(streams Streams, version string) (p *dryrun.Renderer, closing func(), err error) {
	if l.jobs < 0 {
		return nil, nil, fmt.Errorf("the flag --jobs must not be negative, found %d", l.jobs)
	}
	limits := render.DefaultLimits()
	if l.timeout < 0 {
		return nil, nil, fmt.Errorf("the flag --timeout must not be negative, found %s", l.timeout)
	}
	limits.Timeout = cmp.Or(l.timeout, limits.Timeout)
	limits.MaxTimeout = max(l.timeout, localMaxTimeout)
	if l.pool, err = render.NewPool(render.Options{Warm: 2}); err != nil {
		return nil, nil, err
	}
	l.bar = newBar(streams.Err, "rendering")
	from := source.Options{StateDir: l.cache, Secrets: secret.Dir{Path: l.secrets}, AllowDir: true}
	if l.results != "" {
		if l.results, err = filepath.Abs(l.results); err != nil {
			return nil, nil, err
		}
		from.Without = []string{l.results}
	}
	fetcher := source.New(from)
	p = &dryrun.Renderer{
		Fetcher: fetcher,
		Builder: &build.Builder{
			Renderer: l.pool, Validator: gate.InstalledValidator(), Policies: l.policies, Limits: limits,
			Repositories: fetcher, Charts: l.newCharts(), Version: toolVersion(version),
			Cache: &build.Cache{Store: cache.Open(cache.Options{Dir: filepath.Join(l.cache, "builds"), MaxBytes: localCacheSize}), Check: l.noCache},
		},
		Secrets: secret.Dir{Path: l.secrets},
		Workers: l.jobs,
		Progress: func(done, total int, name string) {
			l.bar.setImageProgress(images.Progress{Done: done, Total: total, Image: name})
		},
	}
	if len(l.given) > 0 {
		p.Builder.Objects, p.Builder.Cluster = l.given, l.given
	}
	return p, func() { l.bar.clearLine(); l.pool.Close() }, nil
}

// newCharts returns what brings charts of repositories.
func (l *localPipelines) newCharts() *chart.Fetcher {
	return chart.New(chart.Options{StateDir: l.cache, Secrets: secret.Dir{Path: l.secrets}})
}

// replacementDirectories maps the normalized URL of each replaced source, "" for every source, to its directory of
// --source. A directory that replaces no source is an error: the render would not match the command line.
func (l *localPipelines) replacementDirectories() (map[string]string, error) {
	sources := map[string]string{}
	for _, s := range l.sources {
		url, dir, ok := strings.Cut(s, "=")
		if !ok {
			url, dir = "", s
		} else if url = giturl.Normal(url); !l.hasSource(url) {
			given, _, _ := strings.Cut(s, "=")
			known := l.sourceURLs()
			return nil, fmt.Errorf("reading the flag --source: no pipeline in %s has the source %s%s; the sources are %s",
				l.pipelines, given, strict.DidYouMean(given, known), cmp.Or(strings.Join(known, ", "), "directories"))
		}
		if url == "" && l.hasMainRevision() {
			return nil, fmt.Errorf("the flags --source %s and --revision cannot be used together: a directory has no revisions", dir)
		}
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("reading the flag --source: %w", err)
		}
		if err := isDirectory("source", absolute); err != nil {
			return nil, err
		}
		sources[url] = absolute
	}
	return sources, nil
}

// hasSource reports whether a pipeline has the source with a normalized URL. Read errors are reported later.
func (l *localPipelines) hasSource(url string) bool {
	return slices.ContainsFunc(l.catalog.All(), func(e catalog.Entry) bool {
		if e.Err != nil {
			return true
		}
		return slices.ContainsFunc(e.Pipeline.AllSources(), func(s v1alpha1.NamedSource) bool { return s.Dir == nil && giturl.Normal(s.URL()) == url })
	})
}

// sourceURLs returns the URLs of the pipelines' sources, each once.
func (l *localPipelines) sourceURLs() []string {
	found := map[string]bool{}
	for _, e := range l.catalog.All() {
		if e.Err != nil {
			continue
		}
		for _, s := range e.Pipeline.AllSources() {
			if s.Dir == nil {
				found[s.URL()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// isDirectory checks what a flag names.
func isDirectory(flag, dir string) error {
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("reading the flag --%s: %s is not a directory", flag, dir)
	}
	return nil
}

// choosePipelines returns the named pipelines, all without names.
func (l *localPipelines) choosePipelines(names []string) ([]catalog.Entry, error) {
	var out []catalog.Entry
	all := l.catalog.All()
	if len(all) == 0 {
		return nil, fmt.Errorf("no pipelines in %s; write some with prerig init --source ., or name their directory with --pipelines", l.pipelines)
	}
	known := make([]string, 0, len(all))
	var unreadable []error      // the reasons why files, which may have a pipeline that is not found, could not be read
	again := map[string]error{} // pipelines that two files define, of which it is not sure which is meant
	for _, e := range all {
		if key, ok := strings.CutPrefix(e.Key, e.File+"#"); ok {
			again[key] = e.Err
			continue
		}
		known = append(known, e.Key)
		if e.Opaque && e.Err != nil {
			unreadable = append(unreadable, e.Err)
		}
	}
	wanted := map[string]bool{}
	for _, name := range names {
		key := keyOfPipeline(name, known)
		if err := again[key]; err != nil {
			return nil, err
		}
		if key == "" {
			return nil, errors.Join(append([]error{fmt.Errorf("no pipeline %s in %s%s", name, l.pipelines, suggestNames(name, known))}, unreadable...)...)
		}
		wanted[key] = true
	}
	for _, e := range all {
		if len(names) == 0 || wanted[e.Key] {
			out = append(out, e)
		}
	}
	return out, nil
}

// keyOfPipeline returns the key that a user's name means: the key itself, or the only one with the name in any
// namespace. It is "" if there is none.
func keyOfPipeline(name string, known []string) string {
	if slices.Contains(known, name) {
		return name
	}
	found := ""
	for _, key := range known {
		if strings.HasSuffix(key, "/"+name) {
			if found != "" {
				return ""
			}
			found = key
		}
	}
	return found
}

// suggestNames returns the names that the user may have meant, most similar first.
func suggestNames(name string, known []string) string {
	if near := closestNames(name, known, 3); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}
