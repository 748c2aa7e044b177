// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package pulltest is a Git host in memory, for tests of code that opens pull requests. Actions of people and
// failures on the way can be injected. The package pullrequest is tested against Gitea itself; this is not part of
// the product.
package pulltest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// Calls, as passed to Before and After.
const (
	Find   = "Find"
	Create = "Create"
	Update = "Update"
	Close  = "Close"
)

// Host is one repository in memory. It is safe for concurrent use.
type Host struct {
	// Before is asked before a call does something: an error is returned in place of it. After is asked when it is done: an error is
	// returned and the answer lost, as when a connection breaks. Both may be nil, and are called without a lock.
	Before, After func(call string) error
	// Limit is MaxBody, 65536 where it is 0.
	Limit int
	// WithoutLabels opens pull requests without labels, and adds them where the answer is not lost.
	WithoutLabels bool
	// Heads returns the newest commit of a branch, or "" for a missing one, from which no pull request can be
	// opened. If nil, the repository has every branch.
	Heads func(branch string) string
	// Merging makes the commit that merges a pull request for Merger.Merge, and moves its base to it. If nil,
	// merging is rejected.
	Merging func(r pullrequest.Request, method pullrequest.MergeMethod) (commit string, err error)

	mu       sync.Mutex
	requests []pullrequest.Request
	comments map[int64][]string
	checks   map[string][]pullrequest.Check // by commits
	approved map[string][]string            // by commits
	calls    map[string]int
	written  int
	clock    time.Time
}

var _ pullrequest.Host = (*Host)(nil)

// Author is who opens pull requests by Create.
const Author = "prerig-bot"

// Failure returns an error as a host does: temporary for 429 and above 499.
func Failure(status int, message string) error {
	return &pullrequest.Error{
		Server: "git.example.com", Repository: "org/app", Doing: "asking", Status: status, Message: message,
		Temporary: status == http.StatusTooManyRequests || status >= 500,
	}
}

// callWithInjectedFailures calls do between the injected failures.
func (h *Host) callWithInjectedFailures(ctx context.Context, call string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.Before != nil {
		if err := h.Before(call); err != nil {
			return err
		}
	}
	h.mu.Lock()
	if h.calls == nil {
		h.calls, h.comments = map[string]int{}, map[int64][]string{}
	}
	h.calls[call]++
	err := do()
	h.mu.Unlock()
	if err == nil && h.After != nil {
		err = h.After(call)
	}
	return err
}

