// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed pages
var pageFiles embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"short": func(commit string) string { return commit[:min(len(commit), 10)] },
	"ago":   func(t time.Time) string { return time.Since(t).Round(time.Second).String() + " ago" },
}).ParseFS(pageFiles, "pages/*.html"))

// Overview is what the first page shows of the clusters.
type Overview struct {
	// Page is the URL of Prerig's own page.
	Page     string
	Clusters []Cluster
}

// Cluster is one cluster, as the branch has it that is applied to it.
type Cluster struct {
	Name, Branch, Repository string
	// Versions counts the pods' proxies by Istio's version.
	Versions []Count
}

// Count is a number of proxies of one version.
type Count struct {
	Version string
	Proxies int
}

type pullView struct {
	Number                         int64
	Title, Body, State, Head, Base string
	URL, Commit, MergeCommit       string
	Author                         string
	Labels                         []string
	Created                        time.Time
	Statuses                       []status
	Comments                       []comment
	Conversation                   template.HTML
	Diff                           []fileDiff
	Problem                        string
}

// viewOf returns what pages show of a pull request. The caller holds the lock.
func (r *Repository) viewOf(p *pull) pullView {
	v := pullView{
		Number: p.number, Title: p.title, Body: p.body, State: p.state(), Head: p.head, Base: p.base,
		URL:    r.PullURL(p.number),
		Commit: r.commitOf(p), MergeCommit: p.mergeCommit, Author: author, Created: p.created,
	}
	for _, one := range r.labels {
		if slices.Contains(p.labels, one.ID) {
			v.Labels = append(v.Labels, one.Name)
		}
	}
	shown := v.Commit
	if p.merged {
		shown = v.MergeCommit
	}
	v.Statuses = slices.Clone(r.statuses[shown])
	for _, one := range r.comments {
		if one.number == p.number {
			v.Comments = append(v.Comments, one)
		}
	}
	return v
}

// PullURL returns the page of a pull request.
func (r *Repository) PullURL(number int64) string {
	return fmt.Sprintf("%s/pulls/%d", strings.TrimSuffix(r.URL, ".git"), number)
}

// page is what every page has.
type page struct {
	Title      string
	Host       *Host
	Repository *Repository
	Content    any
}

func (h *Host) show(w http.ResponseWriter, name string, p page) {
	var text bytes.Buffer
	p.Host = h
	if err := pages.ExecuteTemplate(&text, name, p); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
	_, _ = w.Write(text.Bytes())
}

