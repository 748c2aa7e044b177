// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/prerig/prerig/pipeline/queue"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/status"
)

// Repository is a Git repository with files of pipelines.
type Repository struct {
	// URL of the repository, without credentials; Ref is the full name of what is followed, "" for its default branch; Path
	// is the directory, "" for the root.
	URL, Ref, Path string
	// Open gives the mirror and the way to the server. It is asked each time, as credentials change.
	Open func(ctx context.Context) (*git.Mirror, *git.Remote, error)
	// Heads is where all processes agree on the commit.
	Heads Heads
	// Log; nil discards.
	Log *slog.Logger
}

// Heads keeps the commit that all processes have the pipelines from. *status.Store is one.
type Heads interface {
	// Head returns it, and a revision that is 0 where there is none.
	Head(ctx context.Context) (status.Head, uint64, error)
	// SaveHead changes it if nobody else has since the revision; queue.ErrChanged is the cause of the error otherwise.
	SaveHead(ctx context.Context, head status.Head, revision uint64) (uint64, error)
}

// gitRepository is a Repository with what this process has of it.
type gitRepository struct {
	Repository

	turn     sync.Mutex    // held by whoever reads
	wake     atomic.Bool   // somebody wants the server to be asked now
	waiting  atomic.Int32  // those who wait for it to ask the server
	revision atomic.Uint64 // of the head that was read
	commit   git.Hash      // that the entries are from
	failed   string        // the last failure that was logged
}

// readTimeout bounds one look at the server with what it brings.
const readTimeout = time.Minute

