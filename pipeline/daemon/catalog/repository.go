// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/source/git"
)

// Repository is a Git repository with files of pipelines.
type Repository struct {
	// URL of the repository, without credentials; Ref is the full name of what is followed, "" for its default branch; Path
	// is the directory, "" for the root.
	URL, Ref, Path string
	// Open returns the mirror and the remote. It is called each time, because credentials change.
	Open func(ctx context.Context) (*git.Mirror, *git.Remote, error)
	// Interval is how often the repository is looked at without an event; 0 only follows other processes.
	Interval time.Duration
	// Heads is where all processes agree on the commit.
	Heads Heads
}

// Heads keeps the commit that all processes have the pipelines from. status.Heads is one.
type Heads interface {
	// Head returns the stored head and its revision, which is 0 if none is stored.
	Head(ctx context.Context) (status.Head, uint64, error)
	// SaveHead stores the head unless it changed since the revision; otherwise queue.ErrChanged is the cause of the
	// error.
	SaveHead(ctx context.Context, head status.Head, revision uint64) (uint64, error)
}

// gitRepository is a Repository with what this process has of it.
type gitRepository struct {
	Repository

	turn     chan struct{} // a semaphore of readers
	wake     atomic.Bool   // asks for a request to the server now
	waiting  atomic.Int32  // those who wait for it to ask the server
	revision atomic.Uint64 // of the head that was read
	commit   git.Hash      // that the entries are from
}

// readTimeout bounds one look at the server with what it brings.
const readTimeout = time.Minute

// openRepository reads the pipelines. Where the server does not answer, it begins with the commit that was read last, which is in the
// mirror; only without one is it an error.
func (o *origin) openRepository(ctx context.Context) error {
	_, err := o.refreshLocked(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if restored := o.restoreFromMirror(ctx); restored != nil {
		o.catalog.log.Debug("there is no earlier commit of the pipelines to begin with", "error", restored)
		return err
	}
	o.setError(err)
	o.catalog.log.Warn("starting with the pipelines that were read last", "source", o.repo.String(), "revision", o.status().Revision)
	return nil
}

// joinRepository reads the pipelines at the commit that another process uses, or like openRepository if no commit
// is stored yet.
func (o *origin) joinRepository(ctx context.Context) error {
	if _, revision, err := o.repo.Heads.Head(ctx); err != nil || revision == 0 {
		return o.openRepository(ctx)
	}
	return o.followOtherProcess(ctx)
}

// String names the repository for people.
func (r *gitRepository) String() string {
	text := r.URL
	if r.Ref != "" {
		text += " " + r.Ref
	}
	if r.Path != "" {
		text += " " + r.Path
	}
	return text
}

func (r *gitRepository) isAtHead(head status.Head) bool {
	return head.URL == r.URL && head.Ref == r.Ref && head.Path == r.Path && head.Commit != ""
}

// refreshFromServer asks the server for the current commit of the repository and reads it if it has moved. It returns
// the keys that changed, for the caller to act on: functions of OnChange are not called. After an error the state is
// unchanged.
func (o *origin) refreshFromServer(ctx context.Context) (changed []string, err error) {
	// Another caller waiting for the turn will ask the server later than now, which is enough: a hanging server
	// must not hold up one event after the other.
	if o.repo.waiting.Load() > 0 {
		return nil, nil
	}
	return o.refreshLocked(ctx)
}

func (o *origin) refreshLocked(ctx context.Context) (changed []string, err error) {
	r := o.repo
	r.waiting.Add(1)
	done, err := r.acquireReadLock(ctx)
	r.waiting.Add(-1)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	const attempts = 5 // another process may be at it as well
	for try := 1; ; try++ {
		changed, err = o.resolveOnce(ctx)
		if !errors.Is(err, queue.ErrChanged) || try == attempts {
			break
		}
	}
	if err != nil {
		err = r.explainError(err)
	}
	o.reportRead(err)
	return changed, err
}

// acquireReadLock waits for the turn to read, and not longer than ctx lets it: who reads may wait for a server that
// does not answer.
func (r *gitRepository) acquireReadLock(ctx context.Context) (done func(), err error) {
	select {
	case r.turn <- struct{}{}:
		return func() { <-r.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another look at the pipelines of %s: %w", r, ctx.Err())
	}
}

// explainError adds the name of the repository and the configuration key of its credentials.
func (r *gitRepository) explainError(err error) error {
	hint := ""
	if errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed) {
		hint = " (for pipelines it is pipelines_git.secret of the configuration)"
	}
	return fmt.Errorf("reading the pipelines of %s: %w%s", r, err, hint)
}

// resolveOnce does one attempt. The head is loaded before the server is asked, so that of two processes the one that asked
// later wins.
func (o *origin) resolveOnce(ctx context.Context) ([]string, error) {
	r := o.repo
	head, revision, err := r.Heads.Head(ctx)
	if err != nil {
		return nil, err
	}
	mirror, remote, err := r.Open(ctx)
	if err != nil {
		return nil, err
	}
	commit, err := mirror.Fetch(ctx, remote, git.Ref{Name: r.Ref})
	if err != nil {
		return nil, err
	}
	known := r.isAtHead(head) && head.Commit == commit.Hash.String()
	if known && r.commit == commit.Hash {
		r.revision.Store(revision)
		return nil, mirror.Remember(ctx, commit.Hash)
	}
	read, err := readTree(mirror.Tree(commit), r.Path)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", commit.Revision(), err)
	}
	if !known {
		next := status.Head{URL: r.URL, Ref: r.Ref, Path: r.Path, Commit: commit.Hash.String(), Name: commit.Ref, At: time.Now().UTC()}
		if revision, err = r.Heads.SaveHead(ctx, next, revision); err != nil {
			return nil, err
		}
	}
	return o.adoptEntries(read, commit, revision), nil
}