func (h *Host) showHome(w http.ResponseWriter, r *http.Request) {
	type open struct {
		Repository *Repository
		Pulls      []pullView
	}
	var content struct {
		Overview     Overview
		Repositories []open
	}
	if h.Home != nil {
		overview, err := h.Home(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		content.Overview = overview
	}
	for _, one := range h.all() {
		content.Repositories = append(content.Repositories, open{one, one.views(true)})
	}
	h.show(w, "home.html", page{Title: "Git host of the demo", Content: content})
}

// views returns the pull requests, or only the open ones, newest first.
func (r *Repository) views(onlyOpen bool) []pullView {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []pullView
	for _, p := range slices.Backward(r.pulls) {
		if !onlyOpen || p.isOpen() {
			out = append(out, r.viewOf(p))
		}
	}
	return out
}

func showPulls(r *Repository, w http.ResponseWriter, _ *http.Request) {
	r.host.show(w, "pulls.html", page{Title: "Pull requests of " + r.Name, Repository: r, Content: r.views(false)})
}

func showPull(r *Repository, w http.ResponseWriter, request *http.Request) {
	showPullWith(r, w, request, http.StatusOK, nil)
}

func showPullWith(r *Repository, w http.ResponseWriter, request *http.Request, code int, problem error) {
	r.mu.Lock()
	p := r.pullOf(numberOf(request))
	if p == nil {
		r.mu.Unlock()
		http.NotFound(w, request)
		return
	}
	v := r.viewOf(p)
	r.mu.Unlock()
	v.Conversation = markdown(v.Body)
	if problem != nil {
		v.Problem = problem.Error()
	}
	from := v.Base
	if v.MergeCommit != "" {
		from = v.MergeCommit + "^1"
	}
	var err error
	if v.Diff, err = readDiff(request.Context(), r.Repository, "diff", from+"..."+v.Commit); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if code != http.StatusOK {
		w.WriteHeader(code)
	}
	r.host.show(w, "pull.html", page{Title: fmt.Sprintf("#%d %s", v.Number, v.Title), Repository: r, Content: v})
}

// decide merges or closes a pull request as the person at the page.
func decide(r *Repository, w http.ResponseWriter, request *http.Request) {
	number := numberOf(request)
	var err error
	switch request.FormValue("do") {
	case "merge":
		// What is merged is what the page has shown.
		err = r.Merge(number, request.FormValue("head"), "You")
	case "close":
		err = r.Reject(number)
	default:
		err = errors.New("do must be merge or close")
	}
	if err != nil {
		showPullWith(r, w, request, http.StatusConflict, err)
		return
	}
	http.Redirect(w, request, r.PullURL(number), http.StatusSeeOther)
}

type commitView struct {
	Commit, Subject, Author, Date string
	Message                       string
	Statuses                      []status
	Diff                          []fileDiff
}

// commitFormat has a field of commitView on each line.
const commitFormat = "%H%x1f%s%x1f%an%x1f%ad%x1f%B%x1e"

// log returns commits without their differences.
func (r *Repository) log(ctx context.Context, args ...string) ([]commitView, error) {
	text, err := r.Git(ctx, append([]string{"log", "--date=iso", "--format=" + commitFormat}, args...)...)
	if err != nil {
		return nil, err
	}
	var out []commitView
	for one := range strings.SplitSeq(text, "\x1e") {
		fields := strings.Split(strings.TrimSpace(one), "\x1f")
		if len(fields) != 5 {
			continue
		}
		v := commitView{Commit: fields[0], Subject: fields[1], Author: fields[2], Date: fields[3], Message: fields[4]}
		r.mu.Lock()
		v.Statuses = slices.Clone(r.statuses[v.Commit])
		r.mu.Unlock()
		out = append(out, v)
	}
	return out, nil
}

var commitRule = regexp.MustCompile(`^[0-9a-f]{7,40}$`)

func showCommit(r *Repository, w http.ResponseWriter, request *http.Request) {
	commit := request.PathValue("commit")
	if !commitRule.MatchString(commit) {
		http.NotFound(w, request)
		return
	}
	found, err := r.log(request.Context(), "-1", commit)
	if err != nil || len(found) == 0 {
		http.NotFound(w, request)
		return
	}
	v := found[0]
	if v.Diff, err = readDiff(request.Context(), r.Repository, "show", "--format=", "--diff-merges=first-parent", v.Commit); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r.host.show(w, "commit.html", page{Title: v.Subject, Repository: r, Content: v})
}

// showHistory lists the newest commits of every branch.
func showHistory(r *Repository, w http.ResponseWriter, request *http.Request) {
	type branch struct {
		Name    string
		Commits []commitView
	}
	var content []branch
	for name := range branches(request.Context(), r.Repository) {
		most := "-20"
		if strings.Contains(name, "/") { // the head of a pull request
			most = "-1"
		}
		commits, err := r.log(request.Context(), most, "--first-parent", "refs/heads/"+name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		content = append(content, branch{name, commits})
	}
	slices.SortFunc(content, func(a, b branch) int {
		return cmp.Or(strings.Count(a.Name, "/")-strings.Count(b.Name, "/"), strings.Compare(a.Name, b.Name))
	})
	r.host.show(w, "history.html", page{Title: r.Name, Repository: r, Content: content})
}

// Path is where the repository has its pages.
func (r *Repository) Path() string { return (&url.URL{Path: "/" + r.Name}).EscapedPath() }
