// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// pageHandler shows pipelines on pages.
type pageHandler struct {
	pages      *pageWriter
	views      *pipelineViews
	catalogs   *catalogHandler
	promotions *promotionHandler
	manifests  *manifestReader
	// clusters returns those that are compared with what is committed; nil for none.
	clusters func() []VerifiedCluster
	log      *slog.Logger
}

func (h *pageHandler) requestedEntry(w http.ResponseWriter, r *http.Request) (catalog.Entry, bool) {
	name := r.URL.Query().Get("name")
	if name == "" {
		name = r.URL.Query().Get("pipeline")
	}
	e, ok := h.views.visibleEntry(requestPrincipal(r), name)
	if !ok {
		h.pages.writeFailurePage(w, r, http.StatusNotFound, "There is no pipeline "+strconv.Quote(name)+".")
	}
	return e, ok
}

// pipelineData is the page of one pipeline.
type pipelineData struct {
	Pipeline
	Targets []shownTarget
	// InFile reports whether its own file suspends it.
	InFile bool
	// Interval is how often its source is looked at without an event.
	Interval string
	// Buttons are what who looks may do with it.
	Buttons []button
	Form    formData
	// Ticks are its last runs, Graph is what it reads and writes, nil for one that is invalid.
	Ticks tickChart
	Graph *graphData
	// Workloads are its workloads, of which MoreWorkloads are left out; Files are those that it has published.
	Workloads     []workloadRow
	MoreWorkloads int
	Files         []listedFile
	MoreFiles     int
}

// shownWorkloads is how many workloads the page of a pipeline lists.
const shownWorkloads = 50

// eventStreamPath implements livePage.
func (d pipelineData) eventStreamPath() string { return "/events?pipeline=" + url.QueryEscape(d.Name) }

// shownTarget is a place that it is published to, and its content.
type shownTarget struct {
	Against   string
	Published *v1alpha1.Published
}

func (h *pageHandler) pipelinePage(w http.ResponseWriter, r *http.Request) {
	e, ok := h.requestedEntry(w, r)
	if !ok {
		return
	}
	data := pipelineData{Pipeline: h.views.viewPipeline(e), Form: h.pages.forms.formData(r)}
	data.Buttons = buttonsOf(r, data.Pipeline, e)
	if e.Pipeline != nil {
		data.InFile = e.Pipeline.Spec.Suspend
		if interval := e.Pipeline.Spec.Interval; interval != nil && interval.Duration > 0 {
			data.Interval = shortDuration(interval.Duration)
		}
		for _, to := range e.Pipeline.Spec.Publish {
			data.Targets = append(data.Targets, shownTarget{Against: to.Description(), Published: publishedTo(data.Pipeline, to)})
		}
		h.addMesh(r, &data, e)
	}
	data.Ticks = drawTicks(data.Runs)
	h.pages.writePage(w, r, "pipeline", data.Name, data)
}

// addMesh adds what a pipeline reads, its workloads and its files.
func (h *pageHandler) addMesh(r *http.Request, data *pipelineData, e catalog.Entry) {
	who := requestPrincipal(r)
	p := row{Pipeline: data.Pipeline, entry: e}
	graph := graphOf(p, h.views.visibleRows(who, false))
	data.Graph = &graph
	data.Workloads, data.MoreWorkloads = h.views.workloadsOf(p, h.differences(who, []row{p})[e.Key])
	colourVersions(data.Workloads, nil)
	if left := len(data.Workloads) - shownWorkloads; left > 0 {
		data.Workloads, data.MoreWorkloads = data.Workloads[:shownWorkloads], data.MoreWorkloads+left
	}
	data.Files, data.MoreFiles = filesOfTargets(e.Pipeline, h.views.store.Get(e.Key))
}

// revisionLink is a revision as a page shows it.
type revisionLink struct{ Text, Full, Link string }

func revisionOf(target, revision string) revisionLink {
	return revisionLink{Text: shortRevision(revision), Full: revision, Link: commitLink(target, revision)}
}

// commitLink returns the page of a commit of a repository or of a target of a status, "" where none is known.
func commitLink(target, revision string) string {
	repository, _, _ := strings.Cut(target, " ")
	return giturl.CommitPage(repository, revision[strings.LastIndexByte(revision, ':')+1:])
}

