// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// publicationSearch walks back a branch to find the last publish of a pipeline.
type publicationSearch struct {
	branch   *Branch
	host     pullrequest.Host // nil where it is published to without pull requests
	to       *v1alpha1.GitPublish
	pipeline string
	tip      *git.Commit

	// edited is the newest commit by a person whose change to a file of the pipeline is still in effect.
	edited *git.Commit
}

// publicationOfCommit returns the publication of an explicitly named commit.
func (s *publicationSearch) publicationOfCommit(ctx context.Context, at, before *git.Commit) (*Publication, error) {
	p, err := computePublication(s.branch.Mirror.NewDraft(), at, before)
	if err != nil {
		return nil, err
	}
	if err := p.refusedRevertReason(s.pipeline); err != nil {
		return nil, err
	}
	ours, err := s.isOurs(ctx, p)
	if err == nil && !ours {
		err = fmt.Errorf("%s: %w", describePerson(at), ErrNotPublished)
	}
	return p, err
}

// newestRevertiblePublication returns the publication of a commit, if it is the last of the pipeline that can be taken
// back; nil where an older one is to be looked for. An error names the person whose change would be lost.
func (s *publicationSearch) newestRevertiblePublication(ctx context.Context, at,
	before *git.Commit) (*Publication, error) {
	draft := s.branch.Mirror.NewDraft()
	p, err := computePublication(draft, at, before)
	if err != nil || !slices.Contains(p.Pipelines, s.pipeline) {
		return nil, err
	}
	there, err := p.isStillPresent(draft, s.tip.Tree, s.pipeline)
	if err != nil || !there && s.edited == nil {
		return nil, err
	}
	ours, err := s.isOurs(ctx, p)
	if err != nil {
		return nil, err
	}
	if !ours {
		if there && s.edited == nil {
			s.edited = at
		}
		return nil, nil
	}
	if s.edited == nil {
		return p, p.refusedRevertReason(s.pipeline)
	}
	files, err := p.filesToRestore(draft, s.tip.Tree)
	switch {
	case errors.Is(err, ErrChangedSince):
		return nil, fmt.Errorf("%s: %w", describePerson(s.edited), ErrEditedSince)
	case err != nil || len(files) == 0: // it was taken back already
		return nil, err
	}
	return p, p.refusedRevertReason(s.pipeline)
}

// describePerson names a commit that Prerig has not made.
func describePerson(at *git.Commit) string {
	return fmt.Sprintf("%.12s by %s, %q, is not Prerig's", at.Hash,
		foreign.Line(at.Author+" <"+at.AuthorEmail+">", maxSubject), foreign.Line(at.Subject, maxSubject))
}

// isOurs reports whether Prerig has made the commit of a publication, or it merges exactly what Prerig had proposed.
func (s *publicationSearch) isOurs(ctx context.Context, p *Publication) (bool, error) {
	if s.branch.isPublish(p.commit) {
		return true, nil
	}
	var head git.Hash
	switch {
	case len(p.commit.Parents) > 1:
		head = p.commit.Parents[1]
	case s.host == nil:
		return false, nil
	default:
		// Hosts may squash or rebase, and then only they know what a commit was merged from.
		request, err := s.host.Find(ctx, s.to.PullRequest.Head, s.branch.Name)
		if err != nil {
			return false, fmt.Errorf("looking for the pull request from %s: %w", s.to.PullRequest.Head, err)
		}
		if request == nil || request.State != pullrequest.StateMerged || request.MergeCommit != p.Commit.String() {
			return false, nil
		}
		head = hashOf(request.HeadCommit)
	}
	merged, err := (&PullRequest{Base: s.branch}).readHead(ctx, head)
	if err != nil {
		return false, ctx.Err() // it is no longer available, so that its owner is unknown
	}
	if !merged.ours {
		return false, nil
	}
	return p.isOf(s.branch.Mirror.NewDraft(), merged.commit.Tree)
}

// isOf reports whether all files that a commit changed are as in a root directory.
func (p *Publication) isOf(draft *git.Draft, root git.Hash) (bool, error) {
	for name, change := range p.Files {
		if now, err := draft.File(root, name); err != nil || now != change.New {
			return false, err
		}
	}
	return true, nil
}

// isPublish reports whether a commit is one that Prerig has made to publish, by its trailers. One that a person has
// amended, or has taken over from elsewhere with its message, is not: it is another's, or has another tree than it
// names.
func (b *Branch) isPublish(commit *git.Commit) bool {
	named, same := false, commit.ByAuthor && commit.AuthorEmail == b.Email
	for line := range strings.Lines(commit.Body) {
		switch key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": "); key {
		case TrailerPipeline, TrailerRemoved:
			named = true
		case trailerTree:
			same = value == commit.Tree.String()
		}
	}
	return named && same
}
