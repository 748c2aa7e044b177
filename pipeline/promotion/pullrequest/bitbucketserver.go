// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// bitbucketServer is a repository at Bitbucket Data Center (developer.atlassian.com, "Bitbucket Data Center REST API", Pull Requests).
type bitbucketServer struct{ *api }

// Pull requests have no writable labels.
var bitbucketServerLimits = limits{title: 255, body: 32768}

func openBitbucketServer(a *api, c Credentials) Host {
	a.authorize = bearerOrBasic(c)
	a.header = http.Header{"X-Atlassian-Token": {"no-check"}}
	return &repository{&bitbucketServer{a}, bitbucketServerLimits}
}

// branchRef is the prefix of branch names.
const branchRef = "refs/heads/"

type serverRequest struct {
	ID          int64        `json:"id"`
	Version     int          `json:"version"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	State       string       `json:"state"`
	Draft       bool         `json:"draft"`
	CreatedDate int64        `json:"createdDate"`
	UpdatedDate int64        `json:"updatedDate"`
	ClosedDate  int64        `json:"closedDate"`
	FromRef     serverRef    `json:"fromRef"`
	ToRef       serverRef    `json:"toRef"`
	Author      serverUser   `json:"author"`
	Reviewers   []serverUser `json:"reviewers"`
	Properties  struct {
		MergeCommit struct {
			ID string `json:"id"`
		} `json:"mergeCommit"`
	} `json:"properties"`
	Links struct {
		Self []struct {
			Href string `json:"href"`
		} `json:"self"`
	} `json:"links"`
}

type serverUser struct {
	User struct {
		Name string `json:"name"`
	} `json:"user"`
}

type serverRef struct {
	ID           string `json:"id"`
	LatestCommit string `json:"latestCommit"`
	Repository   struct {
		ID int64 `json:"id"`
	} `json:"repository"`
}

func (r *serverRequest) toPullRequest() *Request {
	at := func(milliseconds int64) time.Time {
		if milliseconds == 0 {
			return time.Time{}
		}
		return time.UnixMilli(milliseconds).UTC()
	}
	out := &Request{
		Number: r.ID, State: StateClosed, Head: strings.TrimPrefix(r.FromRef.ID, branchRef), Base: strings.TrimPrefix(r.ToRef.ID, branchRef),
		HeadCommit: r.FromRef.LatestCommit, Title: r.Title, Body: r.Description, Draft: r.Draft,
		CreatedAt: at(r.CreatedDate), UpdatedAt: at(r.UpdatedDate), ClosedAt: at(r.ClosedDate), Author: r.Author.User.Name,
	}
	if len(r.Links.Self) > 0 {
		out.URL = r.Links.Self[0].Href
	}
	switch r.State { // the other is DECLINED
	case "OPEN":
		out.State = StateOpen
	case "MERGED":
		out.State, out.MergeCommit = StateMerged, r.Properties.MergeCommit.ID
	}
	return out
}

// listPullRequests requests the open ones first: in a list of all they are sorted by age only.
func (b *bitbucketServer) listPullRequests(ctx context.Context, head, base string) ([]Request, error) {
	for _, state := range []string{"OPEN", "ALL"} {
		found, err := b.listState(ctx, state, head, base)
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

func (b *bitbucketServer) listState(ctx context.Context, state, head, base string) ([]Request, error) {
	doing := fmt.Sprintf("finding pull requests from %s to %s", head, base)
	var out []Request
	pages := b.newPages()
	read := func(start int, page any) error {
		q := url.Values{
			"state": {state}, "direction": {"OUTGOING"}, "at": {branchRef + head}, "order": {"NEWEST"},
			"limit": {fmt.Sprint(pageSize)}, "start": {fmt.Sprint(start)},
		}
		_, err := pages.read(ctx, doing, "/pull-requests?"+q.Encode(), page)
		return err
	}
	err := eachServerPage(pages, read, func(values []serverRequest) (more bool) {
		for i := range values {
			r := &values[i]
			if r.FromRef.Repository.ID == r.ToRef.Repository.ID && r.FromRef.ID == branchRef+head && r.ToRef.ID == branchRef+base {
				out = append(out, *r.toPullRequest())
			}
		}
		return len(out) == 0
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// eachServerPage reads a list page by page until its end, or until take returns false.
func eachServerPage[T any](pages *pages, read func(start int, page any) error, take func(values []T) (more bool)) error {
	start := 0
	for pages.next() {
		var page struct {
			Values        []T  `json:"values"`
			IsLastPage    bool `json:"isLastPage"`
			NextPageStart int  `json:"nextPageStart"`
		}
		if err := read(start, &page); err != nil {
			return err
		}
		if !take(page.Values) || page.IsLastPage || page.NextPageStart <= start {
			return nil
		}
		start = page.NextPageStart
	}
	return nil
}

func serverPull(number int64) string { return fmt.Sprintf("/pull-requests/%d", number) }

func (b *bitbucketServer) readServerRequest(ctx context.Context, number int64) (*serverRequest, error) {
	var r serverRequest
	_, err := b.call(ctx, readingPullRequest(number), http.MethodGet, serverPull(number), nil, &r)
	return &r, err
}

func (b *bitbucketServer) getPullRequest(ctx context.Context, number int64) (*Request, error) {
	r, err := b.readServerRequest(ctx, number)
	return r.toPullRequest(), err
}

// projectAndRepository returns the key of the project and the name of the repository, which are part of the API's URL.
func (b *bitbucketServer) projectAndRepository() (project, name string) {
	parts := strings.Split(b.at, "/")
	project, _ = url.PathUnescape(parts[len(parts)-3])
	name, _ = url.PathUnescape(parts[len(parts)-1])
	return project, name
}

func (b *bitbucketServer) createPullRequest(ctx context.Context, head, base string, c Content) (*Request, error) {
	project, name := b.projectAndRepository()
	ref := func(branch string) any {
		return map[string]any{"id": branchRef + branch, "repository": map[string]any{"slug": name, "project": map[string]any{"key": project}}}
	}
	var r serverRequest
	in := map[string]any{"title": c.Title, "description": c.Body, "fromRef": ref(head), "toRef": ref(base)}
	_, err := b.call(ctx, openingPullRequest(head, base), http.MethodPost, "/pull-requests", in, &r)
	return r.toPullRequest(), err
}

// versionTries is how often an operation is retried after a concurrent change: Bitbucket requires the version that
// was read.
const versionTries = 3

func (b *bitbucketServer) withVersion(ctx context.Context, number int64, do func(now *serverRequest) error) error {
	for try := 1; ; try++ {
		now, err := b.readServerRequest(ctx, number)
		if err != nil {
			return err
		}
		err = do(now)
		if e := (*Error)(nil); try == versionTries || !errors.As(err, &e) || e.Status != http.StatusConflict {
			return err
		}
	}
}

// editPullRequest also sends the reviewers, who would be taken away otherwise.
func (b *bitbucketServer) editPullRequest(ctx context.Context, was *Request, title, body string) (*Request, error) {
	var r serverRequest
	err := b.withVersion(ctx, was.Number, func(now *serverRequest) error {
		reviewers := make([]any, 0, len(now.Reviewers))
		for _, one := range now.Reviewers {
			reviewers = append(reviewers, map[string]any{"user": map[string]any{"name": one.User.Name}})
		}
		in := map[string]any{"version": now.Version, "title": title, "description": body, "reviewers": reviewers}
		_, err := b.call(ctx, updatingPullRequest(was.Number), http.MethodPut, serverPull(was.Number), in, &r)
		return err
	})
	return r.toPullRequest(), err
}

func (b *bitbucketServer) addPullRequestLabels(context.Context, *Request, []string) error { return nil }

func (b *bitbucketServer) closePullRequest(ctx context.Context, r *Request) error {
	return b.withVersion(ctx, r.Number, func(now *serverRequest) error {
		if now.State != "OPEN" {
			return nil
		}
		at := fmt.Sprintf("%s/decline?version=%d", serverPull(r.Number), now.Version)
		_, err := b.call(ctx, closingPullRequest(r.Number), http.MethodPost, at, nil, nil)
		return err
	})
}

func (b *bitbucketServer) postComment(ctx context.Context, number int64, text string) error {
	_, err := b.call(ctx, commentingPullRequest(number), http.MethodPost, serverPull(number)+"/comments", map[string]any{"text": text}, nil)
	return err
}
