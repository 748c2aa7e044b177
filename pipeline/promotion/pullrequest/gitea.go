// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// gitea is a repository at Gitea or Forgejo (docs.gitea.com, "API"; read in routers/api/v1/repo of 1.27.3).
type gitea struct{ *api }

// Gitea has no limit for bodies; a longer one would not be read.
var giteaLimits = limits{title: 255, body: 1 << 20, labels: true}

// giteaPage is the page size: servers return 50 at most unless configured otherwise.
const giteaPage = 50

// giteaClosed is how many pages of pull requests that are closed are looked at, the newest first, and giteaOldest how many where one of
// the branch must be further back.
const giteaClosed, giteaOldest = 10, 200

func openGitea(a *api, c Credentials) Host {
	a.authorize = authorizeWithHeader("token " + c.Token)
	if c.Token == "" {
		a.authorize = authorizeWithHeader(basicAuthorization(c.Username + ":" + c.Password))
	}
	return &repository{&gitea{a}, giteaLimits}
}

type giteaRequest struct {
	answeredRequest
	Merged bool        `json:"merged"`
	Head   giteaBranch `json:"head"`
	Base   giteaBranch `json:"base"`
	// Flow is 1 for what was pushed to refs/for/, for which no branch and no right to write is needed.
	Flow int `json:"flow"`
	// ContentVersion counts the changes of the body, since Gitea 1.26.
	ContentVersion *int `json:"content_version"`
}

type giteaBranch struct {
	// Label is the name of the branch even after its deletion, when Ref is refs/pull/N/head.
	Label  string `json:"label"`
	SHA    string `json:"sha"`
	RepoID int64  `json:"repo_id"`
}

func (r *giteaRequest) toPullRequest() *Request {
	out := r.pullRequestBetween(r.Head.Label, r.Head.SHA, r.Base.Label, r.Merged)
	out.version = r.ContentVersion
	return out
}

// listPullRequests reads lists: Gitea can be asked for the pull requests to a branch since 1.24, and for those from one
// not at all.
func (g *gitea) listPullRequests(ctx context.Context, head, base string) ([]Request, error) {
	left := int64(maxListed)
	open := giteaList{g: g, state: "open", head: head, base: base, left: &left}
	if found, err := open.readUntilFound(ctx, maxPages); err != nil || len(found) > 0 {
		return found, err
	}
	closed := giteaList{g: g, state: "closed", head: head, base: base, left: &left}
	found, err := closed.readUntilFound(ctx, giteaClosed)
	if err != nil || len(found) > 0 || closed.over {
		return found, err
	}
	// Most branches have none: only for those that do it is worth to read on.
	older, err := g.findAnyRequest(ctx, head, base)
	if older == nil || err != nil {
		return nil, err
	}
	if found, err = closed.readUntilFound(ctx, giteaOldest); len(found) == 0 && err == nil {
		found = []Request{*older}
	}
	return found, err
}

// findAnyRequest returns any pull request from one branch to another, which Gitea finds in a single call, or nil if
// none exists.
func (g *gitea) findAnyRequest(ctx context.Context, head, base string) (*Request, error) {
	path := "/pulls/" + url.PathEscape(base)
	for part := range strings.SplitSeq(head, "/") {
		path += "/" + url.PathEscape(part)
	}
	var r giteaRequest
	_, err := g.call(ctx, fmt.Sprintf("finding pull requests from %s to %s", head, base), http.MethodGet, path, nil, &r)
	if IsNotFound(err) || err == nil && !r.isFrom(head, base) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.toPullRequest(), nil
}

// isFrom reports whether it is from a branch of the repository itself to another.
func (r *giteaRequest) isFrom(head, base string) bool {
	return r.Head.RepoID == r.Base.RepoID && r.Head.Label == head && r.Base.Label == base
}

// giteaList is the list of the pull requests to a branch that are in a state, as far as it was read.
type giteaList struct {
	g                 *gitea
	state, head, base string
	pages, read       int
	over              bool
	left              *int64 // of the bytes of all pages
}

// readUntilFound reads up to so many pages in all, and ends with the page that has one from the branch.
func (l *giteaList) readUntilFound(ctx context.Context, pages int) (out []Request, err error) {
	doing := fmt.Sprintf("finding pull requests from %s to %s", l.head, l.base)
	for !l.over && l.pages < pages && len(out) == 0 {
		q := url.Values{"state": {l.state}, "base_branch": {l.base}, "page": {fmt.Sprint(l.pages + 1)}, "limit": {fmt.Sprint(giteaPage)}}
		var page []giteaRequest
		h, err := l.g.retryCall(ctx, doing, http.MethodGet, l.g.at+"/pulls?"+q.Encode(), nil, &page, l.left)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if r := &page[i]; r.isFrom(l.head, l.base) {
				out = append(out, *r.toPullRequest())
			}
		}
		l.pages, l.read = l.pages+1, l.read+len(page)
		l.over = isLastPage(h, len(page), l.read)
	}
	return out, nil
}

