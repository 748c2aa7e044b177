// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/source/git"
)

// countedLock is a lock of one name that knows whether it is held.
type countedLock struct{ held chan struct{} }

func (l countedLock) lock(ctx context.Context, _ string) (func(), error) {
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stuckSigner hangs at the first commit, hears no context, and goes on when it is let go.
type stuckSigner struct {
	commits atomic.Int64
	release chan struct{}
}

func (s *stuckSigner) Sign([]byte) (string, error) {
	if s.commits.Add(1) == 1 {
		<-s.release
	}
	return "", nil
}

// TestFinding3SignerThatHangsHoldsNoLock has the signing of a commit hang: its pipeline fails in time, the lock of the branch goes,
// a newer state is published, and what hung brings no old state back when it goes on.
func TestFinding3SignerThatHangsHoldsNoLock(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	signer := &stuckSigner{release: make(chan struct{})}
	ended := make(chan struct{})
	dog := &watchdog.Watchdog{Grace: 10 * time.Millisecond, LeftBehind: func(_ string, change int) {
		if change < 0 {
			close(ended)
		}
	}}
	lock := countedLock{make(chan struct{}, 1)}
	b := changeBatcher{lock: lock.lock, watchdog: dog}
	branch := signedBranch(t, repository, signer)
	publish := func(pipeline, text string) batchedResult {
		change := Change{Pipeline: pipeline, Path: pipeline, Files: map[string][]byte{"a.yaml": []byte(text)}, Origin: Origin{Date: time.Unix(1e9, 0)}}
		return b.submitChange(t.Context(), "key", "lock", "cause", branch, change)
	}
	dog.Longest = 5 * time.Second
	if done := publish("shop", "old: 1\n"); !errors.Is(done.err, watchdog.ErrOverdue) {
		t.Fatalf("it hangs, and gives %v", done.err)
	}
	free, cancel := context.WithTimeout(t.Context(), time.Minute) // it is told what has become of it just before
	defer cancel()
	unlock, err := lock.lock(free, "lock")
	if err != nil {
		t.Fatal("what hangs holds the lock")
	}
	unlock()
	dog.Longest = 0
	if done := publish("other", "b: 1\n"); done.err != nil || done.outcome.Err != nil {
		t.Errorf("another pipeline of the branch: %v, %v", done.err, done.outcome.Err)
	}
	// The same pipeline again, as another process has it: the one here does not begin again before the first has ended.
	if done := publish("shop", "old: 1\n"); !errors.Is(done.err, watchdog.ErrOverdue) {
		t.Errorf("begun again: %v", done.err)
	}
	elsewhere := changeBatcher{lock: lock.lock}
	change := Change{Pipeline: "shop", Path: "shop", Files: map[string][]byte{"a.yaml": []byte("new: 2\n")}, Origin: Origin{Date: time.Unix(1e9, 0)}}
	if done := elsewhere.submitChange(t.Context(), "key", "lock", "cause", branch, change); done.err != nil || done.outcome.Err != nil {
		t.Fatalf("a newer state: %v, %v", done.err, done.outcome.Err)
	}
	tip := repository.Git("rev-parse", "rendered")
	close(signer.release)
	<-ended
	if got := repository.Git("rev-parse", "rendered"); got != tip || repository.Git("show", "rendered:shop/a.yaml") != "new: 2" {
		t.Errorf("an old state came back: %s", repository.Git("log", "-p", "rendered"))
	}
}

// TestFinding3LateCommitIsNotPushed has what hung go on while the branch is where it found it: only its context tells that it is late.
func TestFinding3LateCommitIsNotPushed(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	repository.Commit("first", map[string]string{"a": "1"})
	ctx, over := context.WithCancel(t.Context())
	_, err := signedBranch(t, repository, signerFunc(over)).Publish(ctx, []Change{{Pipeline: "shop", Path: "shop", Files: map[string][]byte{"a.yaml": []byte("old: 1\n")}}})
	if err == nil || !strings.Contains(err.Error(), "too late") {
		t.Errorf("it gives %v", err)
	}
	if got := repository.Git("branch", "--list", "rendered"); got != "" {
		t.Errorf("it was pushed: %s", got)
	}
}

// signedBranch returns the branch rendered of a repository, with commits that are signed.
func signedBranch(t *testing.T, repository *gittest.Repository, signer git.Signer) *Branch {
	t.Helper()
	remote, err := git.NewRemote(repository.URL, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	mirror, err := git.NewStore(t.TempDir(), git.DefaultLimits()).Mirror(repository.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &Branch{Mirror: mirror, Remote: remote, Name: "rendered", Author: "Prerig", Email: "prerig@prerig.dev", Signer: signer}
}

type signerFunc func()

func (f signerFunc) Sign([]byte) (string, error) { f(); return "", nil }

// stuckCommitter hangs on commits with one of the pipelines.
type stuckCommitter struct {
	stuck   string
	release chan struct{}
	mu      sync.Mutex
	rounds  []string
}

func (c *stuckCommitter) Publish(_ context.Context, changes []Change) (Result, error) {
	var names []string
	for _, one := range changes {
		names = append(names, one.Pipeline)
	}
	slices.Sort(names)
	c.mu.Lock()
	c.rounds = append(c.rounds, strings.Join(names, " "))
	c.mu.Unlock()
	if slices.Contains(names, c.stuck) {
		<-c.release
	}
	return Result{Outcomes: make([]Outcome, len(changes))}, nil
}

// waitFor waits until so many changes wait for one key.
func (b *changeBatcher) waitFor(count int, key string) {
	for {
		b.mu.Lock()
		g := b.groups[key]
		enough := g != nil && len(g.waiting) == count
		b.mu.Unlock()
		if enough {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestFinding3OthersOfACommitGoOn has one of three pipelines hang the commit of all: the other two are published when they are
// tried again, each alone, and together with others after that.
func TestFinding3OthersOfACommitGoOn(t *testing.T) {
	c := &stuckCommitter{stuck: "b", release: make(chan struct{})}
	defer close(c.release)
	lock := countedLock{make(chan struct{}, 1)}
	b := changeBatcher{lock: lock.lock, watchdog: &watchdog.Watchdog{Grace: time.Second, Longest: time.Second}}
	unlock, err := lock.lock(t.Context(), "lock") // until all of the first cause are there
	if err != nil {
		t.Fatal(err)
	}
	publish := func(cause string) map[string]error {
		out := map[string]error{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, pipeline := range []string{"a", "b", "c"} {
			b.batches.recordJobStart(cause, pipeline, 3)
		}
		for _, pipeline := range []string{"a", "b", "c"} {
			all.Go(func() {
				b.batches.recordJobLeft(cause, pipeline)
				done := b.submitChange(t.Context(), "key", "lock", cause, c, Change{Pipeline: pipeline})
				mu.Lock()
				defer mu.Unlock()
				out[pipeline] = done.err
			})
		}
		if cause == "first" {
			b.waitFor(3, "key")
			unlock()
		}
		all.Wait()
		return out
	}
	for pipeline, err := range publish("first") {
		if !errors.Is(err, watchdog.ErrOverdue) {
			t.Errorf("%s, together with what hangs: %v", pipeline, err)
		}
	}
	for range 2 {
		for pipeline, err := range publish("again") {
			if pipeline != c.stuck && err != nil || pipeline == c.stuck && !errors.Is(err, watchdog.ErrOverdue) {
				t.Errorf("%s, tried again: %v", pipeline, err)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if hung := slices.DeleteFunc(slices.Clone(c.rounds), func(names string) bool { return !strings.Contains(names, "b") }); !slices.Equal(hung, []string{"a b c", "b"}) {
		t.Errorf("commits %q: what hangs was begun again", c.rounds)
	}
}
