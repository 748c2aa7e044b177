// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/fault"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// attempt is one try to preview one pull request.
type attempt struct {
	p       *Previewer
	log     *slog.Logger
	one     *status.Preview // as it is to be stored
	began   time.Time       // of the event
	conv    pullrequest.Conversation
	in      *pullrequest.Incoming
	entries []catalog.Entry
	// listed are the references of the repository as each secret shows them.
	listed map[string]git.Refs
	// unproven is why it is not known whether the head is a branch of the repository.
	unproven error
	// dropped reports whether its record should be dropped, again whether it should restart at once.
	dropped, again bool
}

// laterError is about something that may go well later.
type laterError struct{ error }

func (e laterError) Unwrap() error { return e.error }

// Bounds of an attempt.
const (
	// hostTimeout bounds calls to the host.
	hostTimeout = 2 * time.Minute
	// hostSteps are more than the steps of an attempt that may take as long each: asking, listing, finding the branch,
	// and telling twice.
	hostSteps = 7
	// fetchTries is how often a failed fetch is retried before it is reported.
	fetchTries = 3
	// maxTries is how often a host is asked that does not answer.
	maxTries = 8
)

// previewPullRequest previews one pull request, unless another process is doing so, and stores the outcome. It reports
// whether anything was done.
func (p *Previewer) previewPullRequest(ctx context.Context, one *status.Preview) bool {
	key := one.Key()
	log := p.Log.With("id", one.Cause, "preview", key)
	unlock, ok, err := p.Queue.TryLock(ctx, "preview/"+key)
	if err != nil || !ok {
		if err != nil && ctx.Err() == nil {
			log.Warn("a preview is tried again", "error", err)
		}
		return false
	}
	defer unlock()
	// Another process may have done it since this one has heard of it.
	if one, err = p.Store.LoadPreview(ctx, key); err != nil || one == nil || one.Wanted.IsZero() || isEarly(one, time.Now()) {
		return false
	}
	before := *one
	a := &attempt{p: p, log: log, one: one, began: one.Wanted}
	step := watchdog.Step{Name: watchdog.StepRender, Subject: "preview " + key,
		Limit: a.longestPipelineTimeout() + hostSteps*hostTimeout}
	_, err = watchdog.Run(ctx, p.Watchdog, step, func(ctx context.Context) (struct{}, error) { return struct{}{}, a.runSafely(ctx) })
	if errors.Is(err, watchdog.ErrOverdue) {
		a = &attempt{p: p, log: log, one: &before, began: before.Wanted} // the other is still at it
	}
	if cause := context.Cause(ctx); errors.Is(cause, errMakeWay) {
		log.Debug("a preview was stopped", "because", cause)
		a.one.Ended = time.Now().UTC()
		a.one.NotBefore = a.one.Ended.Add(pauseForks)
	} else if ctx.Err() != nil {
		return true // it begins again after the next start
	} else {
		a.scheduleRetry(err)
	}
	return a.saveState(context.WithoutCancel(ctx))
}

// longestPipelineTimeout returns how long the rendering of one preview may take: the longest timeout of its pipelines.
func (a *attempt) longestPipelineTimeout() time.Duration {
	limit := v1alpha1.DefaultPreviewTimeout
	for i, e := range a.p.entriesOf(a.one) {
		if timeout := e.Pipeline.Spec.Preview.Timeout.Duration; i == 0 || timeout > limit {
			limit = timeout
		}
	}
	return limit
}

func (a *attempt) runSafely(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Recovered(r)
			a.log.Error("a preview has panicked", "error", err, "stack", string(debug.Stack()))
		}
	}()
	return a.reconcilePullRequest(ctx)
}

// scheduleRetry sets when it is retried.
func (a *attempt) scheduleRetry(err error) {
	a.one.Ended, a.one.HostAfter = time.Now().UTC(), time.Time{}
	if err == nil {
		a.one.Tries, a.one.NotBefore = 0, (time.Time{})
		if a.again {
			a.one.NotBefore = a.one.Ended
		}
		return
	}
	wait, temporary := pullrequest.Retry(err)
	if wait > 0 {
		a.one.HostAfter = a.one.Ended.Add(wait)
	}
	if later := (laterError{}); errors.As(err, &later) {
		temporary = true
	}
	if a.one.Tries++; !temporary || a.one.Tries >= maxTries {
		a.log.Warn("a pull request cannot be previewed until something becomes of it", "error", err)
		a.one.Failed, a.one.Message, a.one.Tries, a.one.NotBefore = true, status.OneLine(err.Error()), 0, time.Time{}
		return
	}
	wait = max(wait, queue.Backoff(a.one.Tries, a.one.Key()))
	a.one.NotBefore = a.one.Ended.Add(wait)
	a.log.Info("a preview is tried again", "after", wait, "error", err)
}

