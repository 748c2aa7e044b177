// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package pullrequest opens, updates and closes pull requests at Git hosts, and knows what became of them. It keeps nothing: what it
// says was asked of the host. Tests of what is built upon it use pipeline/internal/pulltest.
package pullrequest

import (
	"context"
	"errors"
	"slices"
	"time"
)

// State is what became of a pull request.
type State string

// States of a pull request.
const (
	StateOpen   State = "Open"
	StateClosed State = "Closed" // and not merged
	StateMerged State = "Merged"
)

// Request is a pull request (GitLab: a merge request) as a host knows it. What a host does not tell is empty.
type Request struct {
	// Number is what people call it by; URL is its page.
	Number int64
	URL    string
	State  State
	// Head and Base are the names of branches, without refs/heads/. HeadCommit is the newest commit of Head that the host has seen,
	// MergeCommit what merging made of it.
	Head, Base, HeadCommit, MergeCommit string
	Title, Body                         string
	Labels                              []string
	Draft                               bool
	CreatedAt, UpdatedAt                time.Time
	// ClosedAt is when it was closed or merged; zero while it is open.
	ClosedAt time.Time
	// Author is the name by which the host knows who opened it.
	Author string
	// version is the host's own of the body, nil where it has none.
	version *int
}

// Content is what Prerig writes of a pull request.
type Content struct {
	// Title is one line; what is longer than the host takes is cut.
	Title string
	// Body is Markdown. A body longer than MaxBody is an error.
	Body string
	// Labels are added where they are missing, and others stay. Bitbucket has no labels; they are left out there.
	Labels []string
	// From is what was read of the pull request before this was made of it. Where its title or body is another by now, as a person has
	// changed it, Update writes neither, and the error is [ErrChanged]. nil overwrites whatever there is.
	From *Request
}

// ErrChanged is about a pull request that somebody has changed since it was read.
var ErrChanged = errors.New("somebody has changed the pull request meanwhile")

// Host is one repository at a Git host. Its errors are of type *[Error] where the host or the way to it is the cause. It is safe for
// concurrent use.
type Host interface {
	// Find returns the newest pull request from the branch head to base, open ones before closed and merged ones; nil if there is
	// none. Branches of forks are other branches, however they are named.
	Find(ctx context.Context, head, base string) (*Request, error)
	// Create opens a pull request. One that is open already is returned as it is, and is no error.
	Create(ctx context.Context, head, base string, c Content) (*Request, error)
	// Update writes what differs, and calls nothing that writes where nothing does.
	Update(ctx context.Context, number int64, c Content) (*Request, error)
	// Close closes a pull request, with a comment unless that is "". One that is closed or merged already is no error, and gets no
	// comment. The branch stays.
	Close(ctx context.Context, number int64, comment string) error
	// MaxBody is the longest body that the host takes. Hosts count characters, of which some count those outside of the Basic
	// Multilingual Plane twice: who counts bytes is never over it.
	MaxBody() int
	// LabelsLater reports whether a pull request is opened without its labels, which another call adds: what is interrupted in between
	// leaves one without them.
	LabelsLater() bool
}

// missing returns the labels that are wanted and not there.
func missing(wanted, there []string) []string {
	var out []string
	for _, label := range wanted {
		if !slices.Contains(there, label) && !slices.Contains(out, label) {
			out = append(out, label)
		}
	}
	return out
}
