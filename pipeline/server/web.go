// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/server/access"
)

//go:embed pages
var files embed.FS

// pageTemplates are the templates.
type pageTemplates struct {
	list, pulls, pipeline, run, confirm, failure, signin *template.Template
	style, script                                        []byte
}

func newPages() (*pageTemplates, error) {
	functions := template.FuncMap{
		"short": shortRevision, "ago": timeAgo, "lower": strings.ToLower, "revision": revisionOf, "sum": func(a, b int) int { return a + b },
		"took":  runDuration,
		"stamp": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	}
	p := &pageTemplates{}
	for name, to := range map[string]**template.Template{
		"list": &p.list, "pulls": &p.pulls, "pipeline": &p.pipeline, "run": &p.run, "confirm": &p.confirm, "failure": &p.failure, "signin": &p.signin,
	} {
		t, err := template.New("page.html").Funcs(functions).ParseFS(files, "pages/page.html", "pages/parts.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading the page %s: %w", name, err)
		}
		*to = t
	}
	var err error
	if p.style, err = files.ReadFile("pages/style.css"); err != nil {
		return nil, fmt.Errorf("reading the style of pages: %w", err)
	}
	if p.script, err = files.ReadFile("pages/page.js"); err != nil {
		return nil, fmt.Errorf("reading the script of pages: %w", err)
	}
	return p, nil
}

func (s *Server) routeWeb(mux *http.ServeMux) {
	mux.Handle("GET /{$}", s.requireSomeRole(access.Read, s.listPage))
	mux.Handle("GET /pipeline", s.requireSomeRole(access.Read, s.pipelinePage))
	mux.Handle("GET /pull-requests", s.requireSomeRole(access.Read, s.pullsPage))
	mux.Handle("POST /actions", s.requireSomeRole(access.Operate, s.performPageAction))
	mux.Handle("GET /runs", s.requireSomeRole(access.Read, s.runPage))
	mux.Handle("GET /", s.requireSomeRole(access.Read, func(w http.ResponseWriter, r *http.Request) {
		s.writeFailurePage(w, r, http.StatusNotFound, "There is no such page.")
	}))
	mux.HandleFunc("GET /style.css", serveFile("text/css; charset=utf-8", s.pages.style))
	mux.HandleFunc("GET /page.js", serveFile("text/javascript; charset=utf-8", s.pages.script))
}

func serveFile(kind string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		setSecurityHeaders(w, "")
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "max-age=300")
		_, _ = w.Write(content)
	}
}

// setSecurityHeaders forbids frames, everything from elsewhere, and every script but the one that has the nonce; "" forbids that, too.
func setSecurityHeaders(w http.ResponseWriter, nonce string) {
	h := w.Header()
	policy := "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	if nonce != "" {
		policy += "; script-src 'nonce-" + nonce + "'; connect-src 'self'"
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer, browsers would send forms of our own pages with the origin null, as those of others.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// writeFailurePage writes an error page.
func (s *Server) writeFailurePage(w http.ResponseWriter, r *http.Request, code int, text string) {
	s.pageWith(w, r, code, s.pages.failure, http.StatusText(code), text)
}

func (s *Server) writePage(w http.ResponseWriter, r *http.Request, t *template.Template, title string, data any) {
	s.pageWith(w, r, http.StatusOK, t, title, data)
}

// pageData is what is around what a page is about.
type pageData struct {
	Title, Version string
	// User is the signed-in user, or ""; Form is the token of their forms.
	User, Form string
	// SignIn reports whether the viewer may sign in.
	SignIn bool
	// Here is the URL of the page, Notice describes the last action, and Live is the source of updates for this
	// page.
	Here, Notice, Live string
	// Nonce is what the page's script has, "" for a page without.
	Nonce string
	Data  any
}

// livePage is a page that shows what changes.
type livePage interface {
	// eventStreamPath returns the URL of the page's change notifications.
	eventStreamPath() string
}

func (s *Server) pageWith(w http.ResponseWriter, r *http.Request, code int, t *template.Template, title string, data any) {
	page := pageData{Title: title, Version: s.Version, User: signedIn(r), Form: s.formOf(r), Here: withoutNotice(r), Data: data}
	page.SignIn = requestOf(r).Kind == access.Anonymous && (s.Tokens != nil || s.SignIn != nil)
	if live, ok := data.(livePage); ok {
		page.Live, page.Notice, page.Nonce = live.eventStreamPath(), noticeFromURL(r), rand.Text()
	}
	var out bytes.Buffer
	if err := t.Execute(&out, page); err != nil {
		s.Log.Error("a page could not be written", "error", err)
		setSecurityHeaders(w, "")
		http.Error(w, "the page could not be written; the log says why", http.StatusInternalServerError)
		return
	}
	setSecurityHeaders(w, page.Nonce)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(out.Bytes())
}

// shortRevision makes a revision fit into a table.
func shortRevision(revision string) string {
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

// runDuration is how long a run took, to a thousandth of it or so.
func runDuration(r status.Run) string {
	if r.Took > 10*time.Second {
		return r.Took.Round(time.Second).String()
	}
	return r.Took.Round(time.Millisecond).String()
}

func timeAgo(t time.Time) string {
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
