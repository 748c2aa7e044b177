// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Hosts opens the host of an entry's pull requests, for a pipeline in a namespace.
type Hosts func(ctx context.Context, namespace string, to *v1alpha1.GitPublish) (pullrequest.Host, error)

// NewHosts returns what opens hosts with the secrets of entries. The dialer connects to them.
func NewHosts(secrets secret.Reader, dialer *egress.Dialer) Hosts {
	return func(ctx context.Context, namespace string, to *v1alpha1.GitPublish) (pullrequest.Host, error) {
		want := to.PullRequest
		_, at, err := pullrequest.Address(want.Provider, to.URL, want.URL)
		if err != nil {
			return nil, fmt.Errorf("finding the host of pull requests: %w", err)
		}
		keys, err := secret.Read(ctx, secrets, namespace, want.SecretRef, secret.At(at))
		if err != nil {
			return nil, err
		}
		credentials, err := pullrequest.ReadCredentials(keys)
		if err != nil {
			return nil, fmt.Errorf("reading the secret %s: %w", want.SecretRef.Name, err)
		}
		return pullrequest.Open(pullrequest.Options{
			Provider: want.Provider, Repository: to.URL, API: want.URL, Credentials: credentials, Dialer: dialer,
			IsFor: func(ctx context.Context, url string) error {
				_, err := secret.Read(ctx, secrets, namespace, want.SecretRef, secret.At(url))
				return err
			},
		})
	}
}

// pullTarget is a directory on a branch that is written by pull requests.
type pullTarget struct {
	*gitTarget
	host pullrequest.Host // nil where it is only looked at what is published
}

func (t *Targets) openPullRequest(ctx context.Context, g *gitTarget) (Interface, error) {
	target := &pullTarget{gitTarget: g}
	if t.readOnly {
		return target, nil
	}
	if t.Hosts == nil {
		return nil, errors.New("this process opens no pull requests")
	}
	var err error
	target.host, err = t.Hosts(ctx, g.namespace, g.to.Git)
	return target, err
}

// requestFrom is the pull request from a head.
func (t *pullTarget) requestFrom(head string) *PullRequest {
	want := t.to.Git.PullRequest
	p := &PullRequest{Base: t.branch, Head: head, Host: t.host, Labels: want.Labels,
		OfOneCommit: want.GroupBy == v1alpha1.GroupBySourceCommit}
	if turn := t.targets.Turn; turn != nil && want.Waves != nil {
		p.Turn = func(ctx context.Context, revision string) (Turn, error) { return turn(ctx, t.to.Git, head, revision) }
	}
	return p
}

// Publish implements Interface.
func (t *pullTarget) Publish(ctx context.Context, c Change) (Receipt, error) {
	return t.publishWithWriter(ctx, c, t.proposeChange)
}

// Remove implements Interface: the removal is proposed.
func (t *pullTarget) Remove(ctx context.Context, c Change) (Receipt, error) {
	c.Remove = true
	receipt, _, err := t.proposeChange(ctx, c)
	return receipt, err
}

// proposeChange hands in a change for the pull request of its group, and removes waiting results of its pipeline
// from other pull requests.
func (t *pullTarget) proposeChange(ctx context.Context, c Change) (receipt Receipt, before git.Hash, err error) {
	c.Path = t.to.Directory()
	want := t.to.Git.PullRequest
	head := want.HeadFor(c.Origin.Digest)
	heads := slices.Clone(c.Heads)
	if want.GroupBy == v1alpha1.GroupBySourceCommit {
		for _, one := range c.Heads {
			// Another source commit with the same result changes no waiting result, or was declined.
			if t.headHasChange(ctx, one, c) {
				head = one
			}
		}
		others, err := t.headsOfCommits(ctx)
		if err != nil {
			return receipt, before, err
		}
		heads = append(heads, others...)
	}
	done := t.targets.batcher.submitChange(ctx, t.groupKey()+" "+head, t.Key(), c.Cause, t.requestFrom(head), c)
	if err := errors.Join(done.err, done.outcome.Err); err != nil {
		return receipt, before, err
	}
	slices.Sort(heads)
	for _, other := range slices.Compact(heads) {
		if other == head {
			continue
		}
		leaving := c
		leaving.movesToOtherPullRequest = true
		left := t.targets.batcher.submitChange(ctx, t.groupKey()+" "+other, t.Key(), "", t.requestFrom(other), leaving)
		if left.err != nil && !errors.Is(left.err, ErrEdited) {
			return receipt, before, fmt.Errorf("taking %s out of %s: %w", c.Pipeline, other, left.err)
		}
	}
	receipt = Receipt{Changed: done.result.Changed, Outcome: done.outcome,
		PullRequest: done.result.Waiting.statusOf(c.Pipeline), Held: done.outcome.Held}
	if !receipt.Changed {
		receipt.Outcome = Outcome{Pipeline: c.Pipeline}
	}
	if !done.result.Commit.IsZero() {
		receipt.Revision = done.result.Commit.String()
	}
	return receipt, done.result.Before, nil
}