// runData is the page of one run.
type runData struct {
	Pipeline Pipeline
	Run      status.Run
	Files    []fileData
	LeftOut  int
	// Injected and Others count changed lines.
	Injected, Others int
	Added, Removed   int
}

// openLines is how many lines of a difference are shown without a click.
const openLines = 2000

type fileData struct {
	status.FileDiff
	Lines          []lineData
	Added, Removed int
	Open           bool
}

type lineData struct {
	// Kind is add, del, hunk or same.
	Kind     string
	Old, New string
	Text     string
	Injected bool
}

func (h *pageHandler) runPage(w http.ResponseWriter, r *http.Request) {
	e, ok := h.requestedEntry(w, r)
	if !ok {
		return
	}
	data := runData{Pipeline: h.views.viewPipeline(e)}
	id := r.URL.Query().Get("run")
	i := slices.IndexFunc(data.Pipeline.Runs, func(r status.Run) bool { return r.ID == id })
	if i < 0 {
		h.pages.writeFailurePage(w, r, http.StatusNotFound, "There is no such run of "+e.Key+", or it is too long ago.")
		return
	}
	data.Run = data.Pipeline.Runs[i]
	if data.Run.Diff {
		d, err := h.views.store.LoadDiff(r.Context(), e.Key, id)
		if err != nil {
			h.log.Warn("a difference could not be read", "error", err)
		}
		if d != nil {
			data.LeftOut, data.Files = d.LeftOut, filesOf(d)
			for i := range data.Files {
				data.countLines(&data.Files[i])
			}
		}
	}
	h.pages.writePage(w, r, "run", "Run of "+e.Key, data)
}

// filesOf returns the files of a difference.
func filesOf(d *status.Diff) (out []fileData) {
	shown := 0
	for _, f := range d.Files {
		one := fileData{FileDiff: f, Lines: diffLines(f), Open: shown < openLines}
		one.Path = foreign.Visible(f.Path)
		shown += len(one.Lines)
		out = append(out, one)
	}
	return out
}

// countLines counts the changed lines of a file.
func (d *runData) countLines(f *fileData) {
	for _, line := range f.Lines {
		switch line.Kind {
		case "add":
			f.Added++
		case "del":
			f.Removed++
		default:
			continue
		}
		if line.Injected {
			d.Injected++
		} else {
			d.Others++
		}
	}
	d.Added, d.Removed = d.Added+f.Added, d.Removed+f.Removed
}

// diffLines parses a unified diff.
func diffLines(f status.FileDiff) []lineData {
	injected, before := map[int]bool{}, map[int]bool{}
	for _, n := range f.Injected {
		injected[n] = true
	}
	for _, n := range f.InjectedBefore {
		before[n] = true
	}
	var out []lineData
	old, now, started := 0, 0, false
	for line := range strings.Lines(f.Patch) {
		line = strings.TrimSuffix(line, "\n")
		text := "" // as a reader sees it, regardless of the author
		if line != "" {
			text = foreign.Visible(line[1:])
		}
		switch {
		case strings.HasPrefix(line, "@@ "):
			started = true
			fields := strings.Fields(line)
			old, now = firstLine(fields[1]), firstLine(fields[2])
			out = append(out, lineData{Kind: "hunk", Text: line})
		case !started:
		case strings.HasPrefix(line, "+"):
			out = append(out, lineData{Kind: "add", New: strconv.Itoa(now), Text: text, Injected: injected[now]})
			now++
		case strings.HasPrefix(line, "-"):
			out = append(out, lineData{Kind: "del", Old: strconv.Itoa(old), Text: text, Injected: before[old]})
			old++
		case strings.HasPrefix(line, " "):
			out = append(out, lineData{Kind: "same", Old: strconv.Itoa(old), New: strconv.Itoa(now), Text: text, Injected: injected[now]})
			old++
			now++
		}
	}
	return out
}

func firstLine(part string) int {
	start, _, _ := strings.Cut(strings.TrimLeft(part, "+-"), ",")
	n, _ := strconv.Atoi(start)
	return n
}