// saveState stores the current state, and reports whether it is stored. Requests made since are kept.
func (a *attempt) saveState(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	for try := 0; try < maxTries; try++ {
		err := a.p.Store.ChangePreview(ctx, a.one.Key(), func(now *status.Preview) *status.Preview {
			newer := now != nil && !now.Wanted.Equal(a.began)
			out := *a.one
			switch {
			case newer:
				out.Wanted, out.Cause, out.NotBefore, out.Tries = now.Wanted, now.Cause, now.NotBefore, now.Tries
				if out.NotBefore.Before(out.HostAfter) {
					out.NotBefore = out.HostAfter
				}
				if isPaused(&out) && out.NotBefore.Before(out.Ended.Add(pauseForks)) {
					out.NotBefore = out.Ended.Add(pauseForks)
				}
			case a.dropped, now == nil:
				return nil
			case a.one.NotBefore.IsZero():
				out.Wanted = time.Time{}
			}
			return &out
		})
		if err == nil {
			_ = a.p.Store.Sync(ctx) // or it would be taken for one that is to begin
			return true
		}
		if !errors.Is(err, queue.ErrChanged) {
			a.log.Warn("what became of a preview was not stored; it begins again", "error", err)
			return false
		}
	}
	return false
}

// reconcilePullRequest asks the host what became of the pull request, and does what follows of that.
func (a *attempt) reconcilePullRequest(ctx context.Context) error {
	all := a.p.entriesOf(a.one)
	if len(all) == 0 {
		a.dropped = true
		return a.forgetFetchedCommits(ctx, 0)
	}
	if err := a.fetchPullRequest(ctx, all[0].Pipeline); err != nil {
		if !pullrequest.IsNotFound(err) {
			return err
		}
		a.log.Warn("a pull request was deleted, or the credential may not read it", "error", err)
		a.dropped = true
		return a.forgetFetchedCommits(ctx, 0)
	}
	if a.in.State != pullrequest.StateOpen {
		return a.finishClosedPreview(ctx, map[pullrequest.State]string{pullrequest.StateMerged: "merged", pullrequest.StateClosed: "closed"}[a.in.State])
	}
	if err := a.checkOwn(ctx, all); err != nil {
		return err
	}
	if a.in.Fork && !a.one.Fork {
		a.one.Fork, a.again = true, true // those from the repository itself go first
		return nil
	}
	var err error
	if a.entries, err = a.pipelinesTargetedBy(ctx, all); err != nil {
		return err
	}
	if len(a.entries) == 0 {
		return a.finishClosedPreview(ctx, "no longer one to a branch that is rendered")
	}
	if a.one.Head == a.in.HeadCommit && a.one.Base == a.in.Base && a.one.Pending == "" && !a.one.Failed {
		return nil // it was reported already; a failed one may succeed by now
	}
	return a.renderAndReport(ctx)
}

// fetchPullRequest opens the host and asks for the pull request.
func (a *attempt) fetchPullRequest(ctx context.Context, p *v1alpha1.RenderPipeline) (err error) {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	if a.conv, err = a.p.Host(ctx, p); err != nil {
		return err
	}
	if a.in, err = a.conv.Incoming(ctx, a.one.Number); err == nil {
		a.one.URL = a.in.URL
	}
	return err
}

// pipelinesTargetedBy returns the pipelines that follow the branch which the pull request targets, and that accept it
// if it is from a fork.
func (a *attempt) pipelinesTargetedBy(ctx context.Context, all []catalog.Entry) (out []catalog.Entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	for _, e := range all {
		ref := e.Pipeline.Spec.Source.Git.Ref
		branch := ref.Branch
		if branch == "" {
			branch = strings.TrimPrefix(ref.Name, "refs/heads/")
		}
		if branch == "" {
			refs, err := a.listReferencesOnce(ctx, e)
			if err != nil {
				return nil, err
			}
			branch = strings.TrimPrefix(refs.Default, "refs/heads/")
		}
		if branch == a.in.Base && (!a.in.Fork || e.Pipeline.Spec.Preview.Forks == v1alpha1.ForksWithoutSecrets) {
			out = append(out, e)
		}
	}
	return out, nil
}