// nextTimestamp returns a time that is later than all before.
func (h *Host) nextTimestamp() time.Time {
	if h.clock.IsZero() {
		h.clock = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	h.clock = h.clock.Add(time.Second)
	return h.clock
}

// requestAsAnswered returns what a host answers about a pull request.
func (h *Host) requestAsAnswered(r *pullrequest.Request) *pullrequest.Request {
	out := *r
	out.Labels = slices.Clone(r.Labels)
	if h.Heads != nil && r.State == pullrequest.StateOpen {
		out.HeadCommit = cmp.Or(h.Heads(r.Head), r.HeadCommit)
	}
	return &out
}

// newestForBranches returns the newest one of two branches, open ones first.
func (h *Host) newestForBranches(head, base string) *pullrequest.Request {
	var best *pullrequest.Request
	for i := range h.requests {
		r := &h.requests[i]
		if r.Head == head && r.Base == base && (best == nil || best.State != pullrequest.StateOpen || r.State == pullrequest.StateOpen) {
			best = r
		}
	}
	return best
}

func (h *Host) requestByNumber(number int64) (*pullrequest.Request, error) {
	if number < 1 || number > int64(len(h.requests)) {
		return nil, Failure(http.StatusNotFound, "Not Found")
	}
	return &h.requests[number-1], nil
}

// Find implements pullrequest.Host.
func (h *Host) Find(ctx context.Context, head, base string) (out *pullrequest.Request, err error) {
	err = h.callWithInjectedFailures(ctx, Find, func() error {
		if r := h.newestForBranches(head, base); r != nil {
			out = h.requestAsAnswered(r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Create implements pullrequest.Host.
func (h *Host) Create(ctx context.Context, head, base string, c pullrequest.Content) (out *pullrequest.Request, err error) {
	err = h.callWithInjectedFailures(ctx, Create, func() error {
		if r := h.newestForBranches(head, base); r != nil && r.State == pullrequest.StateOpen {
			out = h.requestAsAnswered(r)
			return nil
		}
		if err := h.checkContent(c); err != nil {
			return err
		}
		commit := ""
		if h.Heads != nil {
			if commit = h.Heads(head); commit == "" {
				return Failure(http.StatusUnprocessableEntity, "head is invalid")
			}
		}
		number := int64(len(h.requests) + 1)
		now := h.nextTimestamp()
		labels := slices.Clone(c.Labels)
		if h.WithoutLabels {
			labels = nil
		}
		h.requests = append(h.requests, pullrequest.Request{
			Number: number, URL: fmt.Sprintf("https://git.example.com/org/app/pulls/%d", number), State: pullrequest.StateOpen, Head: head, Base: base, HeadCommit: commit,
			Title: c.Title, Body: c.Body, Labels: labels, CreatedAt: now, UpdatedAt: now, Author: Author,
		})
		h.written++
		out = h.requestAsAnswered(&h.requests[number-1])
		return nil
	})
	if err != nil {
		return nil, err
	}
	if h.WithoutLabels {
		h.Edit(out.Number, func(r *pullrequest.Request) { r.Labels = slices.Clone(c.Labels) })
		out.Labels = slices.Clone(c.Labels)
	}
	return out, nil
}

func (h *Host) checkContent(c pullrequest.Content) error {
	if len(c.Body) > h.MaxBody() || c.Title == "" {
		return Failure(http.StatusUnprocessableEntity, "the title or body is refused")
	}
	return nil
}

// Update implements pullrequest.Host.
func (h *Host) Update(ctx context.Context, number int64, c pullrequest.Content) (out *pullrequest.Request, err error) {
	err = h.callWithInjectedFailures(ctx, Update, func() error {
		r, err := h.requestByNumber(number)
		if err != nil {
			return err
		}
		if err := h.checkContent(c); err != nil {
			return err
		}
		if c.From != nil && (r.Title != c.From.Title || r.Body != c.From.Body) {
			return pullrequest.ErrChanged
		}
		labels := slices.Clone(r.Labels)
		for _, label := range c.Labels {
			if !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
		if r.Title != c.Title || r.Body != c.Body || !slices.Equal(r.Labels, labels) {
			r.Title, r.Body, r.Labels, r.UpdatedAt = c.Title, c.Body, labels, h.nextTimestamp()
			h.written++
		}
		out = h.requestAsAnswered(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Close implements pullrequest.Host.
func (h *Host) Close(ctx context.Context, number int64, comment string) error {
	return h.callWithInjectedFailures(ctx, Close, func() error {
		r, err := h.requestByNumber(number)
		if err != nil || r.State != pullrequest.StateOpen {
			return err
		}
		if comment != "" {
			h.comments[number] = append(h.comments[number], comment)
		}
		h.closeWithState(r, pullrequest.StateClosed)
		return nil
	})
}

func (h *Host) closeWithState(r *pullrequest.Request, state pullrequest.State) {
	if h.Heads != nil {
		r.HeadCommit = cmp.Or(h.Heads(r.Head), r.HeadCommit)
	}
	r.State, r.ClosedAt = state, h.nextTimestamp()
	r.UpdatedAt = r.ClosedAt
	h.written++
}

// LabelsLater implements pullrequest.Host.
func (h *Host) LabelsLater() bool { return h.WithoutLabels }

// MaxBody implements pullrequest.Host.
func (h *Host) MaxBody() int { return cmp.Or(h.Limit, 65536) }