// headHasChange reports whether a head has exactly the files of a change. What cannot be read has not.
func (t *pullTarget) headHasChange(ctx context.Context, head string, c Change) bool {
	commit, err := t.branch.Mirror.Fetch(ctx, t.branch.Remote, git.Ref{Name: "refs/heads/" + head})
	if err != nil {
		return false
	}
	held, err := Published(tree.NewView(t.branch.Mirror.Tree(commit), t.targets.limits), c.Pipeline)
	if err != nil || c.Remove || len(held.Files) != len(c.Files) {
		return false
	}
	for name, content := range c.Files {
		if now, ok := held.Files[path.Join(c.Path, name)]; !ok || !bytes.Equal(now, content) {
			return false
		}
	}
	return true
}

// headsOfCommits returns the heads that results of commits of the source wait on.
func (t *pullTarget) headsOfCommits(ctx context.Context) ([]string, error) {
	refs, err := t.branch.Remote.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for name := range refs.ByName {
		short := shortReference(name)
		if strings.HasPrefix(short, t.to.Git.PullRequest.Head+"/") {
			out = append(out, short)
		}
	}
	return out, nil
}

// statusOf returns the pull request for a pipeline's status, or nil if no result of it waits.
func (w *Waiting) statusOf(pipeline string) *v1alpha1.PullRequestStatus {
	switch {
	case w == nil || w.State == "":
		return nil
	case w.Pipelines != nil && !w.Pipelines[pipeline]:
		return nil
	}
	s := &v1alpha1.PullRequestStatus{State: w.State, Head: w.Head, Message: w.Message}
	if w.State == v1alpha1.PullRequestWaiting {
		s.Message = "" // it changes with each wave, and is reported where the waves are shown
	}
	if !w.HeadCommit.IsZero() {
		s.HeadCommit = w.HeadCommit.String()
	}
	if !w.BaseCommit.IsZero() {
		s.BaseCommit = w.BaseCommit.String()
	}
	if r := w.Request; r != nil {
		s.Number, s.URL, s.Since = r.Number, r.URL, metav1.NewTime(r.CreatedAt.UTC().Truncate(time.Second))
		if w.State == v1alpha1.PullRequestClosed && !r.ClosedAt.IsZero() {
			s.Since = metav1.NewTime(r.ClosedAt.UTC().Truncate(time.Second))
		}
	}
	return s
}

// Drift implements Interface. Waiting results are not in a place where others could have changed them; commits of
// others on a head are reported by the state of the pull request.
func (t *pullTarget) Drift(ctx context.Context, written Written) (string, error) {
	if written.PullRequest != nil {
		return "", nil
	}
	return t.gitTarget.Drift(ctx, written)
}

// Settle implements Interface.
func (t *pullTarget) Settle(ctx context.Context, pipeline string,
	written Written) (*v1alpha1.PullRequestStatus, error) {
	before := written.PullRequest
	if before == nil || before.Head == "" {
		return nil, nil
	}
	waiting, err := t.targets.looks.shareRecentLook(ctx, t.groupKey()+" "+before.Head, written.Since, func(ctx context.Context) (*Waiting, error) {
		return t.reconcileWithoutResult(ctx, before.Head)
	})
	if err != nil {
		return before, err
	}
	now := waiting.statusOf(pipeline)
	if now == nil && waiting.isLost(before) {
		closed := *before
		now = &closed
		now.State, now.HeadCommit = v1alpha1.PullRequestClosed, ""
		now.Since = metav1.NewTime(waiting.Request.ClosedAt.UTC().Truncate(time.Second))
		now.Message = closedMessage
	}
	return now, nil
}

// isLost reports whether a person has closed the pull request that a result was known to wait in, and has deleted its
// branch.
func (w *Waiting) isLost(before *v1alpha1.PullRequestStatus) bool {
	r := w.Request
	return w.HeadCommit.IsZero() && r != nil && r.State == pullrequest.StateClosed && r.Number == before.Number &&
		!readBody(r.Body).marks.withdrawn
}

// reconcileWithoutResult brings a pull request to where its branches want it, without a new result.
func (t *pullTarget) reconcileWithoutResult(ctx context.Context, head string) (*Waiting, error) {
	locking, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	unlock, err := t.targets.batcher.lock(locking, t.Key())
	if err != nil {
		return nil, err
	}
	defer unlock()
	step := watchdog.Step{Name: watchdog.StepPublish, Subject: t.Key() + " " + head, Limit: publishTimeout}
	result, err := watchdog.Run(ctx, t.targets.watchdog, step, func(ctx context.Context) (Result, error) {
		return publishSafely(ctx, t.requestFrom(head), nil)
	})
	return result.Waiting, err
}

// publishedToEntry is what a state knows of what was published to an entry.
func publishedToEntry(state *status.State, to v1alpha1.Publish, since time.Time) Written {
	written := Written{Record: state.Seen.Targets[to.Target()], Since: since}
	for _, one := range state.Status.Published {
		if one.Target == to.Target() {
			written.Revision, written.PullRequest = one.Revision, one.PullRequest
		}
	}
	return written
}
