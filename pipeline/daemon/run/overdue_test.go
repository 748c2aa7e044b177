// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
)

// TestFinding3RenderThatHangs has a renderer that hears no context: its pipeline fails and is tried again, another one goes on, and
// the renderer is not begun a second time.
func TestFinding3RenderThatHangs(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorks(t, "shop", "cart")
	w.runner.Watchdog.Longest = 8 * time.Second
	w.repository.Commit("first", map[string]string{"shop/text": "one", "cart/text": "one"})
	release, hangs := make(chan struct{}), atomic.Bool{}
	defer close(release)
	hangs.Store(true)
	w.renderer.during = func() {
		if hangs.Load() {
			<-release
		}
	}
	for range 2 {
		var retry *queue.RetryError
		if err := w.do("shop", "hangs", 1); !errors.As(err, &retry) || !errors.Is(err, watchdog.ErrOverdue) {
			t.Fatalf("%v", err)
		}
		if c := w.state("shop").Condition(); c.Reason != v1alpha1.ReasonBuildFailed || !strings.Contains(c.Message, "left behind") {
			t.Errorf("%+v", c)
		}
	}
	if got := w.renderer.renders.Load(); got != 1 {
		t.Errorf("%d renders were begun", got)
	}
	hangs.Store(false)
	if err := w.do("cart", "goes on", 1); err != nil || w.commits() != 1 {
		t.Errorf("another pipeline: %v, %d commits", err, w.commits())
	}
}

// TestFinding3ServerThatHangsAtAPush has a Git server that takes a push and never answers, until it does again.
func TestFinding3ServerThatHangsAtAPush(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorks(t, "shop")
	w.runner.Watchdog.Longest = 8 * time.Second
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	release, hangs := make(chan struct{}), atomic.Bool{}
	defer close(release)
	hangs.Store(true)
	w.git.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if hangs.Load() && strings.HasSuffix(r.URL.Path, "git-receive-pack") {
			<-release
			return true
		}
		return false
	})
	if err := w.do("shop", "hangs", 1); err == nil {
		t.Fatal("a push that is not answered counts as done")
	}
	if c := w.state("shop").Condition(); c.Reason != v1alpha1.ReasonPublishFailed {
		t.Errorf("%+v", c)
	}
	hangs.Store(false)
	w.runner.Watchdog.Longest = 0
	if err := w.do("shop", "again", 1); err != nil || w.commits() != 1 {
		t.Errorf("when it answers again: %v, %d commits", err, w.commits())
	}
}
