// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/review/injection"
	"github.com/prerig/prerig/pipeline/review/redact"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Bounds of what is read to show a manifest: how many at the same time, one of a namespace, and for how long, bytes of a file and of all
// that are searched, and the lines that are shown.
const (
	manifestTurns    = 4
	manifestTimeout  = 20 * time.Second
	maxManifest      = 2 << 20
	maxSearched      = 16 << 20
	maxManifestLines = 5000
	maxListedFiles   = 200
)

// errNoTargets is returned by the server of a process that reads nothing that is published.
var errNoTargets = errors.New("this process does not read what is published")

// manifestReader reads what pipelines have published, on request. It is safe for concurrent use.
type manifestReader struct {
	targets *publish.Targets // nil for none
	turns   *budget.Budget

	prepare sync.Once
	remover *injection.Remover
}

func newManifestReader(targets *publish.Targets) *manifestReader {
	return &manifestReader{targets: targets, turns: budget.New(manifestTurns, 1, manifestTimeout)}
}

// shownManifest is a manifest as it is shown.
type shownManifest struct {
	// File is where it is, in Target at Revision. Proposed reports whether it waits in a pull request, Altered whether
	// the branch was changed since the last publish, which was Published.
	File, Target, Revision string
	Proposed, Altered      bool
	Published              string
	Lines                  []lineData
	// Injected are how many of the lines an injection made; LinesLeftOut are not shown.
	Injected, LinesLeftOut int
}

// takeTurn waits until this reader may read what the pipelines of a namespace have published; the caller calls done. A
// namespace whose servers do not answer keeps no other one waiting.
func (m *manifestReader) takeTurn(
	ctx context.Context,
	namespace string,
) (bounded context.Context, done func(), err error) {
	if m.targets == nil {
		return nil, nil, errNoTargets
	}
	bounded, cancel := context.WithTimeout(ctx, manifestTimeout)
	turn := m.turns.Lease(namespace)
	if turn.Grow(bounded, 1) != nil {
		cancel()
		return nil, nil, errors.New("others are being read; try again in a moment")
	}
	return bounded, func() { turn.Release(); cancel() }, nil
}

// workload returns the manifest of a workload, nil where nothing that is published has it.
func (m *manifestReader) workload(
	ctx context.Context,
	p *v1alpha1.RenderPipeline,
	state *status.State,
	name string,
) (*shownManifest, error) {
	ctx, done, err := m.takeTurn(ctx, p.Metadata.Namespace)
	if err != nil {
		return nil, err
	}
	defer done()
	for _, to := range p.Spec.Publish {
		published := publishedTo(Pipeline{Status: state.Status}, to)
		if published == nil || published.Revision == "" {
			continue
		}
		published = headOf(published, state)
		contents, err := m.targets.Contents(ctx, p, to, published.Revision)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", to.Target(), err)
		}
		file, text, err := findWorkload(contents, name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", to.Target(), err)
		}
		if text != nil {
			return m.show(ctx, file, state, published, text), nil
		}
	}
	return nil, nil
}

// file returns a file that a pipeline has published to a target.
func (m *manifestReader) file(
	ctx context.Context,
	p *v1alpha1.RenderPipeline,
	state *status.State,
	target, name string,
) (*shownManifest, error) {
	ctx, done, err := m.takeTurn(ctx, p.Metadata.Namespace)
	if err != nil {
		return nil, err
	}
	defer done()
	for _, to := range p.Spec.Publish {
		published := publishedTo(Pipeline{Status: state.Status}, to)
		if to.Target() != target || published == nil || published.Revision == "" {
			continue
		}
		published = headOf(published, state)
		contents, err := m.targets.Contents(ctx, p, to, published.Revision)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", target, err)
		}
		text, err := contents.Read(name)
		if err != nil {
			return nil, err
		}
		return m.show(ctx, name, state, published, text), nil
	}
	return nil, publish.ErrNoFile
}

// headOf returns what is published at the newest commit of the branch, where a rollback or a person has changed that.
func headOf(published *v1alpha1.Published, state *status.State) *v1alpha1.Published {
	if published.PullRequest != nil || state.BranchDrift() == "" {
		return published
	}
	if head := state.Mesh.OnBranch.Revisions[published.Target]; head != "" {
		at := *published
		at.Revision = head
		return &at
	}
	return published
}

