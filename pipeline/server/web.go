// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/status"
)

//go:embed pages
var files embed.FS

// pages are the templates.
type pages struct {
	list, pipeline, run *template.Template
	style               []byte
}

func newPages() (*pages, error) {
	functions := template.FuncMap{
		"short": short, "ago": ago, "lower": strings.ToLower, "query": url.QueryEscape,
		"took":  func(r status.Run) string { return r.Took.Round(time.Millisecond).String() },
		"stamp": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	}
	p := &pages{}
	for name, to := range map[string]**template.Template{"list": &p.list, "pipeline": &p.pipeline, "run": &p.run} {
		t, err := template.New("page.html").Funcs(functions).ParseFS(files, "pages/page.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading the page %s: %w", name, err)
		}
		*to = t
	}
	var err error
	p.style, err = files.ReadFile("pages/style.css")
	return p, err
}

func (s *Server) web(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.listPage)
	mux.HandleFunc("GET /pipeline", s.pipelinePage)
	mux.HandleFunc("GET /runs", s.runPage)
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		secure(w)
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Header().Set("Cache-Control", "max-age=300")
		_, _ = w.Write(s.pages.style)
	})
}

// secure forbids scripts, frames and everything from elsewhere.
func secure(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

func (s *Server) page(w http.ResponseWriter, t *template.Template, title string, data any) {
	var out bytes.Buffer
	err := t.Execute(&out, map[string]any{"Title": title, "Version": s.Version, "Data": data})
	if err != nil {
		s.Log.Error("a page could not be written", "error", err)
		http.Error(w, "the page could not be written; the log says why", http.StatusInternalServerError)
		return
	}
	secure(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out.Bytes())
}

// listData is the first page.
type listData struct {
	Pipelines []Pipeline
	Counts    []count
	State     string
	Find      string
	Total     int
	Catalog   Catalog
}

type count struct {
	State string
	N     int
}

func (s *Server) listPage(w http.ResponseWriter, r *http.Request) {
	data := listData{State: r.URL.Query().Get("state"), Find: strings.TrimSpace(r.URL.Query().Get("find"))}
	data.Catalog = s.catalogView()
	counts := map[string]int{}
	for _, e := range s.Catalog.All() {
		p := s.view(e)
		counts[p.State]++
		data.Total++
		if data.State != "" && data.State != p.State || !strings.Contains(p.Name, data.Find) {
			continue
		}
		data.Pipelines = append(data.Pipelines, p)
	}
	order := []string{StateInvalid, StateFailing, StateStalled, StateSuspended, StateNew, StateReady}
	for _, state := range order {
		if counts[state] > 0 {
			data.Counts = append(data.Counts, count{state, counts[state]})
		}
	}
	// What needs somebody comes first.
	slices.SortStableFunc(data.Pipelines, func(a, b Pipeline) int {
		return slices.Index(order, a.State) - slices.Index(order, b.State)
	})
	s.page(w, s.pages.list, "Pipelines", data)
}

func (s *Server) entry(w http.ResponseWriter, r *http.Request) (catalog.Entry, bool) {
	name := r.URL.Query().Get("name")
	if name == "" {
		name = r.URL.Query().Get("pipeline")
	}
	e, ok := s.Catalog.Get(name)
	if !ok {
		http.Error(w, "there is no such pipeline", http.StatusNotFound)
	}
	return e, ok
}

func (s *Server) pipelinePage(w http.ResponseWriter, r *http.Request) {
	e, ok := s.entry(w, r)
	if !ok {
		return
	}
	p := s.view(e)
	s.page(w, s.pages.pipeline, p.Name, p)
}

// runData is the page of one run.
type runData struct {
	Pipeline Pipeline
	Run      status.Run
	Files    []fileData
	LeftOut  int
	Injected int
}

type fileData struct {
	status.FileDiff
	Lines []lineData
}

type lineData struct {
	// Kind is add, del, hunk or same.
	Kind     string
	Old, New string
	Text     string
	Injected bool
}

func (s *Server) runPage(w http.ResponseWriter, r *http.Request) {
	e, ok := s.entry(w, r)
	if !ok {
		return
	}
	data := runData{Pipeline: s.view(e)}
	id := r.URL.Query().Get("run")
	i := slices.IndexFunc(data.Pipeline.Runs, func(r status.Run) bool { return r.ID == id })
	if i < 0 {
		http.Error(w, "there is no such run, or it is too long ago", http.StatusNotFound)
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
			for _, f := range d.Files {
				one := fileData{FileDiff: f, Lines: diffLines(f)}
				for _, line := range one.Lines {
					if line.Injected {
						data.Injected++
					}
				}
				data.Files = append(data.Files, one)
			}
		}
	}
	s.page(w, s.pages.run, "Run of "+e.Key, data)
}

// diffLines takes a unified diff apart.
func diffLines(f status.FileDiff) []lineData {
	injected := map[int]bool{}
	for _, n := range f.Injected {
		injected[n] = true
	}
	var out []lineData
	before, after, started := 0, 0, false
	for line := range strings.Lines(f.Patch) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "@@ "):
			started = true
			fields := strings.Fields(line)
			before, after = firstLine(fields[1]), firstLine(fields[2])
			out = append(out, lineData{Kind: "hunk", Text: line})
		case !started:
		case strings.HasPrefix(line, "+"):
			out = append(out, lineData{Kind: "add", New: strconv.Itoa(after), Text: line[1:], Injected: injected[after]})
			after++
		case strings.HasPrefix(line, "-"):
			out = append(out, lineData{Kind: "del", Old: strconv.Itoa(before), Text: line[1:]})
			before++
		case strings.HasPrefix(line, " "):
			out = append(out, lineData{Kind: "same", Old: strconv.Itoa(before), New: strconv.Itoa(after), Text: line[1:], Injected: injected[after]})
			before++
			after++
		}
	}
	return out
}

func firstLine(part string) int {
	start, _, _ := strings.Cut(strings.TrimLeft(part, "+-"), ",")
	n, _ := strconv.Atoi(start)
	return n
}

// short makes a revision fit into a table.
func short(revision string) string {
	name, hash, ok := strings.Cut(revision, ":")
	if !ok {
		name, hash = "", revision
	}
	if len(hash) > 12 {
		hash = hash[:12]
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "sha1"), "sha256")
	return name + hash
}

func ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := time.Since(t)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}
