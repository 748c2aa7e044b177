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

// azure is a repository at Azure DevOps Services or Server (learn.microsoft.com, "Pull Requests", 7.0).
type azure struct{ *api }

// Descriptions have 4000 characters at most.
var azureLimits = limits{title: 400, body: 4000, labels: true}

func openAzure(a *api, c Credentials) Host {
	a.query = "api-version=7.0"
	token := c.Token
	if token == "" {
		token = c.Password
	}
	// Personal access tokens are passwords with an empty user name. Those of Entra ID are JSON Web Tokens.
	a.authorize = authorizeWithHeader(basicAuthorization(":" + token))
	if strings.HasPrefix(token, "eyJ") && strings.Count(token, ".") == 2 {
		a.authorize = authorizeWithHeader("Bearer " + token)
	}
	return &repository{&azure{a}, azureLimits}
}

type azureRequest struct {
	PullRequestID int64        `json:"pullRequestId"`
	Status        string       `json:"status"`
	Title         string       `json:"title"`
	Description   string       `json:"description"`
	SourceRefName string       `json:"sourceRefName"`
	TargetRefName string       `json:"targetRefName"`
	IsDraft       bool         `json:"isDraft"`
	CreationDate  time.Time    `json:"creationDate"`
	ClosedDate    *time.Time   `json:"closedDate"`
	SourceCommit  *azureCommit `json:"lastMergeSourceCommit"`
	MergeCommit   *azureCommit `json:"lastMergeCommit"`
	ForkSource    *struct{}    `json:"forkSource"`
	CreatedBy     struct {
		UniqueName string `json:"uniqueName"`
	} `json:"createdBy"`
	Labels []azureLabel `json:"labels"`
}

type azureCommit struct {
	CommitID string `json:"commitId"`
}

type azureLabel struct {
	Name   string `json:"name"`
	Active bool   `json:"active"`
}

func (a *azure) toPullRequest(r *azureRequest) *Request {
	out := &Request{
		Number: r.PullRequestID, State: StateClosed, Title: r.Title, Body: r.Description, Draft: r.IsDraft,
		Head: strings.TrimPrefix(r.SourceRefName, branchRef), Base: strings.TrimPrefix(r.TargetRefName, branchRef),
		CreatedAt: r.CreationDate, UpdatedAt: r.CreationDate, Author: r.CreatedBy.UniqueName,
		URL: strings.Replace(a.at, "/_apis/git/repositories/", "/_git/", 1) + fmt.Sprintf("/pullrequest/%d", r.PullRequestID),
	}
	if r.SourceCommit != nil {
		out.HeadCommit = r.SourceCommit.CommitID
	}
	for _, l := range r.Labels {
		if l.Active {
			out.Labels = append(out.Labels, l.Name)
		}
	}
	switch r.Status { // the other is "abandoned"
	case "active":
		out.State = StateOpen
		return out
	case "completed":
		// Before, this is a commit that is made to see whether it can be merged.
		out.State = StateMerged
		if r.MergeCommit != nil {
			out.MergeCommit = r.MergeCommit.CommitID
		}
	}
	out.ClosedAt = timeOf(r.ClosedDate)
	if out.ClosedAt.After(out.UpdatedAt) {
		out.UpdatedAt = out.ClosedAt
	}
	return out
}

// listPullRequests reads the one that is found again by itself, as lists cut descriptions.
func (a *azure) listPullRequests(ctx context.Context, head, base string) ([]Request, error) {
	doing := fmt.Sprintf("finding pull requests from %s to %s", head, base)
	var found []Request
	for _, status := range []string{"active", "all"} {
		q := url.Values{
			"searchCriteria.status": {status}, "$top": {fmt.Sprint(pageSize)},
			"searchCriteria.sourceRefName": {branchRef + head}, "searchCriteria.targetRefName": {branchRef + base},
		}
		var page struct {
			Value []azureRequest `json:"value"`
		}
		if _, err := a.call(ctx, doing, http.MethodGet, "/pullrequests?"+q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		for i := range page.Value {
			if r := &page.Value[i]; r.ForkSource == nil && r.SourceRefName == branchRef+head && r.TargetRefName == branchRef+base {
				found = append(found, *a.toPullRequest(r))
			}
		}
		if len(found) > 0 {
			break
		}
	}
	best := newestOpenRequest(found)
	if best == nil {
		return nil, nil
	}
	whole, err := a.getPullRequest(ctx, best.Number)
	if err != nil {
		return nil, err
	}
	best.Body, best.Labels = whole.Body, whole.Labels
	return []Request{*best}, nil
}

func azurePull(number int64) string { return fmt.Sprintf("/pullrequests/%d", number) }

func (a *azure) getPullRequest(ctx context.Context, number int64) (*Request, error) {
	var r azureRequest
	if _, err := a.call(ctx, readingPullRequest(number), http.MethodGet, azurePull(number), nil, &r); err != nil {
		return nil, err
	}
	if r.Labels == nil {
		var labels struct {
			Value []azureLabel `json:"value"`
		}
		if _, err := a.call(ctx, "reading labels of pull request", http.MethodGet, azurePull(number)+"/labels", nil, &labels); err != nil {
			return nil, err
		}
		r.Labels = labels.Value
	}
	return a.toPullRequest(&r), nil
}

func (a *azure) createPullRequest(ctx context.Context, head, base string, c Content) (*Request, error) {
	labels := make([]any, 0, len(c.Labels))
	for _, name := range c.Labels {
		labels = append(labels, map[string]any{"name": name})
	}
	in := map[string]any{
		"title": c.Title, "description": c.Body, "sourceRefName": branchRef + head, "targetRefName": branchRef + base, "labels": labels,
	}
	var r azureRequest
	if _, err := a.call(ctx, openingPullRequest(head, base), http.MethodPost, "/pullrequests", in, &r); err != nil {
		return nil, err
	}
	return a.toPullRequest(&r), nil
}

func (a *azure) patchPullRequest(ctx context.Context, doing string, number int64, in any) (*Request, error) {
	var r azureRequest
	if _, err := a.call(ctx, doing, http.MethodPatch, azurePull(number), in, &r); err != nil {
		return nil, err
	}
	return a.toPullRequest(&r), nil
}

func (a *azure) editPullRequest(ctx context.Context, was *Request, title, body string) (*Request, error) {
	return a.patchPullRequest(ctx, updatingPullRequest(was.Number), was.Number, map[string]any{"title": title, "description": body})
}

// addPullRequestLabels adds labels one by one. An existing label is a conflict, which is not an error.
func (a *azure) addPullRequestLabels(ctx context.Context, r *Request, labels []string) error {
	for _, name := range labels {
		_, err := a.call(ctx, labellingPullRequest(r.Number), http.MethodPost, azurePull(r.Number)+"/labels", map[string]any{"name": name}, nil)
		if e := (*Error)(nil); errors.As(err, &e) && e.Status == http.StatusConflict {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *azure) closePullRequest(ctx context.Context, r *Request) error {
	_, err := a.patchPullRequest(ctx, closingPullRequest(r.Number), r.Number, map[string]any{"status": "abandoned"})
	return err
}

func (a *azure) postComment(ctx context.Context, number int64, text string) error {
	in := map[string]any{"status": "closed", "comments": []any{map[string]any{"parentCommentId": 0, "commentType": "text", "content": text}}}
	_, err := a.call(ctx, commentingPullRequest(number), http.MethodPost, azurePull(number)+"/threads", in, nil)
	return err
}
