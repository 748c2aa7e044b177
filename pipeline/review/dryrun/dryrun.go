// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"path"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/publish/externalartifact"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Renderer renders. It is safe for concurrent use. What it has fetched it keeps, so that all pipelines of a repository
// see one state of it.
type Renderer struct {
	// Fetcher fetches, Builder renders.
	Fetcher *source.Fetcher
	Builder *build.Builder
	// Secrets are for registries to compare with; nil means none.
	Secrets secret.Reader
	// Artifacts has what is published as ExternalArtifacts; nil means that it is not known.
	Artifacts *externalartifact.Keeper
	// PipelinesDir is what sources that are directories are relative to, together with their pipeline's file.
	PipelinesDir string
	// Sources maps the normal URLs of sources to local directories that replace them; "" matches every source.
	Sources map[string]string
	// Revision returns the revision of a pipeline's source, by its mount path; "" means the one that the pipeline
	// specifies. It may be nil.
	Revision func(e catalog.Entry, mountPath string) string
	// Instead supplies the files of some sources of a pipeline by other means, or returns nil for those to fetch.
	// It may be nil.
	Instead func(e catalog.Entry, one v1alpha1.NamedSource) *source.Snapshot
	// Published returns what a result is compared with at a place, if that differs from what it holds. It
	// may be nil.
	Published func(ctx context.Context, e catalog.Entry, to v1alpha1.Publish) (publish.Holding, error)
	// Before returns the files that a pipeline's Jobs and bare Pods are compared with, in place of those of what it
	// publishes to. It may be nil.
	Before func(e catalog.Entry) map[string][]byte
	// Results is a directory of earlier results, which counts as what is published; "" for none.
	Results string
	// Workers is how many renders run at once; 0 means one for each processor.
	Workers int
	// KeepFiles keeps the files of both sides of a comparison, which a review needs.
	KeepFiles bool
	// Progress is called after each pipeline, one call at a time.
	Progress func(done, total int, name string)

	snapshots source.Once[*source.Snapshot]
	branches  source.Once[*tree.Tree]
}

// Result is one pipeline rendered.
type Result struct {
	// Entry is the pipeline.
	Entry catalog.Entry
	// Snapshot of the source, and what was built of it.
	Snapshot *source.Snapshot
	Built    *build.Built
	// Path and Files are those of the first place that it is published to.
	Path  string
	Files map[string][]byte
	// Objects are what the files hold: those that were built, and those that failed units keep.
	Objects []render.Object
	// Gate is the reason why the result would be rejected.
	Gate error
	// Err is the reason why the render failed.
	Err error

	compares bool // with what is published
}

// Response returns what a renderer answered, nil without an answer or for a result that is nil.
func (r *Result) Response() *render.Response {
	if r == nil || r.Built == nil {
		return nil
	}
	return r.Built.Response
}

// All renders pipelines, in their order. What is published of them counts where Results has it.
func (p *Renderer) All(ctx context.Context, entries []catalog.Entry) []Result {
	return forEachPipeline(ctx, p, entries, p.previewOne)
}

// AllBut is All that takes the results of pipelines without policies from known, where it has them: what is published of them
// does not matter.
func (p *Renderer) AllBut(ctx context.Context, entries []catalog.Entry, known []Result) []Result {
	have := map[string]Result{}
	for _, r := range known {
		if r.Entry.Pipeline != nil && len(r.Entry.Pipeline.Spec.Policies) == 0 {
			have[r.Entry.Key] = r
		}
	}
	return forEachPipeline(ctx, p, entries, func(ctx context.Context, e catalog.Entry) Result {
		if r, ok := have[e.Key]; ok {
			return r
		}
		return p.previewOne(ctx, e)
	})
}

func (p *Renderer) previewOne(ctx context.Context, e catalog.Entry) Result {
	r := Result{Entry: e}
	r.Err = p.renderResult(ctx, &r)
	return r
}

// forEachPipeline does something for every pipeline, several at once.
func forEachPipeline[T any](ctx context.Context, p *Renderer, entries []catalog.Entry, do func(context.Context, catalog.Entry) T) []T {
	workers := p.Workers
	if workers == 0 {
		workers = runtime.NumCPU()
	}
	results := make([]T, len(entries))
	var group sync.WaitGroup
	var mu sync.Mutex
	done := 0
	slots := make(chan struct{}, workers)
	for i, e := range entries {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			results[i] = do(ctx, e)
			mu.Lock()
			defer mu.Unlock()
			if done++; p.Progress != nil {
				p.Progress(done, len(entries), e.Key)
			}
		})
	}
	group.Wait()
	return results
}

func (p *Renderer) renderResult(ctx context.Context, r *Result) error {
	if r.Entry.Err != nil {
		return r.Entry.Err
	}
	pipeline := r.Entry.Pipeline
	var err error
	if r.Snapshot, err = p.fetchSources(ctx, r.Entry, p.substituteSnapshotFor(r.Entry)); err != nil {
		return err
	}
	if r.Built, err = p.Builder.Build(r.Entry.Scope().Bind(ctx), pipeline, r.Snapshot.Tree); err != nil {
		return err
	}
	if err = p.keepPublished(ctx, r); err != nil {
		return err
	}
	if err = p.Builder.CheckGates(ctx, pipeline, r.Snapshot.Tree, r.Built.Response); err != nil {
		return err
	}
	publish.PlaceFindings(pipeline.Spec, r.Built.Results, r.Built.Objects, nil)
	r.Gate = publish.CheckGates(pipeline.Spec, r.Built.Results, r.Built.Objects)
	var to v1alpha1.Publish
	if len(pipeline.Spec.Publish) > 0 {
		to = pipeline.Spec.Publish[0]
	}
	r.Path, r.Objects = PathOf(pipeline), r.Built.Objects
	if r.Files, err = p.filesForTarget(ctx, r, to); err != nil || p.Results == "" || r.Built.UnitError() == nil {
		return err
	}
	held, err := readDirectory(filepath.Join(p.Results, filepath.FromSlash(r.Path)))
	r.Objects = publish.KeepFailed(r.Files, held, r.Built.Response)
	return err
}

// PathOf is the directory of a pipeline at the first place that it is published to.
func PathOf(pipeline *v1alpha1.RenderPipeline) string {
	if to := pipeline.Spec.Publish; len(to) > 0 && to[0].Directory() != "" {
		return path.Clean(to[0].Directory())
	}
	return pipeline.Metadata.Name
}

// filesForTarget returns the files as one place gets them.
func (p *Renderer) filesForTarget(ctx context.Context, r *Result, to v1alpha1.Publish) (map[string][]byte, error) {
	writer, err := publish.Readers(p.Fetcher, p.Secrets, nil).Writer(ctx, r.Entry.Pipeline, to)
	if err != nil {
		return nil, err
	}
	return writer.Files(r.Built.Objects)
}
