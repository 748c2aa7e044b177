// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// refusingCommitter is a server that refuses commits with some pipelines, and knows what it was asked.
type refusingCommitter struct {
	refuse func(pipeline string) bool
	fail   error // of every commit, instead
	mu     sync.Mutex
	asked  [][]string
	taken  []string
}

func (c *refusingCommitter) Publish(_ context.Context, changes []Change) (Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, one := range changes {
		names = append(names, one.Pipeline)
	}
	c.asked = append(c.asked, names)
	if c.fail != nil {
		return Result{}, c.fail
	}
	if slices.ContainsFunc(names, c.refuse) {
		return Result{}, fmt.Errorf("pushing: %w: hook declined", git.ErrRefused)
	}
	c.taken = append(c.taken, names...)
	return Result{Changed: true, Outcomes: make([]Outcome, len(changes))}, nil
}

// together has pipelines publish in one round, and returns what became of each.
func (b *changeBatcher) together(t *testing.T, to changeCommitter, pipelines []string, change func(pipeline string) Change) map[string]error {
	t.Helper()
	unlock, err := b.lock(t.Context(), "lock") // until all are there
	if err != nil {
		t.Fatal(err)
	}
	out, mu, all := map[string]error{}, sync.Mutex{}, sync.WaitGroup{}
	for i, pipeline := range pipelines {
		all.Go(func() {
			done := b.submitChange(t.Context(), "key", "lock", "cause", to, change(pipeline))
			mu.Lock()
			defer mu.Unlock()
			out[pipeline] = errors.Join(done.err, done.outcome.Err)
		})
		b.waitFor(i+1, "key") // in their order
	}
	unlock()
	all.Wait()
	return out
}

func onlyName(pipeline string) Change { return Change{Pipeline: pipeline} }

func manyNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("p%04d", i))
	}
	return names
}

// TestOneRefusedResultOfMany has a server refuse whatever has one of a thousand results: the others are published, in their order, and
// the one goes alone from then on, until it is taken.
func TestOneRefusedResultOfMany(t *testing.T) {
	const bad = "p0700"
	lock := countedLock{make(chan struct{}, 1)}
	b, c := changeBatcher{lock: lock.lock}, &refusingCommitter{refuse: func(pipeline string) bool { return pipeline == bad }}
	names := manyNames(1000)
	for pipeline, err := range b.together(t, c, names, onlyName) {
		if refused := errors.Is(err, git.ErrRefused); refused != (pipeline == bad) || !refused && err != nil {
			t.Errorf("%s: %v", pipeline, err)
		}
	}
	if len(c.asked) > 21 || len(c.taken) != 999 || !slices.IsSorted(c.taken) {
		t.Errorf("%d commits were tried, %d results taken", len(c.asked), len(c.taken))
	}
	c.asked = nil
	again := b.together(t, c, []string{"p0001", bad, "p0900"}, onlyName)
	if !errors.Is(again[bad], git.ErrRefused) || again["p0001"] != nil || again["p0900"] != nil || len(c.asked) != 2 {
		t.Errorf("again: %v, by %q", again, c.asked)
	}
	c.refuse = func(string) bool { return false }
	b.together(t, c, []string{bad}, onlyName)
	c.asked = nil
	if b.together(t, c, []string{"p0001", bad}, onlyName); len(c.asked) != 1 {
		t.Errorf("after it was taken: %q", c.asked)
	}
}

// TestARefusalOfAllIsNotSearchedForEver has a server that takes nothing, one that refuses every other result, and one that is away.
func TestARefusalOfAllIsNotSearchedForEver(t *testing.T) {
	away := errors.New("connection refused")
	for name, tc := range map[string]struct {
		c    *refusingCommitter
		most int
		want error
	}{
		"nothing is taken": {&refusingCommitter{refuse: func(string) bool { return true }}, 25, git.ErrRefused},
		"half of them are": {&refusingCommitter{refuse: func(pipeline string) bool { return strings.HasSuffix(pipeline, "1") }}, maxParts + 20, git.ErrRefused},
		"it is away":       {&refusingCommitter{fail: away}, 1, away},
	} {
		t.Run(name, func(t *testing.T) {
			lock := countedLock{make(chan struct{}, 1)}
			b := changeBatcher{lock: lock.lock}
			failed := 0
			for _, err := range b.together(t, tc.c, manyNames(1000), onlyName) {
				if err != nil {
					failed++
					if !errors.Is(err, tc.want) {
						t.Fatal(err)
					}
				}
			}
			if len(tc.c.asked) > tc.most || failed != 1000-len(tc.c.taken) {
				t.Errorf("%d commits were tried, %d failed", len(tc.c.asked), failed)
			}
			if _, err := b.lock(t.Context(), "lock"); err != nil { // until the round has ended, which notes who is refused at its end
				t.Fatal(err)
			}
			if alone := len(b.alone); (alone > 0) != (len(tc.c.taken) > 0) {
				t.Errorf("%d are published alone", alone)
			}
		})
	}
}

// TestAHookThatRefusesOneResult has a hook of a server refuse a file, and then all of the branch.
func TestAHookThatRefusesOneResult(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	branch := signedBranch(t, repository, nil)
	lock := countedLock{make(chan struct{}, 1)}
	b := changeBatcher{lock: lock.lock}
	hook := func(text string) {
		t.Helper()
		name := filepath.Join(repository.Bare, "hooks", "pre-receive")
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(text string) map[string]error {
		t.Helper()
		return b.together(t, branch, []string{"a", "b", "c", "d"}, func(pipeline string) Change {
			return Change{Pipeline: pipeline, Path: pipeline, Files: map[string][]byte{pipeline + ".yaml": []byte(text)}, Origin: Origin{Date: time.Unix(1e9, 0)}}
		})
	}
	hook("while read old new name; do if git ls-tree -r --name-only $new | grep -q ^c/; then echo 'no c here'; exit 1; fi; done\n")
	for pipeline, err := range publish("k: 1\n") {
		if pipeline != "c" && err != nil || pipeline == "c" && (!errors.Is(err, git.ErrRefused) || !strings.Contains(err.Error(), "no c here")) {
			t.Errorf("%s: %v", pipeline, err)
		}
	}
	if got := repository.Git("ls-tree", "-d", "--name-only", "rendered"); got != ".prerig\na\nb\nd" {
		t.Errorf("published are %q", got)
	}
	hook("echo 'You are not allowed to push code to protected branches on this project.'; exit 1\n")
	for pipeline, err := range publish("k: 2\n") {
		if err == nil || errors.Is(err, git.ErrRefused) {
			t.Errorf("%s: %v", pipeline, err)
		}
	}
}
