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
	a.authorize = bearerAuthorization(c)
	if c.App != nil {
		a.authorize = (&installation{app: *c.App, api: *a}).setInstallationToken
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

// pullRequestBetween returns the pull request from one branch to another. The merge commit is set only for merged ones:
// before that, it is a commit that the host makes to test whether the pull request can be merged.
func (r *answeredRequest) pullRequestBetween(head, commit, base string, merged bool) *Request {
	out := &Request{
		Number: r.Number, URL: r.HTMLURL, State: StateOpen, Head: head, Base: base, HeadCommit: commit,
		Title: r.Title, Body: r.Body, Labels: labelNames(r.Labels), Draft: r.Draft,
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

func labelNames(labels []namedLabel) []string {
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

func (r *gitHubRequest) toPullRequest() *Request {
	return r.pullRequestBetween(r.Head.Ref, r.Head.SHA, r.Base.Ref, r.MergedAt != nil)
}

// isFromOwnRepository reports whether the branch is one of the repository itself. The branch of a deleted fork has no
// repository.
func (r *gitHubRequest) isFromOwnRepository() bool {
	return r.Head.Repo != nil && r.Base.Repo != nil && r.Head.Repo.ID == r.Base.Repo.ID
}

// listPullRequests requests the open ones separately only if one page is not enough: a branch has at most one.
func (g *gitHub) listPullRequests(ctx context.Context, head, base string) ([]Request, error) {
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
			if r := &page[i]; r.isFromOwnRepository() && r.Head.Ref == head && r.Base.Ref == base {
				out = append(out, *r.toPullRequest())
			}
		}
		if len(page) < pageSize {
			break
		}
	}
	return out, nil
}

func (g *gitHub) getPullRequest(ctx context.Context, number int64) (*Request, error) {
	var r gitHubRequest
	_, err := g.call(ctx, readingPullRequest(number), http.MethodGet, pullRequestPath(number), nil, &r)
	return r.toPullRequest(), err
}

func pullRequestPath(number int64) string { return fmt.Sprintf("/pulls/%d", number) }

// What is done with a pull request, for errors.
func readingPullRequest(number int64) string  { return fmt.Sprintf("reading pull request %d", number) }
func updatingPullRequest(number int64) string { return fmt.Sprintf("updating pull request %d", number) }
func labellingPullRequest(number int64) string {
	return fmt.Sprintf("adding labels to pull request %d", number)
}
func closingPullRequest(number int64) string { return fmt.Sprintf("closing pull request %d", number) }
func commentingPullRequest(number int64) string {
	return fmt.Sprintf("commenting on pull request %d", number)
}
func openingPullRequest(head, base string) string {
	return fmt.Sprintf("opening a pull request from %s to %s", head, base)
}

func (g *gitHub) createPullRequest(ctx context.Context, head, base string, c Content) (*Request, error) {
	var r gitHubRequest
	in := map[string]any{"title": c.Title, "body": c.Body, "head": head, "base": base}
	_, err := g.call(ctx, openingPullRequest(head, base), http.MethodPost, "/pulls", in, &r)
	return r.toPullRequest(), err
}

func (g *gitHub) editPullRequest(ctx context.Context, was *Request, title, body string) (*Request, error) {
	var r gitHubRequest
	_, err := g.call(ctx, updatingPullRequest(was.Number), http.MethodPatch, pullRequestPath(was.Number), map[string]any{"title": title, "body": body}, &r)
	return r.toPullRequest(), err
}

// addPullRequestLabels adds labels, which GitHub makes where the repository does not have them.
func (g *gitHub) addPullRequestLabels(ctx context.Context, r *Request, labels []string) error {
	_, err := g.call(ctx, labellingPullRequest(r.Number), http.MethodPost, fmt.Sprintf("/issues/%d/labels", r.Number), map[string]any{"labels": labels}, nil)
	return err
}

func (g *gitHub) closePullRequest(ctx context.Context, r *Request) error {
	_, err := g.call(ctx, closingPullRequest(r.Number), http.MethodPatch, pullRequestPath(r.Number), map[string]any{"state": "closed"}, nil)
	return err
}

func (g *gitHub) postComment(ctx context.Context, number int64, text string) error {
	_, err := g.call(ctx, commentingPullRequest(number), http.MethodPost, fmt.Sprintf("/issues/%d/comments", number), map[string]any{"body": text}, nil)
	return err
}
