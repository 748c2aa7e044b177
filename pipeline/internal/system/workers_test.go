// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFinding8DaemonWithoutWorkersIsNotReady has a daemon whose only worker is not there yet, comes, and is killed.
func TestFinding8DaemonWithoutWorkersIsNotReady(t *testing.T) {
	nats := startNATS(t)
	f := prepare(t, map[string]string{"web.yaml": pipelineYAML("web", "URL")})
	f.c.NATS.URL, f.c.NATS.AckWait, f.c.Workers = nats, 2*time.Second, 0
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	// No push to the first repository can ask for a run of what is read from this one, however late a look at it is answered.
	repository := f.git.Repository(t, "other")
	repository.Commit("first", map[string]string{"apps/api/api.yaml": deployment("api", "api:1")})
	f.write(filepath.Join(f.c.Pipelines, "api.yaml"), pipelineYAML("api", repository.URL))
	f.start()
	other := *f
	other.repository = repository
	ready := func(want int, text string) {
		t.Helper()
		f.eventually(fmt.Sprintf("waiting for %d of /readyz", want), func() string {
			if status, body := f.ask(f.page, "/readyz"); status != want || !strings.Contains(body, text) {
				return fmt.Sprintf("%d %s", status, body)
			}
			return ""
		})
	}
	waits := func(name string, want bool) {
		t.Helper()
		f.eventually("waiting for what "+name+" says", func() string {
			if p := f.pipelines("team/" + name)[0]; strings.Contains(p.Message, "no worker takes jobs") != want {
				return p.State + ": " + p.Message
			}
			return ""
		})
	}
	const none = "no worker takes jobs"
	ready(http.StatusServiceUnavailable, none)
	waits("web", true)
	if got := f.catalog().Problem; !strings.Contains(got, none) {
		t.Errorf("prerig daemon status says %q", got)
	}
	away := *f.c
	away.Workers, away.State = 1, t.TempDir()
	c := &chaos{fixture: f, logs: filepath.Join(t.TempDir(), "log")}
	worker := c.serve(&away, true)
	f.shows("web/shop/deployment-web.yaml", "image: web:1")
	other.shows("api/shop/deployment-api.yaml", "image: api:1")
	ready(http.StatusOK, "ok")
	// What is shown is pushed, and its run may not have ended; nor is its job done when the run has.
	f.eventually("waiting for both", func() string {
		if got := f.metrics()["prerig_queue_jobs"]; got != 0 {
			return fmt.Sprint(got, " jobs")
		}
		return f.notReady()
	})
	worker.end()
	ready(http.StatusServiceUnavailable, none)
	if got := f.metrics()["prerig_workers_present"]; got != 0 {
		t.Errorf("the metrics say %v", got)
	}
	f.push(f.repository.Commit("second", map[string]string{"apps/web/web.yaml": deployment("web", "web:2")}))
	waits("web", true)
	waits("api", false)
}
