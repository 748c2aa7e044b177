// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"errors"
	"fmt"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// Incoming is a pull request opened by others, as far as a preview of it needs to know.
type Incoming struct {
	// Number is what people call it by; URL is its page.
	Number int64
	URL    string
	State  State
	// Base is the target branch, Head the source branch, without refs/heads/. HeadCommit is the newest commit of
	// Head that the host has seen.
	Base, Head, HeadCommit string
	// Fork reports whether Head is not a branch of the repository: it is one of another repository, even a deleted
	// one, or no branch at all.
	Fork bool
	// ForkURL is the Git URL of that repository, for hosts whose target repository does not have its commits.
	ForkURL string
}

// CommitState is the state of a commit status.
type CommitState string

// States of a commit.
const (
	CommitPending CommitState = "Pending"
	CommitSuccess CommitState = "Success"
	CommitFailure CommitState = "Failure"
)

// CommitStatus is a status of the newest commit of a pull request.
type CommitStatus struct {
	State CommitState
	// Context identifies the status among those of a commit; the next one with the same name replaces it.
	Context string
	// Description is one line; what is longer than hosts take is cut. Page is where to read more, "" for nowhere.
	Description, Page string
}

// Conversation manages the comments and statuses on the pull requests of one repository. Its errors are those of a
// Host. It is safe for concurrent use.
type Conversation interface {
	// Incoming returns a pull request in its current state, regardless of who opened it.
	Incoming(ctx context.Context, number int64) (*Incoming, error)
	// Keep sets the text of one comment: the one that it has written before, or otherwise a new one. It makes no
	// write call if the comment has that text already. A comment that a person has changed belongs to that person
	// from then on.
	Keep(ctx context.Context, number int64, c KeptComment) (Written, error)
	// Finish prepends a final text to a comment that Keep has written. Without one it has no effect.
	Finish(ctx context.Context, number int64, c KeptComment) error
	// SetStatus sets the status of the newest commit of a pull request.
	SetStatus(ctx context.Context, in *Incoming, s CommitStatus) error
	// MaxBody returns the length of the longest text that Keep accepts, see Host.
	MaxBody() int
}

// talker is what kinds of hosts do each in its own way.
type talker interface {
	getIncomingRequest(ctx context.Context, number int64) (*Incoming, error)
	// listPostedComments returns the comments on a pull request, the oldest first, as far as they can be written by
	// users.
	listPostedComments(ctx context.Context, number int64) ([]comment, error)
	readComment(ctx context.Context, number int64, id string) (*comment, error)
	// writeComment writes the text of a comment; was is nil for a new one.
	writeComment(ctx context.Context, number int64, was *comment, text string) (*comment, error)
	setStatus(ctx context.Context, in *Incoming, s CommitStatus) error
	keyOfMarks() []byte
}

// comment is one comment on a pull request as a host knows it.
type comment struct {
	id, author, text string
	// version is Bitbucket Data Center's.
	version int
}

// OpenConversation returns the conversation of a repository at a host. It does not contact the host; the first call
// does.
func OpenConversation(o Options) (Conversation, error) {
	h, err := Open(o)
	if err != nil {
		return nil, err
	}
	r, ok := h.(*repository)
	if !ok {
		return nil, errors.New("the host takes no comments")
	}
	t, ok := r.kind.(talker)
	if !ok {
		return nil, errors.New("the host takes no comments")
	}
	return &conversation{t, r}, nil
}

// conversation implements Conversation for all kinds.
type conversation struct {
	talker
	host *repository
}

// MaxBody implements Conversation. Room for the mark is left.
func (c *conversation) MaxBody() int { return c.host.body - markRoom }

var commitName = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Incoming implements Conversation.
func (c *conversation) Incoming(ctx context.Context, number int64) (*Incoming, error) {
	in, err := c.getIncomingRequest(ctx, number)
	switch {
	case err != nil:
		return nil, err
	case in.Number != number || in.Base == "":
		return nil, errNoPullRequest
	case in.State == StateOpen && !commitName.MatchString(in.HeadCommit):
		return nil, fmt.Errorf("the host does not tell the newest commit of pull request %d", number)
	}
	in.Fork = in.Fork || in.Head == ""
	return in, nil
}

// maxStatusText is the maximum length of a status description: GitHub accepts 140 characters, others more.
const maxStatusText = 140

// SetStatus implements Conversation.
func (c *conversation) SetStatus(ctx context.Context, in *Incoming, s CommitStatus) error {
	if runes := []rune(s.Description); len(runes) > maxStatusText {
		s.Description = string(runes[:maxStatusText-1]) + "…"
	}
	return c.setStatus(ctx, in, s)
}
