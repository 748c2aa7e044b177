// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// azureComment is a comment of a thread as Azure DevOps answers it.
type azureComment struct {
	ID        int64  `json:"id"`
	Content   string `json:"content"`
	IsDeleted bool   `json:"isDeleted"`
	Type      string `json:"commentType"`
	Author    struct {
		ID string `json:"id"`
	} `json:"author"`
}

// toThreadComment names it by its thread, too.
func (c *azureComment) toThreadComment(thread string) *comment {
	out := &comment{author: c.Author.ID, text: c.Content}
	if c.ID > 0 && thread != "" && thread != "0" {
		out.id = thread + "/" + fmt.Sprint(c.ID)
	}
	return out
}

type azureThread struct {
	ID        int64          `json:"id"`
	IsDeleted bool           `json:"isDeleted"`
	Comments  []azureComment `json:"comments"`
}

// listPostedComments returns the first of each thread; others are answers.
func (a *azure) listPostedComments(ctx context.Context, number int64) ([]comment, error) {
	var all struct {
		Value []azureThread `json:"value"`
	}
	if _, err := a.call(ctx, readingComments(number), http.MethodGet, azurePull(number)+"/threads", nil, &all); err != nil {
		return nil, err
	}
	var out []comment
	for i := range all.Value {
		t := &all.Value[i]
		if t.IsDeleted || len(t.Comments) == 0 || t.Comments[0].IsDeleted || t.Comments[0].Type == "system" {
			continue
		}
		out = append(out, *t.Comments[0].toThreadComment(fmt.Sprint(t.ID)))
	}
	return out, nil
}

// azureCommentPath is where one comment is.
func azureCommentPath(number int64, id string) (thread, path string) {
	thread, one, _ := strings.Cut(id, "/")
	return thread, azurePull(number) + "/threads/" + url.PathEscape(thread) + "/comments/" + url.PathEscape(one)
}

func (a *azure) readComment(ctx context.Context, number int64, id string) (*comment, error) {
	thread, path := azureCommentPath(number, id)
	var c azureComment
	if _, err := a.call(ctx, readingComments(number), http.MethodGet, path, nil, &c); err != nil {
		return nil, err
	}
	if c.IsDeleted {
		return nil, &Error{Server: a.server, Repository: a.repository, Doing: readingComments(number), Status: http.StatusNotFound}
	}
	return c.toThreadComment(thread), nil
}

// writeComment begins a thread that is closed, so that it does not count as one to be resolved.
func (a *azure) writeComment(ctx context.Context, number int64, was *comment, text string) (*comment, error) {
	if was == nil {
		in := map[string]any{"status": "closed", "comments": []any{map[string]any{"parentCommentId": 0, "commentType": "text", "content": text}}}
		var t azureThread
		if _, err := a.call(ctx, commentingPullRequest(number), http.MethodPost, azurePull(number)+"/threads", in, &t); err != nil {
			return nil, err
		}
		if len(t.Comments) == 0 {
			return &comment{}, nil
		}
		return t.Comments[0].toThreadComment(fmt.Sprint(t.ID)), nil
	}
	thread, path := azureCommentPath(number, was.id)
	var c azureComment
	if _, err := a.call(ctx, commentingPullRequest(number), http.MethodPatch, path, map[string]any{"content": text}, &c); err != nil {
		return nil, err
	}
	return c.toThreadComment(thread), nil
}
