// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// incomingOf copies what is already known of a pull request.
func incomingOf(r *Request, fork bool) *Incoming {
	return &Incoming{Number: r.Number, URL: pageURL(r.URL), State: r.State, Base: r.Base, Head: r.Head, HeadCommit: r.HeadCommit, Fork: fork}
}

func (g *gitHub) getIncomingRequest(ctx context.Context, number int64) (*Incoming, error) {
	var r gitHubRequest
	if _, err := g.call(ctx, readingPullRequest(number), http.MethodGet, pullRequestPath(number), nil, &r); err != nil {
		return nil, err
	}
	return incomingOf(r.toPullRequest(), !r.isFromOwnRepository()), nil
}

func (g *gitea) getIncomingRequest(ctx context.Context, number int64) (*Incoming, error) {
	var r giteaRequest
	if _, err := g.call(ctx, readingPullRequest(number), http.MethodGet, pullRequestPath(number), nil, &r); err != nil {
		return nil, err
	}
	// A deleted fork has no number, or -1. Anything pushed to refs/for/ claims to be of the repository itself.
	return incomingOf(r.toPullRequest(), r.Head.RepoID != r.Base.RepoID || r.Base.RepoID <= 0 || r.Flow != 0), nil
}

func (g *gitLab) getIncomingRequest(ctx context.Context, number int64) (*Incoming, error) {
	var r gitLabRequest
	if _, err := g.call(ctx, readingPullRequest(number), http.MethodGet, mergeRequest(number), nil, &r); err != nil {
		return nil, err
	}
	return incomingOf(r.toPullRequest(), r.SourceProjectID == nil || *r.SourceProjectID != r.TargetProjectID), nil
}

// getIncomingRequest requests the full hash of the commit, as Bitbucket Cloud returns only its first digits. Its
// repositories do not have the commits of their forks.
func (b *bitbucketCloud) getIncomingRequest(ctx context.Context, number int64) (*Incoming, error) {
	var r struct {
		cloudRequest
		Source struct {
			cloudBranch
			Repository *struct {
				UUID     string `json:"uuid"`
				FullName string `json:"full_name"`
			} `json:"repository"`
		} `json:"source"`
	}
	if _, err := b.call(ctx, readingPullRequest(number), http.MethodGet, cloudPull(number), nil, &r); err != nil {
		return nil, err
	}
	r.cloudRequest.Source = r.Source.cloudBranch
	from, to := r.Source.Repository, r.Destination.Repository
	out := incomingOf(r.toPullRequest(), from == nil || to == nil || from.UUID != to.UUID)
	if out.State != StateOpen {
		return out, nil
	}
	var commit cloudHash
	path := "/commit/" + url.PathEscape(out.HeadCommit)
	var err error
	if out.Fork && from != nil && from.FullName != "" {
		out.ForkURL = "https://bitbucket.org/" + escapedPath(from.FullName) + ".git"
		err = b.readNamed(ctx, readingPullRequest(number), b.root+"/repositories/"+escapedPath(from.FullName)+path, &commit)
	} else {
		_, err = b.call(ctx, readingPullRequest(number), http.MethodGet, path, nil, &commit)
	}
	if err != nil {
		return nil, err
	}
	out.HeadCommit = commit.Hash
	return out, nil
}

// escapedPath escapes the parts of a path of names.
func escapedPath(path string) string { return (&url.URL{Path: path}).EscapedPath() }

func (b *bitbucketServer) getIncomingRequest(ctx context.Context, number int64) (*Incoming, error) {
	r, err := b.readServerRequest(ctx, number)
	if err != nil {
		return nil, err
	}
	return incomingOf(r.toPullRequest(), r.FromRef.Repository.ID != r.ToRef.Repository.ID), nil
}

func (a *azure) getIncomingRequest(ctx context.Context, number int64) (*Incoming, error) {
	var r azureRequest
	if _, err := a.call(ctx, readingPullRequest(number), http.MethodGet, azurePull(number), nil, &r); err != nil {
		return nil, err
	}
	return incomingOf(a.toPullRequest(&r), r.ForkSource != nil), nil
}

// PullRef returns the reference by which a repository of a provider has the head of a pull request, "" where it has none of its own.
func PullRef(provider string, number int64) string {
	format := map[string]string{
		"GitHub": "refs/pull/%d/head", "Gitea": "refs/pull/%d/head", "GitLab": "refs/merge-requests/%d/head", "BitbucketServer": "refs/pull-requests/%d/from",
	}[provider]
	if format == "" {
		return ""
	}
	return fmt.Sprintf(format, number)
}