// renderAndReport renders, compares and reports.
func (a *attempt) renderAndReport(ctx context.Context) error {
	if err := a.reportPendingPreview(ctx); err != nil {
		return err
	}
	limit := a.longestPipelineTimeout()
	rendering, cancel := context.WithTimeout(ctx, limit)
	found := a.renderAllPipelines(rendering)
	late := rendering.Err() != nil
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if late {
		found.failures = append(found.failures, fmt.Sprintf("the preview took longer than %s, waiting for a renderer included", limit))
	}
	if found.unread != nil && a.one.Tries < fetchTries {
		return laterError{found.unread}
	}
	if err := a.writeCommentAndStatus(ctx, found); err != nil {
		return err
	}
	a.one.Head, a.one.Base, a.one.Pending = a.in.HeadCommit, a.in.Base, ""
	if late || found.unread != nil {
		a.one.Head = "" // it was not seen
	}
	a.one.Failed, a.one.Message = found.hasFailures(), found.summaryLine()
	a.log.Info("previewed", "pull request", a.in.URL, "head", a.in.HeadCommit, "fork", a.in.Fork, "pipelines",
		len(a.entries), "message", a.one.Message)
	return a.forgetFetchedCommits(ctx, keepFetched)
}

// reportPendingPreview reports on the pull request that a preview is under way.
func (a *attempt) reportPendingPreview(ctx context.Context) error {
	if !slices.ContainsFunc(a.entries, func(e catalog.Entry) bool { return e.Pipeline.Spec.Preview.Statuses() }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	before, beforeTo := a.one.Pending, a.one.PendingTo
	a.one.Pending, a.one.PendingTo = a.in.HeadCommit, a.in.Base
	err := a.conv.SetStatus(ctx, a.in, a.statusOf(a.in.Base, pullrequest.CommitPending, "rendering what would change"))
	if _, again := pullrequest.Retry(err); err == nil || again || ctx.Err() != nil {
		return err
	}
	a.log.Warn("a pending status was refused", "error", err)
	a.one.Pending, a.one.PendingTo = before, beforeTo
	return nil
}

// finishClosedPreview ends the preview of a pull request that is not open, or concerns no pipeline any more. The
// comment stays, with a last word.
func (a *attempt) finishClosedPreview(ctx context.Context, became string) error {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	// After a crash in between, the comment of a reopened pull request must not be assumed to have its previous
	// content.
	if err := a.forgetHead(ctx); err != nil {
		return laterError{err}
	}
	word := fmt.Sprintf("_This pull request is %s. What follows is the last preview, and is not kept up to date._",
		became)
	comment := pullrequest.KeptComment{Name: commentName(a.one.Namespace), Text: word, Known: a.one.Comment}
	if err := a.retryableErrorOnly(ctx, a.conv.Finish(ctx, a.one.Number, comment)); err != nil {
		return err
	}
	if a.one.Pending != "" {
		in := *a.in
		in.HeadCommit = a.one.Pending
		last := a.statusOf(cmp.Or(a.one.PendingTo, in.Base), pullrequest.CommitFailure,
			"the pull request is "+became+"; nothing was previewed")
		if err := a.retryableErrorOnly(ctx, a.conv.SetStatus(ctx, &in, last)); err != nil {
			return err
		}
	}
	a.dropped = true
	return a.forgetFetchedCommits(ctx, 0)
}

// retryableErrorOnly returns an error that may not come again, and logs others, which are no reason to keep what is
// known of a pull request.
func (a *attempt) retryableErrorOnly(ctx context.Context, err error) error {
	if _, again := pullrequest.Retry(err); err == nil || again || ctx.Err() != nil {
		return err
	}
	a.log.Warn("a last word on a pull request was refused", "error", err)
	return nil
}

// forgetHead stores that no head is previewed.
func (a *attempt) forgetHead(ctx context.Context) error {
	if a.one.Head == "" {
		return nil
	}
	a.one.Head = ""
	return a.p.Store.ChangePreview(ctx, a.one.Key(), func(now *status.Preview) *status.Preview {
		if now != nil {
			now.Head = ""
		}
		return now
	})
}

// keepFetched is how many commits are kept of a pull request that is open, to fetch only what is new in the next.
const keepFetched = 2

// forgetFetchedCommits lets go of all commits that were fetched but the newest.
func (a *attempt) forgetFetchedCommits(ctx context.Context, keep int) error {
	n := len(a.one.Fetched) - keep
	if n <= 0 {
		return nil
	}
	old := a.one.Fetched[:n]
	urls := []string{a.one.Repository}
	for _, e := range a.p.entriesOf(a.one) {
		if url := e.Pipeline.Spec.Source.Git.URL; !slices.Contains(urls, url) {
			urls = append(urls, url)
		}
	}
	for _, url := range urls {
		for _, fetcher := range []interface {
			Forget(ctx context.Context, url string, commits ...string) error
		}{a.p.Heads, a.p.Forks.Fetcher} {
			if err := fetcher.Forget(ctx, url, old...); err != nil {
				a.log.Warn("commits of a pull request are kept for longer", "error", err)
			}
		}
	}
	a.one.Fetched = slices.Clone(a.one.Fetched[n:])
	return nil
}