// adoptEntries replaces the entries with those just read.
func (o *origin) adoptEntries(read []Entry, commit *git.Commit, revision uint64) []string {
	changed := o.catalog.replaceEntries(o, read, commit.Revision())
	o.repo.commit = commit.Hash
	o.repo.revision.Store(revision)
	o.catalog.log.Info("read the pipelines", "source", o.repo.String(), "revision", commit.Revision(), "changed", len(changed))
	return changed
}

// followOtherProcess reads the commit that another process has found, where it is not the one that is known here.
func (o *origin) followOtherProcess(ctx context.Context) error {
	changed, err := o.followHead(ctx)
	o.catalog.notifyChanged(changed)
	return err
}

func (o *origin) followHead(ctx context.Context) ([]string, error) {
	r := o.repo
	head, revision, err := r.Heads.Head(ctx)
	if err != nil || revision <= r.revision.Load() {
		return nil, err // no caller has to wait for one that asks the server
	}
	done, err := r.acquireReadLock(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if revision <= r.revision.Load() {
		return nil, nil
	}
	if !r.isAtHead(head) {
		return nil, fmt.Errorf("reading the pipelines of %s: the daemon reads them from %s; give both the same configuration", r,
			(&gitRepository{Repository: Repository{URL: head.URL, Ref: head.Ref, Path: head.Path}}).String())
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	changed, err := o.readHead(ctx, head, revision)
	if err != nil {
		err = r.explainError(err)
	}
	o.reportRead(err)
	return changed, err
}

// readHead reads the commit of a head, or a later one if the server no longer serves it.
func (o *origin) readHead(ctx context.Context, head status.Head, revision uint64) ([]string, error) {
	mirror, remote, err := o.repo.Open(ctx)
	if err != nil {
		return nil, err
	}
	exact := git.Ref{Name: head.Name, Commit: plumbing.NewHash(head.Commit)}
	commit, err := mirror.Kept(exact)
	if err != nil {
		commit, err = mirror.Fetch(ctx, remote, exact)
	}
	if err != nil {
		later, second := mirror.Fetch(ctx, remote, git.Ref{Name: o.repo.Ref})
		if second != nil {
			return nil, err
		}
		commit = later
	}
	if commit.Hash == o.repo.commit {
		o.repo.revision.Store(revision)
		return nil, nil
	}
	read, err := readTree(mirror.Tree(commit), o.repo.Path)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", commit.Revision(), err)
	}
	return o.adoptEntries(read, commit, revision), nil
}

// restoreFromMirror reads the commit that was read last out of the mirror alone.
func (o *origin) restoreFromMirror(ctx context.Context) error {
	r := o.repo
	done, err := r.acquireReadLock(ctx)
	if err != nil {
		return err
	}
	defer done()
	head, revision, err := r.Heads.Head(ctx)
	if err != nil {
		return err
	}
	if !r.isAtHead(head) {
		return errors.New("none is known")
	}
	mirror, _, err := r.Open(ctx)
	if err != nil {
		return err
	}
	commit, err := mirror.Commit(plumbing.NewHash(head.Commit))
	if err != nil {
		return err
	}
	commit.Ref = head.Name
	read, err := readTree(mirror.Tree(commit), r.Path)
	if err != nil {
		return err
	}
	o.adoptEntries(read, commit, revision)
	return nil
}

// followEvery is how often the commit of other processes is looked at.
const followEvery = time.Second

// retryAfter is how long after a first failure the server is asked again.
const retryAfter = 5 * time.Second

// pollAtInterval refreshes once in each interval, sooner after a failure, and follows other processes meanwhile, until
// ctx is done. Without an interval it only follows.
func (o *origin) pollAtInterval(ctx context.Context) {
	interval := o.repo.Interval
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	next, failures := time.Now().Add(interval), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if failures == 0 && o.status().Error != "" {
			failures, next = 1, time.Now().Add(min(interval, retryAfter)) // an event's look, or the first one, has failed
		}
		if interval == 0 || time.Now().Before(next) && !o.repo.wake.Swap(false) {
			_ = o.followOtherProcess(ctx) // it reports its own errors
			continue
		}
		changed, err := o.refreshLocked(ctx)
		o.catalog.notifyChanged(changed)
		next = time.Now().Add(interval)
		if failures++; err == nil {
			failures = 0
		} else {
			next = time.Now().Add(min(interval, retryAfter<<min(failures-1, 8)))
		}
	}
}
