// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/server/access"
)

//go:embed pages
var files embed.FS

// pageWriter writes pages.
type pageWriter struct {
	templates map[string]*template.Template

	forms   formKey
	version string
	// maySignIn reports whether users can sign in.
	maySignIn bool
	log       *slog.Logger
}

func newPageWriter(o Options) (*pageWriter, error) {
	functions := template.FuncMap{
		"short": shortRevision, "ago": timeAgo, "lower": strings.ToLower, "revision": revisionOf, "sum": func(a, b int) int { return a + b },
		"took":  runDuration,
		"stamp": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	}
	p := &pageWriter{
		templates: map[string]*template.Template{}, forms: newFormKey(), version: o.Version, maySignIn: o.Tokens != nil || o.SignIn != nil, log: o.Log,
	}
	for _, name := range pageNames {
		t := template.New("page.html").Funcs(functions)
		t, err := t.ParseFS(files, "pages/page.html", "pages/parts.html", "pages/charts.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading the page %s: %w", name, err)
		}
		p.templates[name] = t
	}
	return p, nil
}

// pageNames are the kinds of pages, each of which has a template.
var pageNames = []string{"list", "mesh", "workloads", "workload", "pulls", "pipeline", "run", "file", "drift", "confirm", "failure", "signin"}

// serveFile serves an embedded file.
func serveFile(kind, name string) http.HandlerFunc {
	content, _ := files.ReadFile("pages/" + name)
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
func (p *pageWriter) writeFailurePage(w http.ResponseWriter, r *http.Request, code int, text string) {
	p.pageWith(w, r, code, "failure", http.StatusText(code), text)
}

func (p *pageWriter) missingPage(w http.ResponseWriter, r *http.Request) {
	p.writeFailurePage(w, r, http.StatusNotFound, "There is no such page.")
}

func (p *pageWriter) writePage(w http.ResponseWriter, r *http.Request, template, title string, data any) {
	p.pageWith(w, r, http.StatusOK, template, title, data)
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
	// Path of the page, for the menu.
	Path string
	// Nonce is what the page's script has, "" for a page without.
	Nonce string
	Data  any
}

// livePage is a page that shows what changes.
type livePage interface {
	// eventStreamPath returns the URL of the page's change notifications.
	eventStreamPath() string
}

func (p *pageWriter) pageWith(w http.ResponseWriter, r *http.Request, code int, template, title string, data any) {
	page := pageData{Title: title, Version: p.version, User: signedIn(r), Form: p.forms.formToken(r), Here: withoutNotice(r), Path: r.URL.Path, Data: data}
	page.SignIn = requestOf(r).Kind == access.Anonymous && p.maySignIn
	if live, ok := data.(livePage); ok {
		page.Live, page.Notice, page.Nonce = live.eventStreamPath(), noticeFromURL(r), rand.Text()
	}
	var out bytes.Buffer
	if err := p.templates[template].Execute(&out, page); err != nil {
		p.log.Error("a page could not be written", "error", err)
		setSecurityHeaders(w, "")
		http.Error(w, "the page could not be written; the reason is in the log", http.StatusInternalServerError)
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
