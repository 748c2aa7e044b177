// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pulltest

import (
	"context"
	"net/http"
	"slices"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// Further calls, as passed to Before and After.
const (
	Checks   = "Checks"
	Opinions = "Opinions"
	Merge    = "Merge"
)

var _ pullrequest.Merger = (*Host)(nil)

// Say sets a check of a commit.
func (h *Host) Say(commit, name string, state pullrequest.CheckState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.checks == nil {
		h.checks = map[string][]pullrequest.Check{}
	}
	all := slices.DeleteFunc(h.checks[commit], func(c pullrequest.Check) bool { return c.Name == name })
	h.checks[commit] = append(all, pullrequest.Check{Name: name, State: state})
}

// Approve is a person's approval of what a pull request holds.
func (h *Host) Approve(number int64, who string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.approved == nil {
		h.approved = map[string][]string{}
	}
	commit := h.requestAsAnswered(&h.requests[number-1]).HeadCommit
	h.approved[commit] = append(h.approved[commit], who)
}

// Checks implements pullrequest.Merger.
func (h *Host) Checks(ctx context.Context, commit string) (out []pullrequest.Check, err error) {
	err = h.callWithInjectedFailures(ctx, Checks, func() error {
		out = slices.Clone(h.checks[commit])
		return nil
	})
	return out, err
}

// Opinions implements pullrequest.Merger.
func (h *Host) Opinions(ctx context.Context, number int64) (out pullrequest.Opinions, err error) {
	err = h.callWithInjectedFailures(ctx, Opinions, func() error {
		r, err := h.requestByNumber(number)
		if err == nil {
			out.Approved = slices.Clone(h.approved[h.requestAsAnswered(r).HeadCommit])
		}
		return err
	})
	return out, err
}

// Merge implements pullrequest.Merger: Merging makes the commit.
func (h *Host) Merge(ctx context.Context, number int64, commit string, method pullrequest.MergeMethod) (out *pullrequest.Request, err error) {
	err = h.callWithInjectedFailures(ctx, Merge, func() error {
		r, err := h.requestByNumber(number)
		switch {
		case err != nil:
			return err
		case r.State == pullrequest.StateMerged:
			out = h.requestAsAnswered(r)
			return nil
		case r.State != pullrequest.StateOpen:
			return pullrequest.ErrNotOpen
		case h.requestAsAnswered(r).HeadCommit != commit:
			return pullrequest.ErrChanged
		case h.Merging == nil:
			return Failure(http.StatusMethodNotAllowed, "this host does not merge")
		}
		made, err := h.Merging(*h.requestAsAnswered(r), method)
		if err != nil {
			return err
		}
		h.closeWithState(r, pullrequest.StateMerged)
		r.MergeCommit = made
		out = h.requestAsAnswered(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
