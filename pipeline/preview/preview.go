// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"sync"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/event"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/run"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Previewer renders. It is safe for concurrent use.
type Previewer struct {
	// Fetcher fetches, Builder renders.
	Fetcher *source.Fetcher
	Builder *run.Builder
	// PipelinesDir is what sources that are directories are relative to, together with their pipeline's file.
	PipelinesDir string
	// Sources are local directories that stand for sources, by their normal URL; "" stands for every one.
	Sources map[string]string
	// Revision of the source; "" is what the pipeline says.
	Revision string
	// Workers is how many renders run at once; 0 means one for each processor.
	Workers int
	// Progress is called after each pipeline.
	Progress func(done, total int, name string)
}

// Result is one pipeline rendered.
type Result struct {
	// Entry is the pipeline.
	Entry catalog.Entry
	// Snapshot of the source, and what was built of it.
	Snapshot *source.Snapshot
	Built    *run.Built
	// Path and Files are those of the first place that it is published to.
	Path  string
	Files map[string][]byte
	// Gate says why the result would be refused.
	Gate error
	// Err says why there is none.
	Err error
}

// All renders pipelines, in their order.
func (p *Previewer) All(ctx context.Context, entries []catalog.Entry) []Result {
	return each(ctx, p, entries, func(ctx context.Context, e catalog.Entry) Result {
		r := Result{Entry: e}
		r.Err = p.render(ctx, &r)
		return r
	})
}

// each does something for every pipeline, several at once.
func each[T any](ctx context.Context, p *Previewer, entries []catalog.Entry, do func(context.Context, catalog.Entry) T) []T {
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

func (p *Previewer) render(ctx context.Context, r *Result) error {
	if r.Entry.Err != nil {
		return r.Entry.Err
	}
	pipeline := r.Entry.Pipeline
	var err error
	if r.Snapshot, err = p.fetch(ctx, r.Entry); err != nil {
		return err
	}
	if r.Built, err = p.Builder.Build(ctx, pipeline, r.Snapshot.Tree); err != nil {
		return err
	}
	r.Gate = publish.CheckResults(pipeline.Spec.Gates, r.Built.Results)
	layout, style := v1alpha1.LayoutObjects, v1alpha1.StyleCanonical
	r.Path = pipeline.Metadata.Name
	if len(pipeline.Spec.Publish) > 0 {
		switch to := pipeline.Spec.Publish[0]; {
		case to.Git != nil:
			layout, style, r.Path = to.Git.Layout, to.Git.Style, path.Clean(to.Git.Path)
		case to.OCI != nil:
			layout, style = to.OCI.Layout, to.OCI.Style
		}
	}
	r.Files, err = publish.Files(r.Built.Objects, layout, style)
	return err
}

// fetch gives the source, or the directory that stands for it.
func (p *Previewer) fetch(ctx context.Context, e catalog.Entry) (*source.Snapshot, error) {
	src := run.Source(e, p.PipelinesDir)
	if dir, ok := p.stand(src); ok {
		src = v1alpha1.Source{Dir: &v1alpha1.DirSource{Path: dir}}
		return p.Fetcher.Fetch(ctx, e.Pipeline.Metadata.Namespace, src, "")
	}
	return p.Fetcher.Fetch(ctx, e.Pipeline.Metadata.Namespace, src, p.Revision)
}

func (p *Previewer) stand(src v1alpha1.Source) (string, bool) {
	url := ""
	switch {
	case src.Git != nil:
		url = src.Git.URL
	case src.OCI != nil:
		url = src.OCI.URL
	}
	if dir, ok := p.Sources[event.NormalURL(url)]; ok && url != "" {
		return dir, true
	}
	dir, ok := p.Sources[""]
	return dir, ok
}

// Published gives what is published of a pipeline now, by paths relative to the pipeline's own.
func (p *Previewer) Published(ctx context.Context, e catalog.Entry) (map[string][]byte, error) {
	if len(e.Pipeline.Spec.Publish) == 0 || e.Pipeline.Spec.Publish[0].Git == nil {
		return nil, errors.New("comparing: the first entry of spec.publish is not a Git branch")
	}
	to := e.Pipeline.Spec.Publish[0].Git
	mirror, remote, err := p.Fetcher.Repository(ctx, e.Pipeline.Metadata.Namespace, to.URL, to.SecretRef)
	if err != nil {
		return nil, err
	}
	// What is active is what a proposal is compared with too.
	commit, err := mirror.Fetch(ctx, remote, git.Ref{Name: "refs/heads/" + to.Branch})
	if errors.Is(err, git.ErrNoRef) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := publish.Published(tree.NewView(mirror.Tree(commit), tree.Limits{}), e.Key)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name, content := range files {
		out[Relative(path.Clean(to.Path), name)] = content
	}
	return out, nil
}

// Relative takes a pipeline's own path off a path on the branch.
func Relative(base, name string) string {
	if base != "." && len(name) > len(base) && name[:len(base)] == base && name[len(base)] == '/' {
		return name[len(base)+1:]
	}
	return name
}

// Touched is a pipeline that a range of commits touches.
type Touched struct {
	// Pipeline is its key, Reason what it would see.
	Pipeline string `json:"pipeline"`
	Reason   string `json:"reason"`
}

// Affected gives the pipelines whose render at head could differ from the one at base: each is rendered at base, and what
// it has read is compared.
func (p *Previewer) Affected(ctx context.Context, entries []catalog.Entry, base, head *tree.Tree) []Touched {
	found := each(ctx, p, entries, func(ctx context.Context, e catalog.Entry) *Touched {
		if base.ID() == head.ID() {
			return nil
		}
		built, err := p.Builder.Build(ctx, e.Pipeline, base)
		if reason, affected := built.Record.Affected(head); affected {
			return &Touched{Pipeline: e.Key, Reason: reason}
		}
		if err != nil && ctx.Err() != nil {
			return &Touched{Pipeline: e.Key, Reason: fmt.Sprintf("it could not be found out: %v", err)}
		}
		return nil
	})
	out := []Touched{}
	for _, one := range found {
		if one != nil {
			out = append(out, *one)
		}
	}
	return out
}