// findWorkload returns the document of a workload and its file; nil for none. Files that are named after it come
// first.
func findWorkload(contents publish.Contents, name string) (file string, document []byte, err error) {
	_, short, _ := strings.Cut(name, " ")
	names := slices.DeleteFunc(
		slices.Clone(contents.Names),
		func(file string) bool { return !manifest.IsFileName(file) },
	)
	likely := func(file string) int {
		if strings.Contains(path.Base(file), path.Base(short)) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(names, func(a, b string) int { return likely(a) - likely(b) })
	left := maxSearched
	for _, file := range names {
		content, err := contents.Read(file)
		if err != nil {
			return "", nil, err
		}
		if left -= len(content); left < 0 {
			return "", nil, errors.New("too much is published to find the workload in it")
		}
		if !bytes.Contains(content, []byte(path.Base(short))) {
			continue
		}
		parsed, err := manifest.Parse("", content)
		if err != nil {
			continue
		}
		for _, doc := range parsed.Docs {
			if object, err := doc.Object(); err == nil && result.RefTo(object).String() == name {
				return file, doc.Raw(), nil
			}
		}
	}
	return "", nil, nil
}

// show prepares a manifest for people. Values of Secrets are hidden: who may look need not be who may read Secrets.
func (m *manifestReader) show(
	ctx context.Context,
	file string,
	state *status.State,
	published *v1alpha1.Published,
	text []byte,
) *shownManifest {
	out := &shownManifest{
		File:     foreign.Visible(file),
		Target:   published.Target,
		Revision: published.Revision,
		Proposed: published.PullRequest != nil,
	}
	for _, one := range state.Status.Published {
		if one.Target == published.Target && one.Revision != published.Revision {
			out.Altered, out.Published = true, one.Revision
		}
	}
	if len(text) > maxManifest {
		out.LinesLeftOut = bytes.Count(text, []byte("\n"))
		return out
	}
	injected := map[int]bool{}
	m.prepare.Do(func() { m.remover, _ = injection.NewRemover() })
	if m.remover != nil {
		for _, n := range m.remover.Lines(ctx, text) {
			injected[n] = true
		}
	}
	_, hidden := redact.Pair(text, text)
	n := 0
	for line := range strings.Lines(string(hidden)) {
		if n++; n > maxManifestLines {
			out.LinesLeftOut++
			continue
		}
		one := lineData{
			Kind:     "same",
			New:      strconv.Itoa(n),
			Text:     foreign.Visible(strings.TrimSuffix(line, "\n")),
			Injected: injected[n],
		}
		if one.Injected {
			out.Injected++
		}
		out.Lines = append(out.Lines, one)
	}
	return out
}

// listedFile is a file that a pipeline has published.
type listedFile struct{ Path, Target string }

// filesOfTargets returns the manifests that a pipeline has published, as far as its state names them, and how many
// more there are.
func filesOfTargets(p *v1alpha1.RenderPipeline, state *status.State) (out []listedFile, more int) {
	for _, to := range p.Spec.Publish {
		for _, one := range state.Seen.Targets[to.Target()] {
			if one.Op != tree.OpRead || !manifest.IsFileName(one.Path) ||
				strings.HasPrefix(one.Path, publish.MetaDir+"/") {
				continue
			}
			if len(out) == maxListedFiles {
				more++
				continue
			}
			out = append(out, listedFile{one.Path, to.Target()})
		}
	}
	return out, more
}

// publishedFileData is the page of a published file.
type publishedFileData struct {
	Pipeline Pipeline
	Manifest *shownManifest
	Problem  string
}

func (h *pageHandler) filePage(w http.ResponseWriter, r *http.Request) {
	e, ok := h.requestedEntry(w, r)
	if !ok {
		return
	}
	data := publishedFileData{Pipeline: h.views.viewPipeline(e)}
	name := r.URL.Query().Get("path")
	if e.Err == nil {
		var err error
		data.Manifest, err = h.manifests.file(
			r.Context(),
			e.Pipeline,
			h.views.store.Get(e.Key),
			r.URL.Query().Get("target"),
			name,
		)
		if errors.Is(err, publish.ErrNoFile) {
			h.pages.writeFailurePage(
				w,
				r,
				http.StatusNotFound,
				"There is no file "+foreign.Quote(name)+" of "+e.Key+".",
			)
			return
		}
		data.Problem = h.problemOf(err)
	}
	h.pages.writePage(w, r, "file", foreign.Line(path.Base(name), maxTitle), data)
}

// maxTitle bounds what a title has of a name.
const maxTitle = 80

// problemOf describes why a manifest cannot be shown.
func (h *pageHandler) problemOf(err error) string {
	if err == nil {
		return ""
	}
	h.log.Debug("a manifest could not be read", "error", err)
	return foreign.Visible(status.OneLine(err.Error()))
}

// requestedWorkload returns a workload of a pipeline that the user may see.
func (h *pageHandler) requestedWorkload(w http.ResponseWriter, r *http.Request) (catalog.Entry, workloadRow, bool) {
	e, ok := h.requestedEntry(w, r)
	if !ok {
		return e, workloadRow{}, false
	}
	name := r.URL.Query().Get("workload")
	p := row{Pipeline: h.views.viewPipeline(e), entry: e}
	all, _ := h.views.workloadsOf(p, h.differences(requestPrincipal(r), []row{p})[e.Key])
	i := slices.IndexFunc(all, func(one workloadRow) bool { return one.Name == name })
	if i < 0 {
		h.pages.writeFailurePage(
			w,
			r,
			http.StatusNotFound,
			"There is no workload "+foreign.Quote(name)+" of "+e.Key+".",
		)
		return e, workloadRow{}, false
	}
	return e, all[i], true
}
