// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/prerig/prerig/fn/foreign"
)

// kind is what kinds of hosts do each in its own way.
type kind interface {
	// listPullRequests returns pull requests from a branch of the repository itself to another. All that are open are
	// among them, and of the others the newest.
	listPullRequests(ctx context.Context, head, base string) ([]Request, error)
	getPullRequest(ctx context.Context, number int64) (*Request, error)
	// createPullRequest opens one, with labels if the host accepts them on creation. It may fail, or return the one
	// that is already open.
	createPullRequest(ctx context.Context, head, base string, c Content) (*Request, error)
	// editPullRequest writes title and body, and returns what the pull request is then.
	editPullRequest(ctx context.Context, r *Request, title, body string) (*Request, error)
	// addPullRequestLabels adds labels that are missing.
	addPullRequestLabels(ctx context.Context, r *Request, labels []string) error
	closePullRequest(ctx context.Context, r *Request) error
	postComment(ctx context.Context, number int64, text string) error
}

// limits describes what a kind of host accepts.
type limits struct {
	title, body int
	// labels reports whether pull requests have labels.
	labels bool
	// labelsLater reports whether labels cannot be set on creation.
	labelsLater bool
	// overwrites reports whether creating a second one changes the first, without an error.
	overwrites bool
	// text escapes a body so that the host only displays it. If nil, the body is written unchanged.
	text func(string) string
}

// repository implements Host for all kinds.
type repository struct {
	kind
	limits
}

// MaxBody implements Host.
func (h *repository) MaxBody() int { return h.body }

// LabelsLater implements Host.
func (h *repository) LabelsLater() bool { return h.labelsLater }

// Find implements Host.
func (h *repository) Find(ctx context.Context, head, base string) (*Request, error) {
	all, err := h.listPullRequests(ctx, head, base)
	if err != nil {
		return nil, err
	}
	best := newestOpenRequest(all)
	if best == nil {
		return nil, nil
	}
	return validateAnswer(best, nil)
}

// validateAnswer refuses an answer that is JSON and no pull request, as of something in between.
func validateAnswer(r *Request, err error) (*Request, error) {
	if err != nil {
		return nil, err
	}
	if r.Number <= 0 || r.Head == "" {
		return nil, errNoPullRequest
	}
	r.URL = pageURL(r.URL)
	return r, nil
}

var errNoPullRequest = errors.New("the host's answer is no pull request; is the URL that of the host's API?")

// readPullRequest reads a pull request. An answer about another one would have that one changed.
func (h *repository) readPullRequest(ctx context.Context, number int64) (*Request, error) {
	r, err := validateAnswer(h.getPullRequest(ctx, number))
	if err == nil && r.Number != number {
		return nil, errNoPullRequest
	}
	return r, err
}

// longestURL is the length of the longest URL of a page: those of hosts have some hundred bytes, and state is stored with it.
const longestURL = 2000

// pageURL returns the URL of a page that a host names, or "" where it is none that people can be led to.
func pageURL(text string) string {
	at, err := url.Parse(text)
	isWeb := err == nil && at.Host != "" && at.User == nil && (at.Scheme == "https" || at.Scheme == "http")
	if !isWeb || len(text) > longestURL || strings.ContainsFunc(text, foreign.IsHidden) {
		return ""
	}
	return text
}

// newestOpenRequest returns the open one with the highest number, or otherwise any with the highest; nil if the list is
// empty.
func newestOpenRequest(all []Request) *Request {
	var best *Request
	for i := range all {
		r := &all[i]
		isOpen := r.State == StateOpen
		switch {
		case best == nil, isOpen && best.State != StateOpen, isOpen == (best.State == StateOpen) && r.Number > best.Number:
			best = r
		}
	}
	return best
}

