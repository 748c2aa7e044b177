// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// TestLostState removes the state directory after the daemon was killed: what is published is found in Git and in the
// registry, and is not published again.
func TestLostState(t *testing.T) {
	c, r := newChains(t, size{pipelines: 4})
	p := c.serve(c.c, false)
	c.settle()
	for range 2 {
		c.next()
	}
	before := c.repository.Git("rev-list", "--count", branchOf(0))
	p.stopped(func() {
		if err := os.RemoveAll(c.c.State); err != nil {
			t.Fatal(err)
		}
	})
	p.awaitUp(2 * time.Minute)
	c.settle()
	time.Sleep(time.Second) // for a commit that must not be
	if after := c.repository.Git("rev-list", "--count", branchOf(0)); after != before {
		t.Errorf("%s commits became %s", before, after)
	}
	if artifacts, pushes := len(r.revisions(t, "rendered/app0")), r.pushes(t, "rendered/app0"); artifacts != 3 || pushes != 3 {
		t.Errorf("%d artifacts by %d pushes, want three", artifacts, pushes)
	}
	c.next()
	c.verify()
}

// TestSecondDaemon starts another daemon in the same state directory: it must end and say why, and the first goes on.
func TestSecondDaemon(t *testing.T) {
	c := newChaos(t, size{pipelines: 1})
	c.serve(c.c, false)
	c.settle()
	second := *c.c
	second.Listen = free(t)
	text, err := json.Marshal(second)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), "PRERIG_TEST_DAEMON="+string(text), "PRERIG_TEST_RENDERER="+renderer(t)[0])
	out, err := command.CombinedOutput()
	if want := filepath.Join(c.c.State, "queue") + ": another process uses it"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("the second daemon ended with %v and said %q, want %q", err, out, want)
	}
	c.next()
	if commits, _ := c.verify(); commits != 2 {
		t.Errorf("%d commits, want two", commits)
	}
}

// TestClockStepsBack leaves the state that a daemon would have stored whose clock was an hour ahead until it was put right:
// an event, a job that waits for others, and states. Nothing may wait for that hour to pass.
func TestClockStepsBack(t *testing.T) {
	f := prepare(t, map[string]string{"web.yaml": pipelineYAML("web", "URL"), "api.yaml": pipelineYAML("api", "URL")})
	files := func(n int) map[string]string {
		return map[string]string{
			"apps/web/web.yaml": deployment("web", fmt.Sprintf("web:%d", n)), "apps/api/api.yaml": deployment("api", fmt.Sprintf("api:%d", n)),
		}
	}
	f.repository.Commit("first", files(1))
	f.start()
	f.shows("web/shop/deployment-web.yaml", "image: web:1")
	f.shows("api/shop/deployment-api.yaml", "image: api:1")
	f.eventually("waiting for both", func() string { return f.notReady() })
	f.stop()

	const ahead = time.Hour
	ctx := t.Context()
	q, err := queue.Open(ctx, queue.Options{Dir: filepath.Join(f.c.State, "queue")})
	if err != nil {
		t.Fatal(err)
	}
	store, err := status.NewStore(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"team/web", "team/api"} {
		state, revision, err := store.Load(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		state.Seen.Resolved = state.Seen.Resolved.Add(ahead)
		if _, err := store.Save(ctx, key, state, revision); err != nil {
			t.Fatal(err)
		}
	}
	commit := f.repository.Commit("second", files(2))
	then := time.Now().Add(ahead)
	job := queue.Job{
		Pipeline: "team/web", Cause: "before", Since: then, NotBefore: then.Add(time.Second), Revision: "main@sha1:" + commit, Resolved: then,
	}
	if err := q.Request(ctx, job); err != nil {
		t.Fatal(err)
	}
	e := event.Event{ID: "before", Receiver: "git", Provider: event.Generic, Changes: []event.Change{{Git: &event.GitChange{URLs: []string{f.repository.URL}}}}}
	if _, err := q.Put(ctx, e); err != nil {
		t.Fatal(err)
	}
	q.Close()

	f.start()
	begin := time.Now()
	f.shows("web/shop/deployment-web.yaml", "image: web:2")
	f.shows("api/shop/deployment-api.yaml", "image: api:2")
	if status := f.push(f.repository.Commit("third", files(3))); status != http.StatusAccepted {
		t.Errorf("the webhook was answered with %d", status)
	}
	f.shows("web/shop/deployment-web.yaml", "image: web:3")
	f.shows("api/shop/deployment-api.yaml", "image: api:3")
	t.Logf("two pushes were rendered %s after the start", time.Since(begin).Round(time.Millisecond))
}

// notReady names a pipeline that is not.
func (f *fixture) notReady() string {
	for _, p := range f.pipelines() {
		if p.State != "Ready" {
			return p.Name + " is " + p.State
		}
	}
	return ""
}
