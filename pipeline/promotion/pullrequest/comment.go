// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

func readingComments(number int64) string {
	return fmt.Sprintf("reading comments on pull request %d", number)
}

// issueComment is a comment as GitHub and Gitea answer it, and GitLab in all but the author's name.
type issueComment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
	Author struct {
		Username string `json:"username"`
	} `json:"author"`
	System bool `json:"system"`
}

func (c *issueComment) toComment() *comment {
	out := &comment{author: c.User.Login + c.Author.Username, text: c.Body}
	if c.ID > 0 {
		out.id = fmt.Sprint(c.ID)
	}
	return out
}

// issueComments reads pages of comments. If a host ignores paging and returns all comments at once, the second page
// begins like the first.
func (a *api) issueComments(ctx context.Context, number int64, path string, size int) ([]comment, error) {
	var out []comment
	first := int64(0)
	pages := a.newPages()
	for pages.next() {
		var some []issueComment
		h, err := pages.read(ctx, readingComments(number), fmt.Sprintf("%s&page=%d", path, pages.number), &some)
		if err != nil {
			return nil, err
		}
		if len(some) == 0 || some[0].ID == first {
			break
		}
		if first == 0 {
			first = some[0].ID
		}
		for i := range some {
			if !some[i].System {
				out = append(out, *some[i].toComment())
			}
		}
		if h.Get("Link") != "" && !strings.Contains(h.Get("Link"), `rel="next"`) || h.Get("Link") == "" && len(some) < size {
			break
		}
	}
	return out, nil
}

// issueComment makes one call about one comment.
func (a *api) issueComment(ctx context.Context, doing, method, path string, in any) (*comment, error) {
	var c issueComment
	if _, err := a.call(ctx, doing, method, path, in, &c); err != nil {
		return nil, err
	}
	return c.toComment(), nil
}

func (g *gitHub) listPostedComments(ctx context.Context, number int64) ([]comment, error) {
	return g.issueComments(ctx, number, fmt.Sprintf("/issues/%d/comments?per_page=%d", number, pageSize), pageSize)
}

func (g *gitHub) readComment(ctx context.Context, number int64, id string) (*comment, error) {
	return g.issueComment(ctx, readingComments(number), http.MethodGet, "/issues/comments/"+url.PathEscape(id), nil)
}

func (g *gitHub) writeComment(ctx context.Context, number int64, was *comment, text string) (*comment, error) {
	return g.writeIssueComment(ctx, number, was, text)
}

// writeIssueComment is how GitHub and Gitea take comments.
func (a *api) writeIssueComment(ctx context.Context, number int64, was *comment, text string) (*comment, error) {
	in := map[string]any{"body": text}
	if was == nil {
		return a.issueComment(ctx, commentingPullRequest(number), http.MethodPost, fmt.Sprintf("/issues/%d/comments", number), in)
	}
	return a.issueComment(ctx, commentingPullRequest(number), http.MethodPatch, "/issues/comments/"+url.PathEscape(was.id), in)
}

// listPostedComments reads pages that may be smaller than asked for.
func (g *gitea) listPostedComments(ctx context.Context, number int64) ([]comment, error) {
	return g.issueComments(ctx, number, fmt.Sprintf("/issues/%d/comments?limit=%d", number, giteaPage), 1)
}

// readComment also accepts an answer without a comment, which Gitea returns for a comment that is not text.
func (g *gitea) readComment(ctx context.Context, number int64, id string) (*comment, error) {
	return g.issueComment(ctx, readingComments(number), http.MethodGet, "/issues/comments/"+url.PathEscape(id), nil)
}

func (g *gitea) writeComment(ctx context.Context, number int64, was *comment, text string) (*comment, error) {
	return g.writeIssueComment(ctx, number, was, text)
}

func (g *gitLab) listPostedComments(ctx context.Context, number int64) ([]comment, error) {
	return g.issueComments(ctx, number, fmt.Sprintf("%s/notes?sort=asc&order_by=created_at&per_page=%d", mergeRequest(number), pageSize), pageSize)
}

func (g *gitLab) notePath(number int64, id string) string {
	return mergeRequest(number) + "/notes/" + url.PathEscape(id)
}

func (g *gitLab) readComment(ctx context.Context, number int64, id string) (*comment, error) {
	return g.issueComment(ctx, readingComments(number), http.MethodGet, g.notePath(number, id), nil)
}

func (g *gitLab) writeComment(ctx context.Context, number int64, was *comment, text string) (*comment, error) {
	in := map[string]any{"body": text}
	if was == nil {
		return g.issueComment(ctx, commentingPullRequest(number), http.MethodPost, mergeRequest(number)+"/notes", in)
	}
	return g.issueComment(ctx, commentingPullRequest(number), http.MethodPut, g.notePath(number, was.id), in)
}