// Create implements Host.
func (h *repository) Create(ctx context.Context, head, base string, c Content) (*Request, error) {
	c, err := h.fitContentToHost(c)
	if err != nil {
		return nil, err
	}
	if h.overwrites {
		if r, err := h.findOpen(ctx, head, base); r != nil || err != nil {
			return r, err
		}
	}
	r, err := validateAnswer(h.createPullRequest(ctx, head, base, c))
	if err != nil {
		if e := (*Error)(nil); errors.As(err, &e) && mayBeThere(e.Status) {
			// Kinds of hosts and their versions report an existing one in many ways.
			if there, _ := h.findOpen(ctx, head, base); there != nil {
				return there, nil
			}
		}
		return nil, err
	}
	if err := h.addLabels(ctx, r, c.Labels); err != nil {
		return nil, err
	}
	return r, nil
}

// mayBeThere reports whether a host may return this status because a pull request is already open.
func mayBeThere(status int) bool {
	return slices.Contains([]int{http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity}, status)
}

func (h *repository) findOpen(ctx context.Context, head, base string) (*Request, error) {
	r, err := h.Find(ctx, head, base)
	if err != nil || r == nil || r.State != StateOpen {
		return nil, err
	}
	return r, nil
}

// Update implements Host.
func (h *repository) Update(ctx context.Context, number int64, c Content) (*Request, error) {
	c, err := h.fitContentToHost(c)
	if err != nil {
		return nil, err
	}
	r, err := h.readPullRequest(ctx, number)
	if err != nil {
		return nil, err
	}
	if c.From != nil && (!sameText(r.Title, c.From.Title) || !sameText(r.Body, c.From.Body)) {
		return nil, fmt.Errorf("writing pull request %d: %w", number, ErrChanged)
	}
	// The body may list the labels that were added, so it is written after them: an interrupted update is repeated.
	if err := h.addLabels(ctx, r, c.Labels); err != nil {
		return nil, err
	}
	if !sameText(r.Title, c.Title) || !sameText(r.Body, c.Body) {
		labels := r.Labels
		if r, err = validateAnswer(h.editPullRequest(ctx, r, c.Title, c.Body)); err != nil {
			return nil, err
		}
		r.Labels = slices.Concat(r.Labels, missingLabels(labels, r.Labels))
	}
	return r, nil
}

// addLabels adds what is missing to a pull request and to what is known of it.
func (h *repository) addLabels(ctx context.Context, r *Request, wanted []string) error {
	add := missingLabels(wanted, r.Labels)
	if len(add) == 0 || !h.labels {
		return nil
	}
	if err := h.addPullRequestLabels(ctx, r, add); err != nil {
		return err
	}
	r.Labels = slices.Concat(r.Labels, add)
	return nil
}

// Close implements Host. The comment comes last: a crash in between loses it, and never writes it twice.
func (h *repository) Close(ctx context.Context, number int64, comment string) error {
	r, err := h.readPullRequest(ctx, number)
	if err != nil || r.State != StateOpen {
		return err
	}
	if err := h.closePullRequest(ctx, r); err != nil {
		return err
	}
	if comment == "" {
		return nil
	}
	return h.postComment(ctx, number, h.safeText(comment))
}

// fitContentToHost adapts the content to what the host accepts.
func (h *repository) fitContentToHost(c Content) (Content, error) {
	c.Title = strings.Join(strings.Fields(c.Title), " ")
	if c.Title == "" {
		return c, errors.New("a pull request needs a title")
	}
	if n := longestCountedLength(c.Title); n > h.title {
		for longestCountedLength(c.Title) > h.title-1 {
			c.Title = strings.TrimSuffix(c.Title, lastRune(c.Title))
		}
		c.Title = strings.TrimSpace(c.Title) + "…"
	}
	c.Body = h.safeText(c.Body)
	if n := longestCountedLength(c.Body); n > h.body {
		return c, fmt.Errorf("the body of the pull request has %d characters, and the host takes %d", n, h.body)
	}
	return c, nil
}

func (h *repository) safeText(text string) string {
	if h.text == nil {
		return text
	}
	return h.text(text)
}

func lastRune(s string) string {
	runes := []rune(s)
	return string(runes[len(runes)-1])
}

// longestCountedLength counts as those hosts count that count most.
func longestCountedLength(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// sameText reports whether a host shows two texts alike: it may keep other ends of lines, and none at the end.
func sameText(a, b string) bool {
	return normalText(a) == normalText(b)
}

func normalText(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n"))
}
