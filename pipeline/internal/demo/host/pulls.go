// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// pull is a pull request. The lock of its repository guards it.
type pull struct {
	number        int64
	title, body   string
	head, base    string
	headCommit    string // when it was decided
	mergeCommit   string
	merged        bool
	version       int
	labels        []int64
	created, last time.Time
	closed        time.Time // zero while it is open
}

type label struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

type comment struct {
	ID      int64     `json:"id"`
	Body    string    `json:"body"`
	Created time.Time `json:"created_at"`
	User    user      `json:"user"`

	number int64
}

type user struct {
	Login string `json:"login"`
}

type status struct {
	Context     string    `json:"context"`
	Status      string    `json:"status"`
	Description string    `json:"description"`
	Updated     time.Time `json:"updated_at"`
}

// author is the user that has the token.
const author = "prerig"

var (
	errNotFound = errors.New("no such pull request")
	errNotOpen  = errors.New("the pull request is not open")
	errBehind   = errors.New("the branch is behind the one that it goes to; Prerig updates it in a moment")
	errChanged  = errors.New("the pull request has changed meanwhile; read it again")
)

func (p *pull) isOpen() bool { return p.closed.IsZero() }

// state returns open, merged or closed.
func (p *pull) state() string {
	switch {
	case p.isOpen():
		return "open"
	case p.merged:
		return "merged"
	}
	return "closed"
}

// pullOf returns a pull request by its number, or nil.
func (r *Repository) pullOf(number int64) *pull {
	if number < 1 || number > int64(len(r.pulls)) {
		return nil
	}
	return r.pulls[number-1]
}

// commitOf returns the newest commit of a pull request.
func (r *Repository) commitOf(p *pull) string {
	if p.isOpen() {
		if commit := r.head(p.head); commit != "" {
			return commit
		}
	}
	return p.headCommit
}

// open makes a pull request.
func (r *Repository) open(title, body, head, base string, labels []int64) (*pull, error) {
	commit := r.head(head)
	r.mu.Lock()
	defer r.mu.Unlock()
	if commit == "" || r.head(base) == "" || head == base || title == "" {
		return nil, fmt.Errorf("opening a pull request from %q to %q: both branches must exist, and it needs a title", head, base)
	}
	for _, p := range r.pulls {
		if p.isOpen() && p.head == head && p.base == base {
			return nil, fmt.Errorf("opening a pull request from %q to %q: number %d is open", head, base, p.number)
		}
	}
	now := time.Now()
	p := &pull{number: int64(len(r.pulls) + 1), title: title, body: body, head: head, base: base, headCommit: commit,
		labels: labels, created: now, last: now}
	r.pulls = append(r.pulls, p)
	r.announcePull(p, "opened")
	return p, nil
}

// Merge merges a pull request as a person does, or at a given head as the API does.
func (r *Repository) Merge(number int64, head, who string) error {
	r.pushing.Lock()
	defer r.pushing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pullOf(number)
	switch {
	case p == nil:
		return errNotFound
	case !p.isOpen():
		return errNotOpen
	}
	commit, base := r.commitOf(p), r.head(p.base)
	if head != "" && head != commit {
		return errChanged
	}
	if _, err := r.Git(r.host.ctx, "merge-base", "--is-ancestor", base, commit); err != nil {
		return errBehind
	}
	message := fmt.Sprintf("Merge pull request #%d: %s", number, p.title)
	made, err := commitAs(r.host.ctx, r.Bare, who, "commit-tree", "-p", base, "-p", commit, "-m", message,
		commit+"^{tree}")
	if err == nil {
		_, err = r.Git(r.host.ctx, "update-ref", "refs/heads/"+p.base, made, base)
	}
	if err != nil {
		return fmt.Errorf("merging pull request %d: %w", number, err)
	}
	p.merged, p.mergeCommit, p.headCommit, p.closed = true, made, commit, time.Now()
	p.last = p.closed
	r.announcePush(p.base, base, made)
	r.announcePull(p, "closed")
	return nil
}

// commitAs runs git in a repository as a user who commits, and returns its output.
func commitAs(ctx context.Context, dir, who string, args ...string) (string, error) {
	mail := strings.ToLower(who) + "@example.com"
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = dir
	command.Env = append(testbed.Environment(), "GIT_AUTHOR_NAME="+who, "GIT_AUTHOR_EMAIL="+mail,
		"GIT_COMMITTER_NAME="+who, "GIT_COMMITTER_EMAIL="+mail)
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err
}

// Reject closes a pull request without merging it.
func (r *Repository) Reject(number int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pullOf(number)
	switch {
	case p == nil:
		return errNotFound
	case !p.isOpen():
		return errNotOpen
	}
	p.headCommit = r.commitOf(p)
	p.closed = time.Now()
	p.last = p.closed
	r.announcePull(p, "closed")
	return nil
}

// Open returns the numbers of the open pull requests, oldest first.
func (r *Repository) Open() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []int64
	for _, p := range r.pulls {
		if p.isOpen() {
			out = append(out, p.number)
		}
	}
	return out
}

// Title returns the title of a pull request, or "" if there is none of that number.
func (r *Repository) Title(number int64) string {
	return r.read(number, func(p *pull) string { return p.title })
}

// Body returns the description of a pull request, or "" if there is none of that number.
func (r *Repository) Body(number int64) string {
	return r.read(number, func(p *pull) string { return p.body })
}

// Head returns the branch that a pull request is from, or "" if there is none of that number.
func (r *Repository) Head(number int64) string {
	return r.read(number, func(p *pull) string { return p.head })
}

func (r *Repository) read(number int64, get func(p *pull) string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pullOf(number); p != nil {
		return get(p)
	}
	return ""
}

// SetStatus sets the status of a commit: pending, success or failure.
func (r *Repository) SetStatus(commit, name, state, description string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := slices.DeleteFunc(r.statuses[commit], func(one status) bool { return one.Context == name })
	kept = append(kept, status{Context: name, Status: state, Description: description, Updated: time.Now()})
	slices.SortFunc(kept, func(a, b status) int { return strings.Compare(a.Context, b.Context) })
	r.statuses[commit] = kept
}

// announcePull delivers an event about a pull request.
func (r *Repository) announcePull(p *pull, action string) {
	r.host.deliver("pull_request", map[string]any{
		"action": action, "number": p.number, "pull_request": r.answerOf(p), "repository": r.described(),
	})
}

// deliverOnce reports whether the receiver has taken an event.
func (h *Host) deliverOnce(url, kind, signature string, body []byte) bool {
	request, err := http.NewRequestWithContext(h.ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return true // it would never succeed
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "X-Gitea-Event": kind, "X-Gitea-Delivery": testbed.RandomKey(),
		"X-Gitea-Signature": signature,
	} {
		request.Header.Set(key, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode < http.StatusInternalServerError
}
