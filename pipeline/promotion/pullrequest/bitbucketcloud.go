// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// bitbucketCloud is a repository at bitbucket.org (developer.atlassian.com, "Pullrequests").
type bitbucketCloud struct{ *api }

// Opening a second pull request from one branch to another changes the first. Labels do not exist.
var bitbucketCloudLimits = limits{title: 255, body: 32768, overwrites: true}

func openBitbucketCloud(a *api, c Credentials) Host {
	a.authorize = bearerOrBasic(c)
	return &repository{&bitbucketCloud{a}, bitbucketCloudLimits}
}

type cloudRequest struct {
	ID          int64       `json:"id"`
	State       string      `json:"state"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Draft       bool        `json:"draft"`
	Source      cloudBranch `json:"source"`
	Destination cloudBranch `json:"destination"`
	MergeCommit *cloudHash  `json:"merge_commit"`
	CreatedOn   time.Time   `json:"created_on"`
	UpdatedOn   time.Time   `json:"updated_on"`
	ClosedOn    *time.Time  `json:"closed_on"`
	Author      struct {
		Nickname    string `json:"nickname"`
		DisplayName string `json:"display_name"`
	} `json:"author"`
	Reviewers []struct {
		UUID string `json:"uuid"`
	} `json:"reviewers"`
	Links struct {
		HTML struct {
			Href string `json:"href"`
		} `json:"html"`
	} `json:"links"`
}

type cloudHash struct {
	Hash string `json:"hash"`
}

type cloudBranch struct {
	Branch struct {
		Name string `json:"name"`
	} `json:"branch"`
	Commit     *cloudHash `json:"commit"`
	Repository *struct {
		UUID string `json:"uuid"`
	} `json:"repository"`
}

func hashOf(h *cloudHash) string {
	if h == nil {
		return ""
	}
	return h.Hash
}

func (r *cloudRequest) toPullRequest() *Request {
	out := &Request{
		Number: r.ID, URL: r.Links.HTML.Href, State: StateClosed, Head: r.Source.Branch.Name, Base: r.Destination.Branch.Name,
		HeadCommit: hashOf(r.Source.Commit), Title: r.Title, Body: r.Description, Draft: r.Draft,
		CreatedAt: r.CreatedOn, UpdatedAt: r.UpdatedOn, Author: cmp.Or(r.Author.Nickname, r.Author.DisplayName),
	}
	switch r.State { // the others are DECLINED and SUPERSEDED
	case "OPEN":
		out.State = StateOpen
		return out
	case "MERGED":
		out.State, out.MergeCommit = StateMerged, hashOf(r.MergeCommit)
	}
	out.ClosedAt = timeOf(r.ClosedOn)
	if r.ClosedOn == nil {
		out.ClosedAt = r.UpdatedOn // older ones do not include it
	}
	return out
}

// quoteQueryText writes a text for Bitbucket's query language.
func quoteQueryText(text string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"`, `\"`) + `"`
}

func (b *bitbucketCloud) listPullRequests(ctx context.Context, head, base string) ([]Request, error) {
	doing := fmt.Sprintf("finding pull requests from %s to %s", head, base)
	var out []Request
	for _, states := range [][]string{{"OPEN"}, {"MERGED", "DECLINED", "SUPERSEDED"}} {
		// Without a state only those that are open would be listed.
		q := url.Values{
			"q":    {"source.branch.name = " + quoteQueryText(head) + " AND destination.branch.name = " + quoteQueryText(base)},
			"sort": {"-created_on"}, "pagelen": {"50"}, "state": states,
		}
		var page struct {
			Values []cloudRequest `json:"values"`
		}
		if _, err := b.call(ctx, doing, http.MethodGet, "/pullrequests?"+q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		for i := range page.Values {
			r := &page.Values[i]
			own := r.Source.Repository != nil && r.Destination.Repository != nil && r.Source.Repository.UUID == r.Destination.Repository.UUID
			if own && r.Source.Branch.Name == head && r.Destination.Branch.Name == base {
				out = append(out, *r.toPullRequest())
			}
		}
		if len(out) > 0 {
			break
		}
	}
	if best := newestOpenRequest(out); best != nil {
		// Only the one that is used is worth more calls.
		return []Request{*best}, b.wholeHashes(ctx, best)
	}
	return nil, nil
}

// wholeHashes replaces the hashes of a pull request, of which Bitbucket shows 12 characters.
func (b *bitbucketCloud) wholeHashes(ctx context.Context, r *Request) error {
	for _, hash := range []*string{&r.HeadCommit, &r.MergeCommit} {
		if *hash == "" || len(*hash) >= 40 {
			continue
		}
		var commit cloudHash
		_, err := b.call(ctx, "reading commit "+*hash, http.MethodGet, "/commit/"+url.PathEscape(*hash)+"?fields=hash", nil, &commit)
		switch {
		case IsNotFound(err):
			// The commit of a deleted branch.
		case err != nil:
			return err
		case strings.HasPrefix(commit.Hash, *hash):
			*hash = commit.Hash
		}
	}
	return nil
}

func (b *bitbucketCloud) callForRequest(ctx context.Context, doing, method, path string, in any) (*cloudRequest, *Request, error) {
	var r cloudRequest
	if _, err := b.call(ctx, doing, method, path, in, &r); err != nil {
		return nil, nil, err
	}
	out := r.toPullRequest()
	return &r, out, b.wholeHashes(ctx, out)
}

func cloudPull(number int64) string { return "/pullrequests/" + strconv.FormatInt(number, 10) }

func (b *bitbucketCloud) getPullRequest(ctx context.Context, number int64) (*Request, error) {
	_, r, err := b.callForRequest(ctx, readingPullRequest(number), http.MethodGet, cloudPull(number), nil)
	return r, err
}

func (b *bitbucketCloud) createPullRequest(ctx context.Context, head, base string, c Content) (*Request, error) {
	branch := func(name string) any { return map[string]any{"branch": map[string]any{"name": name}} }
	in := map[string]any{"title": c.Title, "description": c.Body, "source": branch(head), "destination": branch(base)}
	_, r, err := b.callForRequest(ctx, openingPullRequest(head, base), http.MethodPost, "/pullrequests", in)
	return r, err
}

// editPullRequest also sends the reviewers, who would be taken away otherwise.
func (b *bitbucketCloud) editPullRequest(ctx context.Context, was *Request, title, body string) (*Request, error) {
	now, _, err := b.callForRequest(ctx, readingPullRequest(was.Number), http.MethodGet, cloudPull(was.Number), nil)
	if err != nil {
		return nil, err
	}
	reviewers := make([]any, 0, len(now.Reviewers))
	for _, one := range now.Reviewers {
		reviewers = append(reviewers, map[string]any{"uuid": one.UUID})
	}
	in := map[string]any{"title": title, "description": body, "reviewers": reviewers}
	_, r, err := b.callForRequest(ctx, updatingPullRequest(was.Number), http.MethodPut, cloudPull(was.Number), in)
	return r, err
}

func (b *bitbucketCloud) addPullRequestLabels(context.Context, *Request, []string) error { return nil }

func (b *bitbucketCloud) closePullRequest(ctx context.Context, r *Request) error {
	_, err := b.call(ctx, closingPullRequest(r.Number), http.MethodPost, cloudPull(r.Number)+"/decline", nil, nil)
	return err
}

func (b *bitbucketCloud) postComment(ctx context.Context, number int64, text string) error {
	in := map[string]any{"content": map[string]any{"raw": text}}
	_, err := b.call(ctx, commentingPullRequest(number), http.MethodPost, cloudPull(number)+"/comments", in, nil)
	return err
}