// OpenRepository reads the pipelines of a repository. Where the server does not answer, it begins with the commit that was
// read last, which is in the mirror; only without one is it an error.
func OpenRepository(ctx context.Context, o Repository, options ...Option) (*Catalog, error) {
	repo := &gitRepository{Repository: o}
	c := newCatalog(repo.String(), repo, o.Log, options...)
	_, err := c.refreshLocked(ctx)
	if err == nil {
		return c, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if restored := c.restoreFromMirror(ctx); restored != nil {
		c.log.Debug("there is no earlier commit of the pipelines to begin with", "error", restored)
		return nil, err
	}
	c.setError(err)
	c.log.Warn("starting with the pipelines that were read last", "revision", c.Status().Revision)
	return c, nil
}

// Join reads the pipelines of a repository at the commit that another process has them from, and where there is none yet as
// OpenRepository does.
func Join(ctx context.Context, o Repository, options ...Option) (*Catalog, error) {
	if _, revision, err := o.Heads.Head(ctx); err != nil || revision == 0 {
		return OpenRepository(ctx, o, options...)
	}
	repo := &gitRepository{Repository: o}
	c := newCatalog(repo.String(), repo, o.Log, options...)
	return c, c.Follow(ctx)
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

// Refresh asks the server where the repository is now and reads it where it has moved. It gives the keys that changed, for
// the caller to act on: functions of OnChange are not called. After an error everything is as it was. For a directory it
// does nothing.
func (c *Catalog) Refresh(ctx context.Context) (changed []string, err error) {
	if c.repo == nil {
		return nil, nil
	}
	// Somebody who waits for the turn will ask the server later than now, which is enough: a server that hangs must not
	// hold up one event after the other.
	if c.repo.waiting.Load() > 0 {
		return nil, nil
	}
	return c.refreshLocked(ctx)
}

func (c *Catalog) refreshLocked(ctx context.Context) (changed []string, err error) {
	r := c.repo
	r.waiting.Add(1)
	r.turn.Lock()
	r.waiting.Add(-1)
	defer r.turn.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	const attempts = 5 // another process may be at it as well
	for try := 1; ; try++ {
		changed, err = c.resolveOnce(ctx)
		if !errors.Is(err, queue.ErrChanged) || try == attempts {
			break
		}
	}
	if err != nil {
		err = r.explainError(err)
	}
	c.reportRead(err)
	return changed, err
}

// explainError names the repository, and the key of the configuration that credentials are given with.
func (r *gitRepository) explainError(err error) error {
	hint := ""
	if errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed) {
		hint = " (for pipelines it is pipelines_git.secret of the configuration)"
	}
	return fmt.Errorf("reading the pipelines of %s: %w%s", r, err, hint)
}

// resolveOnce does one attempt. The head is loaded before the server is asked, so that of two processes the one that asked
// later wins.
func (c *Catalog) resolveOnce(ctx context.Context) ([]string, error) {
	r := c.repo
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
	return c.adoptEntries(read, commit, revision), nil
}

// adoptEntries takes over what was read.
func (c *Catalog) adoptEntries(read []Entry, commit *git.Commit, revision uint64) []string {
	changed := c.replaceEntries(read, commit.Revision())
	c.repo.commit = commit.Hash
	c.repo.revision.Store(revision)
	c.log.Info("read the pipelines", "source", c.repo.String(), "revision", commit.Revision(), "changed", len(changed))
	return changed
}

// Follow reads the commit that another process has found, where it is not the one that is known here. For a directory it
// does nothing.
func (c *Catalog) Follow(ctx context.Context) error {
	if c.repo == nil {
		return nil
	}
	changed, err := c.followHead(ctx)
	c.notifyChanged(changed)
	return err
}

func (c *Catalog) followHead(ctx context.Context) ([]string, error) {
	r := c.repo
	head, revision, err := r.Heads.Head(ctx)
	if err != nil || revision <= r.revision.Load() {
		return nil, err // nobody need wait for one who asks the server
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	if revision <= r.revision.Load() {
		return nil, nil
	}
	if !r.isAtHead(head) {
		return nil, fmt.Errorf("reading the pipelines of %s: the daemon reads them from %s; give both the same configuration", r,
			(&gitRepository{Repository: Repository{URL: head.URL, Ref: head.Ref, Path: head.Path}}).String())
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	changed, err := c.readHead(ctx, head, revision)
	if err != nil {
		err = r.explainError(err)
	}
	c.reportRead(err)
	return changed, err
}

// readHead reads the commit of a head, or where a server does not give that any more, a later one.
func (c *Catalog) readHead(ctx context.Context, head status.Head, revision uint64) ([]string, error) {
	mirror, remote, err := c.repo.Open(ctx)
	if err != nil {
		return nil, err
	}
	exact := git.Ref{Name: head.Name, Commit: plumbing.NewHash(head.Commit)}
	commit, err := mirror.Kept(exact)
	if err != nil {
		commit, err = mirror.Fetch(ctx, remote, exact)
	}
	if err != nil {
		later, second := mirror.Fetch(ctx, remote, git.Ref{Name: c.repo.Ref})
		if second != nil {
			return nil, err
		}
		commit = later
	}
	if commit.Hash == c.repo.commit {
		c.repo.revision.Store(revision)
		return nil, nil
	}
	read, err := readTree(mirror.Tree(commit), c.repo.Path)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", commit.Revision(), err)
	}
	return c.adoptEntries(read, commit, revision), nil
}

// restoreFromMirror reads the commit that was read last out of the mirror alone.
func (c *Catalog) restoreFromMirror(ctx context.Context) error {
	r := c.repo
	r.turn.Lock()
	defer r.turn.Unlock()
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
	c.adoptEntries(read, commit, revision)
	return nil
}

// reportRead keeps and logs how reading went: a failure once, until it is another one or over.
func (c *Catalog) reportRead(err error) {
	c.setError(err)
	switch failed := errorText(err); {
	case failed == c.repo.failed:
		return
	case err != nil:
		c.log.Error("the pipelines cannot be read; the known ones stay", "error", err)
	default:
		c.log.Info("the pipelines can be read again", "source", c.repo.String())
	}
	c.repo.failed = errorText(err)
}

// followEvery is how often the commit of other processes is looked at.
const followEvery = time.Second

// retryAfter is how long after a first failure the server is asked again.
const retryAfter = 5 * time.Second

// Wake has Poll look at the repository now, whatever the interval.
func (c *Catalog) Wake() {
	if c.repo != nil {
		c.repo.wake.Store(true)
	}
}

// Poll refreshes once in each interval, sooner after a failure, and follows other processes meanwhile, until ctx is done.
// An interval of 0 only follows.
func (c *Catalog) Poll(ctx context.Context, interval time.Duration) {
	if c.repo == nil {
		return
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	next, failures := time.Now().Add(interval), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if failures == 0 && c.Status().Error != "" {
			failures, next = 1, time.Now().Add(min(interval, retryAfter)) // an event's look, or the first one, has failed
		}
		if interval == 0 || time.Now().Before(next) && !c.repo.wake.Swap(false) {
			_ = c.Follow(ctx) // it tells by itself
			continue
		}
		changed, err := c.refreshLocked(ctx)
		c.notifyChanged(changed)
		next = time.Now().Add(interval)
		if failures++; err == nil {
			failures = 0
		} else {
			next = time.Now().Add(min(interval, retryAfter<<min(failures-1, 8)))
		}
	}
}
