// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/review/diff"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

func (s *Server) requestedEntry(w http.ResponseWriter, r *http.Request) (catalog.Entry, bool) {
	name := r.URL.Query().Get("name")
	if name == "" {
		name = r.URL.Query().Get("pipeline")
	}
	e, ok := s.visibleEntry(requestPrincipal(r), name)
	if !ok {
		s.writeFailurePage(w, r, http.StatusNotFound, "There is no pipeline "+strconv.Quote(name)+".")
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
}

// eventStreamPath implements livePage.
func (d pipelineData) eventStreamPath() string { return "/events?pipeline=" + url.QueryEscape(d.Name) }

// shownTarget is a place that it is published to, and its content.
type shownTarget struct {
	Against   string
	Published *v1alpha1.Published
}

func (s *Server) pipelinePage(w http.ResponseWriter, r *http.Request) {
	e, ok := s.requestedEntry(w, r)
	if !ok {
		return
	}
	data := pipelineData{Pipeline: s.viewPipeline(e), Form: s.formData(r)}
	data.Buttons = s.buttonsOf(r, data.Pipeline, e)
	if e.Pipeline != nil {
		data.InFile = e.Pipeline.Spec.Suspend
		if interval := e.Pipeline.Spec.Interval; interval != nil {
			data.Interval = interval.Duration.String()
		}
		for _, to := range e.Pipeline.Spec.Publish {
			one := shownTarget{Against: to.Description()}
			name := to.Target()
			if i := slices.IndexFunc(data.Status.Published, func(p v1alpha1.Published) bool { return p.Target == name }); i >= 0 {
				one.Published = &data.Status.Published[i]
			}
			data.Targets = append(data.Targets, one)
		}
	}
	s.writePage(w, r, s.pages.pipeline, data.Name, data)
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

func (s *Server) runPage(w http.ResponseWriter, r *http.Request) {
	e, ok := s.requestedEntry(w, r)
	if !ok {
		return
	}
	data := runData{Pipeline: s.viewPipeline(e)}
	id := r.URL.Query().Get("run")
	i := slices.IndexFunc(data.Pipeline.Runs, func(r status.Run) bool { return r.ID == id })
	if i < 0 {
		s.writeFailurePage(w, r, http.StatusNotFound, "There is no such run of "+e.Key+", or it is too long ago.")
		return
	}
	data.Run = data.Pipeline.Runs[i]
	if data.Run.Diff {
		d, err := s.Store.LoadDiff(r.Context(), e.Key, id)
		if err != nil {
			s.Log.Warn("a difference could not be read", "error", err)
		}
		if d != nil {
			data.LeftOut = d.LeftOut
			shown := 0
			for _, f := range d.Files {
				one := fileData{FileDiff: f, Lines: diffLines(f), Open: shown < openLines}
				one.Path = diff.Visible(f.Path)
				shown += len(one.Lines)
				data.countLines(&one)
				data.Files = append(data.Files, one)
			}
		}
	}
	s.writePage(w, r, s.pages.run, "Run of "+e.Key, data)
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
			text = diff.Visible(line[1:])
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
