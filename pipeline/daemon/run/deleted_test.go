// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/publish"
)

// TestADeletedBranchDoesNotComeBackInPart deletes a branch of two pipelines and changes the source of one of them: a cluster that prunes
// would lose all of the other one. A third, which was never there, does not begin it either.
func TestADeletedBranchDoesNotComeBackInPart(t *testing.T) {
	w := newWorks(t, "cart", "shop", "new")
	w.repository.Commit("first", map[string]string{"cart/text": "one", "shop/text": "one", "new/text": "one"})
	for _, name := range []string{"cart", "shop"} {
		if err := w.do(name, "first "+name, 1); err != nil {
			t.Fatal(err)
		}
	}
	last := w.repository.Git("rev-parse", "rendered")
	w.repository.Git("update-ref", "-d", "refs/heads/rendered")
	w.repository.Commit("second", map[string]string{"cart/text": "two"})
	var again *queue.RetryError
	for name, other := range map[string]string{"cart": "shop", "new": "cart and 1 more"} {
		err := w.do(name, "second "+name, 1)
		if !errors.As(err, &again) || !errors.Is(err, publish.ErrDeleted) || w.commits() != 0 {
			t.Fatalf("%s: %v, and the branch has %d commits", name, err, w.commits())
		}
		if c := w.state(name).Condition(); c.Status != "False" || !strings.Contains(c.Message, "where "+other+" published too") {
			t.Errorf("%s says %+v", name, c)
		}
	}
	// Put back, it goes on where it was.
	w.repository.Git("update-ref", "refs/heads/rendered", last)
	if err := w.do("cart", "second cart", 1); err != nil || w.repository.Git("rev-parse", "rendered^") != last {
		t.Fatalf("put back: %v", err)
	}
	// One who means it begins anew.
	w.repository.Git("update-ref", "-d", "refs/heads/rendered")
	if err := w.runner.Do(t.Context(), queue.Job{Pipeline: "cart", Cause: "forced", Force: true, Since: time.Now()}); err != nil || w.commits() != 1 {
		t.Errorf("forced: %v, %d commits", err, w.commits())
	}
}

// TestADeletedBranchComesBackWhole deletes a branch and changes all of its pipelines in one commit of the source.
func TestADeletedBranchComesBackWhole(t *testing.T) {
	w := newWorks(t, "cart", "shop")
	for _, text := range []string{"one", "two"} {
		w.repository.Commit(text, map[string]string{"cart/text": text, "shop/text": text})
		failed := make(chan error, 2)
		for _, name := range []string{"cart", "shop"} {
			go func() { failed <- w.do(name, text, 2) }()
		}
		if err := errors.Join(<-failed, <-failed); err != nil || w.commits() != 1 {
			t.Fatalf("%s: %v, %d commits", text, err, w.commits())
		}
		w.repository.Git("update-ref", "-d", "refs/heads/rendered")
	}
}

// TestADeletedBaseIsNotBegunAnew deletes the branch that a merged pull request went to: begun with nothing, a cluster that prunes would
// lose everything before the next one is merged.
func TestADeletedBaseIsNotBegunAnew(t *testing.T) {
	p := newProposing(t, "", "shop")
	p.repository.Commit("first", map[string]string{"shop/text": "one"})
	if err := p.do("shop", "1", 1); err != nil {
		t.Fatal(err)
	}
	p.repository.Git("update-ref", "-d", "refs/heads/rendered")
	p.repository.Commit("second", map[string]string{"shop/text": "two"})
	if err := p.do("shop", "2", 1); !errors.Is(err, publish.ErrDeleted) || p.commits() != 0 {
		t.Errorf("%v, %d commits", err, p.commits())
	}
	if err := p.runner.Do(t.Context(), queue.Job{Pipeline: "shop", Cause: "forced", Force: true, Since: time.Now()}); err != nil || p.commits() != 1 {
		t.Errorf("forced: %v, %d commits", err, p.commits())
	}
}
