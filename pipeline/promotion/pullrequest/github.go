// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// gitHub is a repository at github.com or GitHub Enterprise Server (docs.github.com, "REST API endpoints for pull requests").
type gitHub struct{ *api }

// pageSize is how many pull requests are asked for at once.
const pageSize = 100

// GitHub answers 422 to bodies of more than 65536 characters, and to titles of more than 256.
var gitHubLimits = limits{title: 256, body: 65536, labels: true, labelsLater: true}

func openGitHub(a *api, c Credentials) Host {
	a.header = http.Header{"Accept": {"application/vnd.github+json"}, "X-Github-Api-Version": {"2022-11-28"}}
	a.authorize = bearer(c)
	if c.App != nil {
		a.authorize = (&installation{app: *c.App, api: *a}).authorize
	}
	return &repository{&gitHub{a}, gitHubLimits}
}

// gitHubRequest is a pull request as GitHub answers it.
type gitHubRequest struct {
	answeredRequest
	Head gitHubBranch `json:"head"`
	Base gitHubBranch `json:"base"`
}

// answeredRequest has the fields that GitHub and those who follow its API answer alike.
type answeredRequest struct {
	Number         int64      `json:"number"`
	HTMLURL        string     `json:"html_url"`
	State          string     `json:"state"`
	Title          string     `json:"title"`
	Body           string     `json:"body"`
	Draft          bool       `json:"draft"`
	MergeCommitSHA string     `json:"merge_commit_sha"`
	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at"`
	ClosedAt       *time.Time `json:"closed_at"`
	MergedAt       *time.Time `json:"merged_at"`
	User           struct {
		Login string `json:"login"`
	} `json:"user"`
	Labels []namedLabel `json:"labels"`
}

// from returns the pull request from one branch to another. The merge commit is set only for merged ones: before
// that, it is a commit that the host makes to test whether the pull request can be merged.
func (r *answeredRequest) from(head, commit, base string, merged bool) *Request {
	out := &Request{
		Number: r.Number, URL: r.HTMLURL, State: StateOpen, Head: head, Base: base, HeadCommit: commit,
		Title: r.Title, Body: r.Body, Labels: names(r.Labels), Draft: r.Draft,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, ClosedAt: timeOf(r.ClosedAt), Author: r.User.Login,
	}
	switch {
	case merged:
		out.State, out.MergeCommit = StateMerged, r.MergeCommitSHA
		if out.ClosedAt.IsZero() {
			out.ClosedAt = timeOf(r.MergedAt)
		}
	case r.State != "open":
		out.State = StateClosed
	}
	return out
}

type gitHubBranch struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo *struct {
		ID int64 `json:"id"`
	} `json:"repo"`
}

type namedLabel struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

func names(labels []namedLabel) []string {
	out := make([]string, 0, len(labels))
	for _, l := range labels {
		out = append(out, l.Name)
	}
	return out
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func (r *gitHubRequest) request() *Request {
	return r.from(r.Head.Ref, r.Head.SHA, r.Base.Ref, r.MergedAt != nil)
}

// own reports whether the branch is one of the repository itself. The branch of a deleted fork has no repository.
func (r *gitHubRequest) own() bool {
	return r.Head.Repo != nil && r.Base.Repo != nil && r.Head.Repo.ID == r.Base.Repo.ID
}

// list requests the open ones separately only if one page is not enough: a branch has at most one.
func (g *gitHub) list(ctx context.Context, head, base string) ([]Request, error) {
	owner, _, _ := strings.Cut(g.repository, "/")
	doing := fmt.Sprintf("finding pull requests from %s to %s", head, base)
	var out []Request
	for _, state := range []string{"all", "open"} {
		q := url.Values{
			"state": {state}, "head": {owner + ":" + head}, "base": {base}, "sort": {"created"}, "direction": {"desc"}, "per_page": {fmt.Sprint(pageSize)},
		}
		var page []gitHubRequest
		if _, err := g.call(ctx, doing, http.MethodGet, "/pulls?"+q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		for i := range page {
			if r := &page[i]; r.own() && r.Head.Ref == head && r.Base.Ref == base {
				out = append(out, *r.request())
			}
		}
		if len(page) < pageSize {
			break
		}
	}
	return out, nil
}

func (g *gitHub) get(ctx context.Context, number int64) (*Request, error) {
	var r gitHubRequest
	_, err := g.call(ctx, reading(number), http.MethodGet, pull(number), nil, &r)
	return r.request(), err
}

func pull(number int64) string { return fmt.Sprintf("/pulls/%d", number) }

// What is done with a pull request, for errors.
func reading(number int64) string    { return fmt.Sprintf("reading pull request %d", number) }
func writing(number int64) string    { return fmt.Sprintf("updating pull request %d", number) }
func labelling(number int64) string  { return fmt.Sprintf("adding labels to pull request %d", number) }
func closing(number int64) string    { return fmt.Sprintf("closing pull request %d", number) }
func commenting(number int64) string { return fmt.Sprintf("commenting on pull request %d", number) }
func creating(head, base string) string {
	return fmt.Sprintf("opening a pull request from %s to %s", head, base)
}

func (g *gitHub) create(ctx context.Context, head, base string, c Content) (*Request, error) {
	var r gitHubRequest
	in := map[string]any{"title": c.Title, "body": c.Body, "head": head, "base": base}
	_, err := g.call(ctx, creating(head, base), http.MethodPost, "/pulls", in, &r)
	return r.request(), err
}

func (g *gitHub) edit(ctx context.Context, was *Request, title, body string) (*Request, error) {
	var r gitHubRequest
	_, err := g.call(ctx, writing(was.Number), http.MethodPatch, pull(was.Number), map[string]any{"title": title, "body": body}, &r)
	return r.request(), err
}

// label adds labels, which GitHub makes where the repository does not have them.
func (g *gitHub) label(ctx context.Context, r *Request, labels []string) error {
	_, err := g.call(ctx, labelling(r.Number), http.MethodPost, fmt.Sprintf("/issues/%d/labels", r.Number), map[string]any{"labels": labels}, nil)
	return err
}

func (g *gitHub) close(ctx context.Context, r *Request) error {
	_, err := g.call(ctx, closing(r.Number), http.MethodPatch, pull(r.Number), map[string]any{"state": "closed"}, nil)
	return err
}

func (g *gitHub) comment(ctx context.Context, number int64, text string) error {
	_, err := g.call(ctx, commenting(number), http.MethodPost, fmt.Sprintf("/issues/%d/comments", number), map[string]any{"body": text}, nil)
	return err
}
