// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/server"
)

// TestARemovalOutlivesACrash has the Git server refuse the push, and the daemon started again meanwhile.
func TestARemovalOutlivesACrash(t *testing.T) {
	f := removable(t, deletes, "web", "api")
	var closed atomic.Bool
	f.git.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if refused := closed.Load() && strings.Contains(r.URL.RawQuery+r.URL.Path, "receive-pack"); refused {
			http.Error(w, "read only for now", http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	f.start()
	f.allShow("web", "api")
	closed.Store(true)
	f.drop("api")
	f.eventually("waiting for the removal to fail", func() string { return missing(f.removal("api", prune.Removing).Message, "503") })
	f.stop()
	f.start()
	f.removal("api", prune.Removing)
	closed.Store(false)
	f.removed("api")
	if got := f.files(); strings.Contains(got, "api") {
		t.Errorf("the branch holds\n%s", got)
	}
}

// TestRemovalsOutliveKills kills the daemon at random moments of removals, of renames among them.
func TestRemovalsOutliveKills(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	f := removable(t, deletes, names...)
	f.c.Listen, f.c.Admin.Listen, f.c.Removals.Delay, f.c.NATS.AckWait = free(t), free(t), 100*time.Millisecond, 2*time.Second
	f.hooks, f.page = f.c.Listen, f.c.Admin.Listen
	c := &chaos{fixture: f, logs: filepath.Join(t.TempDir(), "log")}
	p := c.serve(f.c, false)
	f.allShow(names...)
	kills := 0
	for _, name := range []string{"a", "b", "c"} {
		f.drop(name)
		if name == "c" {
			renamed := strings.Replace(pipelineYAML("c", f.repository.URL, deletes), "name: c", "name: renamed", 1)
			f.write(filepath.Join(f.c.Pipelines, "renamed.yaml"), strings.Replace(renamed, "branch: rendered", "branch: rendered, path: c", 1))
		}
		for range 3 {
			time.Sleep(time.Duration(rand.IntN(1200)) * time.Millisecond)
			if p.kill() {
				kills++
			}
			if !p.awaitUp(2 * time.Minute) {
				t.Fatal("the daemon did not come up")
			}
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		f.removed(name)
	}
	f.becomes("team/renamed", server.StateReady)
	f.allReady(4)
	want := ".prerig/README.md\n.prerig/pipelines/team__d.record\n.prerig/pipelines/team__e.record\n.prerig/pipelines/team__f.record\n" +
		".prerig/pipelines/team__renamed.record\nc/shop/deployment-c.yaml\nd/shop/deployment-d.yaml\ne/shop/deployment-e.yaml\nf/shop/deployment-f.yaml"
	if got := f.files(); got != want {
		t.Errorf("the branch holds\n%s", got)
	}
	deleted := f.repository.Git("log", "--format=", "--diff-filter=D", "--name-only", "rendered", "--", "a", "b", "c", "d", "e", "f")
	if got := strings.Fields(deleted); len(got) != 2 {
		t.Errorf("files that were deleted: %v", got)
	}
	// A removal is told of before it is forgotten, and a kill can come in between.
	f.eventually("waiting for the removals to be forgotten", func() string {
		if left := f.catalog().Removals; len(left) > 0 {
			return fmt.Sprintf("left: %+v", left)
		}
		return ""
	})
	f.repository.Git("fsck", "--strict")
	t.Logf("%d kills, %d commits", kills, f.commits())
}

func missing(text, want string) string {
	if strings.Contains(text, want) {
		return ""
	}
	return fmt.Sprintf("%q lacks %q", text, want)
}
