// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/server"
)

// crowd prepares a daemon in a process of its own with many pipelines over one base.
func crowd(t *testing.T, n int, more string, intercept func(http.ResponseWriter, *http.Request) bool) *chaos {
	t.Helper()
	f := prepare(t, nil)
	f.git.Intercept(intercept)
	files := map[string]string{"bases/web/kustomization.yaml": "resources: [web.yaml]\n"}
	for i := range n {
		name := fmt.Sprintf("app%d", i)
		f.write(filepath.Join(f.c.Pipelines, name+".yaml"), pipelineYAML(name, f.repository.URL, more))
		files["apps/"+name+"/kustomization.yaml"] = overlay("bases/web")
	}
	c := &chaos{fixture: f, size: size{pipelines: n}, answers: map[int]int{}, logs: filepath.Join(t.TempDir(), "log"), patience: 30 * time.Second}
	c.address, f.page = free(t), free(t)
	f.c.Listen, f.c.Admin.Listen = c.address, f.page
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last of what the processes logged:\n%s", c.lastLogged(40))
		}
	})
	files["bases/web/web.yaml"] = deployment("web", "image:0")
	f.repository.Commit("first", files)
	return c
}

// allShow waits until all pipelines show a state of the base.
func (c *chaos) allShow(n int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("waiting for all to show %d", n), func() string {
		if c.repository.Git("branch", "--list", "rendered") == "" {
			return "nothing is rendered"
		}
		shown := strings.Split(c.repository.Git("grep", "-h", "-e", "image: image:", "rendered"), "\n")
		got := 0
		for _, line := range shown {
			if strings.HasSuffix(line, fmt.Sprintf("image: image:%d", n)) {
				got++
			}
		}
		if got != c.size.pipelines {
			return fmt.Sprintf("%d do", got)
		}
		return ""
	})
}

// reconcile asks for a run of all pipelines, over the socket, and gives the token of the request.
func (c *chaos) reconcile() string {
	c.t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", c.c.Socket())
	}}}
	body, err := json.Marshal(server.Request{All: true})
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := client.Post("http://prerig/api/v1/reconcile", "application/json", bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer server.Answer
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Pipelines) != c.size.pipelines {
		c.t.Fatalf("asking for all was answered with %d: %v %v", resp.StatusCode, answer, err)
	}
	return answer.Token
}

// grace is how long the daemon gives what is under way to end.
const grace = 5 * time.Second

// ends waits for the end of a process that was sent a signal, which must come soon.
func (c *chaos) ends(p *process, s syscall.Signal) {
	c.t.Helper()
	p.hold(true)
	begin := time.Now()
	if !p.signal(s) {
		c.t.Fatal("there is no process to end")
	}
	p.gone()
	// What hangs is left behind after some seconds, twice at most. Slow machines get more.
	if took := time.Since(begin); took > 6*grace {
		c.t.Errorf("it ended after %s", took)
	}
	p.hold(false)
	if !p.awaitUp(c.patience) {
		c.t.Fatal("it did not come up again")
	}
}

// TestAllAreRenderedAfterARestart changes what all pipelines read, asks for all of them, and ends the daemon when it has
// begun with some.
func TestAllAreRenderedAfterARestart(t *testing.T) {
	ends := []struct {
		name   string
		signal syscall.Signal
		runs   int // that have ended before
	}{{"term", syscall.SIGTERM, 5}, {"kill", syscall.SIGKILL, 5}, {"term at once", syscall.SIGTERM, 0}, {"kill at once", syscall.SIGKILL, 0}}
	n := 1000
	if !full() {
		n, ends = 16, ends[:2]
	}
	c := crowd(t, n, "", nil)
	p := c.serve(c.c, false)
	c.allShow(0)
	for i, end := range ends {
		t.Run(end.name, func(t *testing.T) {
			c.t = t
			before := c.rendering()
			c.repository.Commit(fmt.Sprint(i+1), map[string]string{"bases/web/web.yaml": deployment("web", fmt.Sprintf("image:%d", i+1))})
			token := c.reconcile()
			c.eventually("waiting for renders", func() string {
				if got := c.rendering() - before; got < end.runs {
					return fmt.Sprintf("%d have begun", got)
				}
				return ""
			})
			c.ends(p, end.signal)
			begin := time.Now()
			c.allShow(i + 1)
			c.eventually("waiting for the request to be handled by all", func() string {
				for _, p := range c.pipelines() {
					if p.OpenRequest != "" || p.Status.LastHandledReconcileAt != token {
						return fmt.Sprintf("%s has handled %q, open is %q", p.Name, p.Status.LastHandledReconcileAt, p.OpenRequest)
					}
				}
				return ""
			})
			t.Logf("all %d were rendered %s after the start", n, time.Since(begin).Round(time.Millisecond))
		})
	}
	c.t = t
	c.logged(func(l line, text string) {
		if strings.Contains(text, "were damaged") || strings.Contains(text, "left behind") {
			t.Error(text)
		}
	})
}

// rendering counts the renders that have begun.
func (c *chaos) rendering() (count int) {
	c.logged(func(_ line, text string) {
		if strings.Contains(text, `"msg":"rendering"`) {
			count++
		}
	})
	return count
}

// TestEndWhileOthersHang ends the daemon while the Git server, and one that is told of runs, do not answer.
func TestEndWhileOthersHang(t *testing.T) {
	hang := make(chan struct{})
	var notified atomic.Int32
	told := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		notified.Add(1)
		<-hang
	}))
	defer told.Close()
	defer close(hang)
	var hangs atomic.Bool
	var held atomic.Int32
	c := crowd(t, 4, "  notify: [{cloudEvent: {url: "+told.URL+"}}]\n", func(http.ResponseWriter, *http.Request) bool {
		if hangs.Load() {
			held.Add(1)
			<-hang
		}
		return false
	})
	p := c.serve(c.c, false)
	c.allShow(0)
	c.eventually("waiting for the notifications", func() string {
		if got := notified.Load(); got < 4 {
			return fmt.Sprintf("%d were sent", got)
		}
		return ""
	})
	c.repository.Commit("1", map[string]string{"bases/web/web.yaml": deployment("web", "image:1")})
	hangs.Store(true)
	c.reconcile()
	c.eventually("waiting for the Git server to be asked", func() string {
		if held.Load() == 0 {
			return "it is not"
		}
		return ""
	})
	p.hold(true)
	begin := time.Now()
	p.signal(syscall.SIGTERM)
	p.gone()
	t.Logf("it ended after %s", time.Since(begin).Round(time.Millisecond))
	if took := time.Since(begin); took > 6*grace {
		t.Errorf("it ended after %s", took)
	}
	hangs.Store(false)
	p.hold(false)
	c.allShow(1)
}

// TestEndDuringTheStart ends the daemon before it listens: that is no failure.
func TestEndDuringTheStart(t *testing.T) {
	f := prepare(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := daemon.Serve(ctx, f.c, daemon.Options{}); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(f.c.Socket()); err == nil {
		t.Error("it listens")
	}
	f.start()
}
