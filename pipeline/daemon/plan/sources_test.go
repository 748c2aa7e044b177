// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/plan"
)

// TestAJobNamesTheRevisionsOfAllSources has an event of one source: the job names what the planner has found of each, and none where
// one of them did not answer.
func TestAJobNamesTheRevisionsOfAllSources(t *testing.T) {
	for _, away := range []bool{false, true} {
		b := newBed(t, 1, branches)
		platform, values := b.git.Repository(t, "platform"), b.git.Repository(t, "values")
		values.Commit("values", map[string]string{"x": "1"})
		head := platform.Commit("platform", map[string]string{"x": "1"})
		b.write(b.pipelines, "several.yaml", branches(1, b.repository.URL)+"  sources:\n  - {mountPath: platform, git: {url: "+platform.URL+", ref: {branch: main}}}\n"+
			"  - {mountPath: deploy/values, git: {url: "+values.URL+"}}\n")
		b.reload()
		b.git.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if away && strings.Contains(r.URL.Path, "/values.git/") {
				http.Error(w, "not now", http.StatusForbidden)
				return true
			}
			return false
		})
		change := event.Change{Git: &event.GitChange{URLs: []string{platform.URL}, Ref: "refs/heads/main", After: head}}
		if err := b.planner.Event(t.Context(), event.Event{ID: head, Receiver: "git", Changes: []event.Change{change}}, time.Now()); err != nil {
			t.Fatal(err)
		}
		revision, mounted := "main@sha1:"+b.repository.Git("rev-parse", "main"), map[string]string{
			"platform": "main@sha1:" + head, "deploy/values": "main@sha1:" + values.Git("rev-parse", "main"),
		}
		if away {
			revision, mounted = "", nil
		}
		if got := b.nextJob(); got.Pipeline != name(1) || got.Revision != revision || !maps.Equal(got.Mounted, mounted) || got.Resolved.IsZero() != away {
			t.Errorf("away %t: got %+v, want %s and %v", away, got, revision, mounted)
		}
	}
}

// TestASourceThatNobodyHasIsForgotten bumps the commit that a pipeline is pinned to, the last of which cannot be fetched, while it is planned
// for, and then takes the pipeline away.
func TestASourceThatNobodyHasIsForgotten(t *testing.T) {
	b := newBed(t, 2, branches)
	consider := func() {
		t.Helper()
		if err := b.planner.Consider(t.Context(), []string{name(0), name(1)}, plan.Cause{ID: "x", Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	consider()
	for i := range 5 {
		commit := b.repository.Commit("more", map[string]string{"docs/README.md": fmt.Sprint(i)})
		b.write(b.pipelines, name(1)+".yaml", strings.Replace(branches(1, b.repository.URL), "branch: main", "commit: "+commit, 1))
		b.reload()
		consider()
		if got := b.planner.Sources(); got != 2 {
			t.Errorf("after commit %d something is remembered of %d sources", i, got)
		}
	}
	looking, answer := make(chan struct{}, 99), make(chan struct{})
	b.git.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		looking <- struct{}{}
		<-answer
		return false
	})
	b.write(b.pipelines, name(1)+".yaml", strings.Replace(branches(1, b.repository.URL), "branch: main", "branch: gone", 1))
	b.reload()
	var plans sync.WaitGroup
	plans.Go(consider)
	<-looking
	if err := os.Remove(filepath.Join(b.pipelines, name(1)+".yaml")); err != nil {
		t.Fatal(err)
	}
	b.reload()
	plans.Go(consider) // it waits for the turn of the other source
	close(answer)
	plans.Wait()
	if got := b.planner.Sources(); got != 1 {
		t.Errorf("something is remembered of %d sources where there is one", got)
	}
}