// cloudComment is a comment as Bitbucket Cloud answers it.
type cloudComment struct {
	ID      int64 `json:"id"`
	Deleted bool  `json:"deleted"`
	Content struct {
		Raw string `json:"raw"`
	} `json:"content"`
	User struct {
		UUID string `json:"uuid"`
	} `json:"user"`
}

func (c *cloudComment) toComment() *comment {
	out := &comment{author: c.User.UUID, text: c.Content.Raw}
	if c.ID > 0 {
		out.id = fmt.Sprint(c.ID)
	}
	return out
}

func (b *bitbucketCloud) listPostedComments(ctx context.Context, number int64) ([]comment, error) {
	var out []comment
	pages := b.newPages()
	for pages.next() {
		var some struct {
			Values []cloudComment `json:"values"`
			Next   string         `json:"next"`
		}
		path := fmt.Sprintf("%s/comments?pagelen=%d&sort=created_on&page=%d", cloudPull(number), pageSize, pages.number)
		if _, err := pages.read(ctx, readingComments(number), path, &some); err != nil {
			return nil, err
		}
		for i := range some.Values {
			if !some.Values[i].Deleted {
				out = append(out, *some.Values[i].toComment())
			}
		}
		if some.Next == "" {
			break
		}
	}
	return out, nil
}

// readComment returns 404 for one that was removed, of which Bitbucket keeps the place.
func (b *bitbucketCloud) readComment(ctx context.Context, number int64, id string) (*comment, error) {
	var c cloudComment
	if _, err := b.call(ctx, readingComments(number), http.MethodGet, cloudPull(number)+"/comments/"+url.PathEscape(id), nil, &c); err != nil {
		return nil, err
	}
	if c.Deleted {
		return nil, &Error{Server: b.server, Repository: b.repository, Doing: readingComments(number), Status: http.StatusNotFound}
	}
	return c.toComment(), nil
}

func (b *bitbucketCloud) writeComment(ctx context.Context, number int64, was *comment, text string) (*comment, error) {
	in := map[string]any{"content": map[string]any{"raw": text}}
	method, path := http.MethodPost, cloudPull(number)+"/comments"
	if was != nil {
		method, path = http.MethodPut, path+"/"+url.PathEscape(was.id)
	}
	var c cloudComment
	if _, err := b.call(ctx, commentingPullRequest(number), method, path, in, &c); err != nil {
		return nil, err
	}
	return c.toComment(), nil
}

// serverComment is a comment as Bitbucket Data Center answers it.
type serverComment struct {
	ID      int64  `json:"id"`
	Version int    `json:"version"`
	Text    string `json:"text"`
	Author  struct {
		Name string `json:"name"`
	} `json:"author"`
}

func (c *serverComment) toComment() *comment {
	out := &comment{author: c.Author.Name, text: c.Text, version: c.Version}
	if c.ID > 0 {
		out.id = fmt.Sprint(c.ID)
	}
	return out
}

// listPostedComments reads the activities, which include comments: no list of the comments without a file exists.
func (b *bitbucketServer) listPostedComments(ctx context.Context, number int64) ([]comment, error) {
	type activity struct {
		Action  string        `json:"action"`
		Comment serverComment `json:"comment"`
	}
	var out []comment
	pages := b.newPages()
	read := func(start int, page any) error {
		path := fmt.Sprintf("%s/activities?limit=%d&start=%d", serverPull(number), pageSize, start)
		_, err := pages.read(ctx, readingComments(number), path, page)
		return err
	}
	err := eachServerPage(pages, read, func(values []activity) (more bool) {
		for i := range values {
			if v := &values[i]; v.Action == "COMMENTED" {
				out = append(out, *v.Comment.toComment())
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(out) // the newest come first
	return out, nil
}

func (b *bitbucketServer) readComment(ctx context.Context, number int64, id string) (*comment, error) {
	var c serverComment
	if _, err := b.call(ctx, readingComments(number), http.MethodGet, serverPull(number)+"/comments/"+url.PathEscape(id), nil, &c); err != nil {
		return nil, err
	}
	return c.toComment(), nil
}

// writeComment sends the version that was read: of two who write at the same time one is refused.
func (b *bitbucketServer) writeComment(ctx context.Context, number int64, was *comment, text string) (*comment, error) {
	in := map[string]any{"text": text}
	method, path := http.MethodPost, serverPull(number)+"/comments"
	if was != nil {
		method, path, in["version"] = http.MethodPut, path+"/"+url.PathEscape(was.id), was.version
	}
	var c serverComment
	if _, err := b.call(ctx, commentingPullRequest(number), method, path, in, &c); err != nil {
		return nil, err
	}
	return c.toComment(), nil
}
