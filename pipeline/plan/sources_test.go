// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/event"
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