// isLastPage reports whether a page of a list is the last, where read entries were read in all. A server may return
// fewer than requested, and announces more by Link or X-Total-Count, not always both.
func isLastPage(h http.Header, got, read int) bool {
	if links := h.Get("Link"); links != "" {
		return !strings.Contains(links, `rel="next"`)
	}
	total, err := strconv.Atoi(h.Get("X-Total-Count"))
	return got == 0 || err == nil && read >= total
}

func (g *gitea) getPullRequest(ctx context.Context, number int64) (*Request, error) {
	var r giteaRequest
	_, err := g.call(ctx, readingPullRequest(number), http.MethodGet, pullRequestPath(number), nil, &r)
	return r.toPullRequest(), err
}

func (g *gitea) createPullRequest(ctx context.Context, head, base string, c Content) (*Request, error) {
	var r giteaRequest
	in := map[string]any{"title": c.Title, "body": c.Body, "head": head, "base": base}
	if len(c.Labels) > 0 {
		numbers, err := g.labelNumbersOf(ctx, openingPullRequest(head, base), c.Labels)
		if err != nil {
			return nil, err
		}
		in["labels"] = numbers
	}
	_, err := g.call(ctx, openingPullRequest(head, base), http.MethodPost, "/pulls", in, &r)
	return r.toPullRequest(), err
}

func (g *gitea) editPullRequest(ctx context.Context, was *Request, title, body string) (*Request, error) {
	var r giteaRequest
	in := map[string]any{"title": title, "body": body}
	if was.version != nil {
		in["content_version"] = *was.version
	}
	_, err := g.call(ctx, updatingPullRequest(was.Number), http.MethodPatch, pullRequestPath(was.Number), in, &r)
	if e := (*Error)(nil); was.version != nil && errors.As(err, &e) && e.Status == http.StatusConflict {
		return nil, fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return r.toPullRequest(), err
}

func (g *gitea) addPullRequestLabels(ctx context.Context, r *Request, labels []string) error {
	numbers, err := g.labelNumbersOf(ctx, labellingPullRequest(r.Number), labels)
	if err != nil {
		return err
	}
	_, err = g.call(ctx, labellingPullRequest(r.Number), http.MethodPost, fmt.Sprintf("/issues/%d/labels", r.Number), map[string]any{"labels": numbers}, nil)
	return err
}

// labelNumbersOf returns the numbers of labels, which every version accepts, and creates those that neither the
// repository nor its organisation has.
func (g *gitea) labelNumbersOf(ctx context.Context, doing string, labels []string) ([]int64, error) {
	known, err := g.labelNumbers(ctx, doing)
	if err != nil {
		return nil, err
	}
	var numbers []int64
	for _, name := range labels {
		id, ok := known[name]
		if !ok {
			var made namedLabel
			in := map[string]any{"name": name, "color": "#1d76db"}
			if _, err := g.call(ctx, "making the label "+name, http.MethodPost, "/labels", in, &made); err != nil {
				return nil, err
			}
			id = made.ID
		}
		numbers = append(numbers, id)
	}
	return numbers, nil
}

func (g *gitea) labelNumbers(ctx context.Context, doing string) (map[string]int64, error) {
	owner, _, _ := strings.Cut(g.repository, "/")
	known := map[string]int64{}
	for _, at := range []string{g.root + "/orgs/" + owner + "/labels", g.at + "/labels"} {
		pages, read := g.newPages(), 0
		for pages.next() {
			var some []namedLabel
			h, err := pages.readAt(ctx, doing, fmt.Sprintf("%s?page=%d&limit=%d", at, pages.number, giteaPage), &some)
			// A user has no labels, and a token may be for no organisations.
			if e := (*Error)(nil); at != g.at+"/labels" && errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusForbidden) {
				break
			}
			if err != nil {
				return nil, err
			}
			for _, l := range some {
				known[l.Name] = l.ID
			}
			if read += len(some); isLastPage(h, len(some), read) {
				break
			}
		}
	}
	return known, nil
}

func (g *gitea) closePullRequest(ctx context.Context, r *Request) error {
	_, err := g.call(ctx, closingPullRequest(r.Number), http.MethodPatch, pullRequestPath(r.Number), map[string]any{"state": "closed"}, nil)
	return err
}

func (g *gitea) postComment(ctx context.Context, number int64, text string) error {
	_, err := g.call(ctx, commentingPullRequest(number), http.MethodPost, fmt.Sprintf("/issues/%d/comments", number), map[string]any{"body": text}, nil)
	return err
}
