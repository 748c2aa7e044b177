// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/dir"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/giturl"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// renderPatience bounds all renders together, and shownReasons is how many findings there are about one pipeline.
const (
	renderPatience = 5 * time.Minute
	shownReasons   = 5
)

// ownFiles are the files of the repository that doctor runs in.
type ownFiles struct {
	local    *git.Local
	snapshot *source.Snapshot
}

// readOwnFiles reads the files of the repository, except those that git ignores. It returns nil outside of a
// repository.
func readOwnFiles() (*ownFiles, error) {
	local, err := git.OpenLocal(".")
	if err != nil {
		return nil, nil //nolint:nilerr // pipelines have other sources then
	}
	root, err := local.Root()
	if err != nil {
		return nil, err
	}
	ignored, err := local.Ignored()
	if err != nil {
		return nil, err
	}
	files, err := dir.ReadExcept(root, tree.Limits{}, ignored)
	if err != nil {
		return nil, err
	}
	return &ownFiles{local, &source.Snapshot{Tree: files, Revision: "dir@" + files.ID()}}, nil
}

// supply returns the files as the source of a pipeline that follows the repository, and nil for other sources.
func (f *ownFiles) supply(_ catalog.Entry, one v1alpha1.NamedSource) *source.Snapshot {
	if f == nil || one.Git == nil || one.MountPath != "" || one.Git.Ref.Commit != "" || one.Git.Ref.Tag != "" {
		return nil
	}
	if slices.ContainsFunc(f.local.URLs(), func(url string) bool { return giturl.Same(url, one.Git.URL) }) {
		return f.snapshot
	}
	return nil
}

// checkRenders renders the pipelines as prerig render does, those of this repository from its files. Pipelines whose
// source or policy has a problem are not rendered: it is reported already.
func checkRenders(ctx context.Context, l *look, in *daemon.Inspection) {
	own, err := readOwnFiles()
	if err != nil {
		l.addFailure(Pipelines, ".", fmt.Errorf("reading the files of this repository: %w", err), "")
		return
	}
	entries := entriesToRender(l, in, own)
	if len(entries) == 0 {
		return
	}
	pool, err := render.NewPool(render.Options{Warm: 2})
	if err != nil {
		return // checkIsolation reports it
	}
	defer pool.Close()
	in.Builder.Renderer = pool
	renderer := &dryrun.Renderer{
		Fetcher: in.Fetcher, Builder: in.Builder, Secrets: in.Secrets, PipelinesDir: l.config.Pipelines,
		Instead: own.supply, Progress: l.o.Progress,
	}
	ctx, cancel := context.WithTimeout(ctx, renderPatience)
	defer cancel()
	late := 0
	for _, r := range renderer.All(ctx, entries) {
		if r.Err != nil && ctx.Err() != nil && errors.Is(r.Err, ctx.Err()) {
			late++
			continue
		}
		reportRender(l, r, own.supply(r.Entry, r.Entry.Sources(l.config.Pipelines)[0]) != nil)
	}
	if late > 0 {
		l.addWarning(Pipelines, pipelinesPlace(l.config),
			fmt.Sprintf("%d of %d pipelines were not rendered within %s", late, len(entries), renderPatience),
			"prerig render renders them")
	}
}

// entriesToRender returns the pipelines that can be rendered, and names those that are left out.
func entriesToRender(l *look, in *daemon.Inspection, own *ownFiles) (out []catalog.Entry) {
	failed := map[string]bool{}
	for _, f := range l.findings {
		if f.Severity == result.Info || f.Area == Targets {
			continue
		}
		where, _, _ := strings.Cut(f.Where, " ") // a field of a pipeline
		for _, key := range append(f.Pipelines, where) {
			failed[key] = true
		}
	}
	var skipped []string
	for _, e := range in.Catalog.All() {
		if e.Err != nil || failed[e.Key] {
			continue
		}
		isRemote := func(one v1alpha1.NamedSource) bool { return one.Dir == nil && own.supply(e, one) == nil }
		if l.o.Offline && (usesServers(e.Pipeline.Spec.Build) || slices.ContainsFunc(e.Sources(l.config.Pipelines), isRemote)) {
			skipped = append(skipped, e.Key)
			continue
		}
		out = append(out, e)
	}
	if len(skipped) > 0 {
		l.addPassedCheck(Pipelines, pipelinesPlace(l.config),
			"not rendered (--offline), as sources, charts or bases are on servers: %s",
			foreign.List(skipped, shownReasons))
	}
	return out
}

// usesServers reports whether a build may fetch charts or bases.
func usesServers(build v1alpha1.Build) bool {
	return len(build.ChartRepositories)+len(build.RemoteBases) > 0 || build.Helm != nil && build.Helm.Repository != ""
}

// reportRender reports what came of one render.
func reportRender(l *look, r dryrun.Result, isOwn bool) {
	key := r.Entry.Key
	add := func(f Finding) {
		f.Area, f.Severity, f.Pipelines = Pipelines, result.Error, []string{key}
		l.add(f)
	}
	if r.Err != nil {
		add(Finding{Where: r.Entry.File, Message: key + " cannot be rendered: " + oneLine(r.Err)})
		return
	}
	from := "its source"
	if isOwn {
		from = "the files of this repository"
	}
	failed := r.Built.NotRendered()
	shown := 0
	for _, one := range r.Built.Results {
		if !render.IsOfFailed(one) {
			continue
		}
		if shown++; shown <= shownReasons {
			add(findingOf(r.Entry, one))
		}
	}
	if shown > shownReasons {
		add(Finding{Where: r.Entry.File, Message: fmt.Sprintf("%s lacks %s", key, foreign.List(failed, shownReasons)), Advice: "prerig render -v prints every reason"})
	}
	if r.Gate != nil {
		add(Finding{Where: r.Entry.File, Message: key + " renders, and would not be published: " + oneLine(r.Gate)})
	}
	if len(failed) == 0 && r.Gate == nil {
		l.addPassedCheck(Pipelines, r.Entry.File, "%s renders %d objects from %s", key, len(r.Built.Objects), from)
	}
}

// findingOf converts the reason why a unit or release could not be rendered.
func findingOf(e catalog.Entry, one result.Result) Finding {
	f := Finding{Where: e.File, Message: e.Key + ": " + strings.TrimPrefix(one.String(), string(one.Severity)+": "),
		Unit: one.Tags[render.TagUnit]}
	if one.File != nil {
		f.File, f.Line = one.File.Path, one.File.Line
	}
	return f
}
