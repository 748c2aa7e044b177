// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package pullrequest opens, updates and closes pull requests at Git hosts, and reads their state. It is stateless:
// all it returns was requested from the host. Tests of code built upon it use pipeline/internal/pulltest.
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

// Request is a pull request (GitLab: a merge request) as returned by a host. Fields that the host does not return
// are empty.
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
	// Title is one line; it is cut to what the host accepts.
	Title string
	// Body is Markdown. A body longer than MaxBody is an error.
	Body string
	// Labels are added if missing; other labels stay. They are omitted on Bitbucket, which has no labels.
	Labels []string
	// From is the pull request as read before this content was derived from it. If a person has changed its title
	// or body since, Update writes neither, and the error is [ErrChanged]. nil overwrites the current content.
	From *Request
}

// ErrChanged is returned for a pull request that was changed since it was read.
var ErrChanged = errors.New("another writer has changed the pull request meanwhile")

// Host is one repository at a Git host. Its errors are of type *[Error] where the host or the way to it is the cause. It is safe for
// concurrent use.
type Host interface {
	// Find returns the newest pull request from the branch head to base, open ones before closed and merged ones,
	// or nil if none exists. Branches of forks are different branches, whatever their names.
	Find(ctx context.Context, head, base string) (*Request, error)
	// Create opens a pull request. One that is open already is returned as it is, and is no error.
	Create(ctx context.Context, head, base string, c Content) (*Request, error)
	// Update writes the differences, and makes no write call without one.
	Update(ctx context.Context, number int64, c Content) (*Request, error)
	// Close closes a pull request, with a comment unless that is "". One that is closed or merged already is no error, and gets no
	// comment. The branch stays.
	Close(ctx context.Context, number int64, comment string) error
	// MaxBody returns the length of the longest body that the host accepts. Hosts count characters, and some count
	// those outside of the Basic Multilingual Plane twice: a limit in bytes is always safe.
	MaxBody() int
	// LabelsLater reports whether a pull request is opened without its labels, which another call adds: what is interrupted in between
	// leaves one without them.
	LabelsLater() bool
}

// missingLabels returns the wanted labels that do not exist.
func missingLabels(wanted, there []string) []string {
	var out []string
	for _, label := range wanted {
		if !slices.Contains(there, label) && !slices.Contains(out, label) {
			out = append(out, label)
		}
	}
	return out
}
