// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// gitLab is a project at GitLab (docs.gitlab.com, "Merge requests API").
type gitLab struct{ *api }

// GitLab accepts descriptions of 1,048,576 characters.
var gitLabLimits = limits{title: 255, body: 1 << 20, labels: true, text: withoutQuickActions}

func openGitLab(a *api, c Credentials) Host {
	a.authorize = bearerAuthorization(c)
	return &repository{&gitLab{a}, gitLabLimits}
}

// quickAction is a line that GitLab does instead of showing it, such as /merge or /approve, with the rights of who wrote it.
var quickAction = lazyregexp.New(`(?m)^([ \t]*)(/[A-Za-z_]+(?:[ \t\r]|$))`)

func withoutQuickActions(text string) string { return quickAction.ReplaceAllString(text, `$1\$2`) }

type gitLabRequest struct {
	IID             int64      `json:"iid"`
	WebURL          string     `json:"web_url"`
	State           string     `json:"state"`
	Title           string     `json:"title"`
	Description     string     `json:"description"`
	SourceBranch    string     `json:"source_branch"`
	TargetBranch    string     `json:"target_branch"`
	SourceProjectID *int64     `json:"source_project_id"`
	TargetProjectID int64      `json:"target_project_id"`
	SHA             string     `json:"sha"`
	MergeCommitSHA  string     `json:"merge_commit_sha"`
	SquashCommitSHA string     `json:"squash_commit_sha"`
	Labels          []string   `json:"labels"`
	Draft           bool       `json:"draft"`
	CreatedAt       time.Time  `json:"created_at"`
	UpdatedAt       time.Time  `json:"updated_at"`
	ClosedAt        *time.Time `json:"closed_at"`
	MergedAt        *time.Time `json:"merged_at"`
	Author          struct {
		Username string `json:"username"`
	} `json:"author"`
}

func (r *gitLabRequest) toPullRequest() *Request {
	out := &Request{
		Number: r.IID, URL: r.WebURL, State: StateOpen, Head: r.SourceBranch, Base: r.TargetBranch, HeadCommit: r.SHA,
		Title: r.Title, Body: r.Description, Labels: r.Labels, Draft: r.Draft,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Author: r.Author.Username,
	}
	switch r.State { // "locked" is open while it is being merged
	case "closed":
		out.State, out.ClosedAt = StateClosed, timeOf(r.ClosedAt)
	case "merged":
		// Without a merge commit and squashing the branch itself was put on top.
		out.State, out.ClosedAt, out.MergeCommit = StateMerged, timeOf(r.MergedAt), cmp.Or(r.MergeCommitSHA, r.SquashCommitSHA, r.SHA)
	}
	return out
}

func (g *gitLab) listPullRequests(ctx context.Context, head, base string) ([]Request, error) {
	doing := fmt.Sprintf("finding merge requests from %s to %s", head, base)
	var out []Request
	for _, state := range []string{"all", "opened"} {
		q := url.Values{
			"state": {state}, "source_branch": {head}, "target_branch": {base}, "order_by": {"created_at"}, "sort": {"desc"}, "per_page": {fmt.Sprint(pageSize)},
		}
		var page []gitLabRequest
		if _, err := g.call(ctx, doing, http.MethodGet, "/merge_requests?"+q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		for i := range page {
			r := &page[i]
			if r.SourceProjectID != nil && *r.SourceProjectID == r.TargetProjectID && r.SourceBranch == head && r.TargetBranch == base {
				out = append(out, *r.toPullRequest())
			}
		}
		if len(page) < pageSize {
			break
		}
	}
	return out, nil
}

func mergeRequest(number int64) string { return fmt.Sprintf("/merge_requests/%d", number) }

func (g *gitLab) getPullRequest(ctx context.Context, number int64) (*Request, error) {
	var r gitLabRequest
	_, err := g.call(ctx, readingPullRequest(number), http.MethodGet, mergeRequest(number), nil, &r)
	return r.toPullRequest(), err
}

func (g *gitLab) createPullRequest(ctx context.Context, head, base string, c Content) (*Request, error) {
	var r gitLabRequest
	in := map[string]any{"source_branch": head, "target_branch": base, "title": c.Title, "description": c.Body}
	if len(c.Labels) > 0 {
		in["labels"] = strings.Join(c.Labels, ",")
	}
	_, err := g.call(ctx, openingPullRequest(head, base), http.MethodPost, "/merge_requests", in, &r)
	return r.toPullRequest(), err
}

func (g *gitLab) putMergeRequest(ctx context.Context, doing string, number int64, in map[string]any) (*Request, error) {
	var r gitLabRequest
	_, err := g.call(ctx, doing, http.MethodPut, mergeRequest(number), in, &r)
	return r.toPullRequest(), err
}

func (g *gitLab) editPullRequest(ctx context.Context, was *Request, title, body string) (*Request, error) {
	return g.putMergeRequest(ctx, updatingPullRequest(was.Number), was.Number, map[string]any{"title": title, "description": body})
}

// addPullRequestLabels adds labels, which GitLab makes where the project does not have them.
func (g *gitLab) addPullRequestLabels(ctx context.Context, r *Request, labels []string) error {
	_, err := g.putMergeRequest(ctx, labellingPullRequest(r.Number), r.Number, map[string]any{"add_labels": strings.Join(labels, ",")})
	return err
}

func (g *gitLab) closePullRequest(ctx context.Context, r *Request) error {
	_, err := g.putMergeRequest(ctx, closingPullRequest(r.Number), r.Number, map[string]any{"state_event": "close"})
	return err
}

func (g *gitLab) postComment(ctx context.Context, number int64, text string) error {
	_, err := g.call(ctx, commentingPullRequest(number), http.MethodPost, mergeRequest(number)+"/notes", map[string]any{"body": text}, nil)
	return err
}
