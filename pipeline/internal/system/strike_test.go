// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// strike kills the daemon at a point: while it waits for the answer to a request that matches, which was served or not.
type strike struct {
	match  func(r *http.Request) bool
	served bool
	left   atomic.Int32 // how often still
	fired  atomic.Int32
	victim *process
}

// wrap kills in front of a handler, or behind it.
func (s *strike) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.match(r) || s.left.Add(-1) < 0 {
			next.ServeHTTP(w, r)
			return
		}
		if s.served {
			// The whole request is read first, or the end of the one who sends it would cut it off.
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next.ServeHTTP(httptest.NewRecorder(), r)
		}
		s.fired.Add(1)
		s.victim.kill()
		panic(http.ErrAbortHandler)
	})
}

// fell reports whether the daemon was killed so often.
func (s *strike) fell(n int) func() string {
	return func() string {
		if got := s.fired.Load(); got < int32(n) {
			return fmt.Sprintf("the daemon was killed %d times", got)
		}
		return ""
	}
}

func asks(method, end string) func(r *http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == method && strings.HasSuffix(r.URL.Path, end)
	}
}

// strikes is how many times the daemon is killed at each point.
func strikes() int32 {
	if full() {
		return 10
	}
	return 2
}

// struck pushes one commit for each strike and waits for its result each time.
func (c *chaos) struck(s *strike) {
	c.t.Helper()
	for n := 1; n <= int(strikes()); n++ {
		s.left.Store(1)
		c.newest[0] = n
		c.tell(c.repository.Commit(fmt.Sprint(n), map[string]string{"apps/app0/app.yaml": deployment("app0", fmt.Sprintf("image:%d", n))}))
		c.eventually("waiting for the strike", s.fell(n))
		c.settle()
	}
	if got := s.fired.Load(); got != strikes() {
		c.t.Errorf("the daemon was killed %d times, want %d", got, strikes())
	}
	commits, states := c.verify()
	if want := int(strikes()) + 1; states != want || commits != want {
		c.t.Errorf("%d states in %d commits, want one for each of %d pushes", states, commits, want)
	}
}

func TestKilledWhileItTalksToGit(t *testing.T) {
	for name, s := range map[string]*strike{
		"fetch, before the answer": {match: asks(http.MethodPost, "/git-upload-pack")},
		"push, before it is taken": {match: asks(http.MethodPost, "/git-receive-pack")},
		// Between the push and the saving of the state.
		"push, before the answer": {match: asks(http.MethodPost, "/git-receive-pack"), served: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChaos(t, size{pipelines: 1})
			c.git.Wrap(s.wrap)
			s.victim = c.serve(c.c, false)
			c.eventually("waiting for the first state", func() string {
				if c.shown(0) != 0 {
					return "it is not there; the branches are " + c.repository.Git("branch", "--list")
				}
				return ""
			})
			c.struck(s)
		})
	}
}

// TestKilledWhileItPushesNotes has a branch that is proposed: the note on each commit must be there in the end, too.
func TestKilledWhileItPushesNotes(t *testing.T) {
	for _, served := range []bool{false, true} {
		t.Run(fmt.Sprintf("served %v", served), func(t *testing.T) {
			c := emptyChaos(t, size{pipelines: 1}, 1)
			c.branch = func(int) string { return "env-next" }
			text := strings.Replace(pipelineYAML("app0", c.repository.URL), "branch: rendered", "branch: env, path: app0, propose: {}", 1)
			c.write(filepath.Join(c.c.Pipelines, "app0.yaml"), text)
			s := &strike{match: asks(http.MethodPost, "/git-receive-pack"), served: served}
			c.git.Wrap(s.wrap)
			s.victim = c.serve(c.c, false)
			c.eventually("waiting for the first state", func() string {
				if c.shown(0) != 0 {
					return "it is not there; the branches are " + c.repository.Git("branch", "--list")
				}
				return ""
			})
			c.struck(s)
			c.eventually("waiting for the note", func() string {
				var note struct{ DrySHA string }
				text := c.repository.Git("notes", "--ref=hydrator.metadata", "show", "env-next")
				if err := json.Unmarshal([]byte(text), &note); err != nil || note.DrySHA != c.repository.Git("rev-parse", "main") {
					return text
				}
				return ""
			})
		})
	}
}

// TestKilledWhileItTalksToTheRegistry stands between the daemon and a real registry.
func TestKilledWhileItTalksToTheRegistry(t *testing.T) {
	manifest := func(method string) func(r *http.Request) bool {
		return func(r *http.Request) bool { return r.Method == method && strings.Contains(r.URL.Path, "/manifests/") }
	}
	for name, s := range map[string]*strike{
		"look at the tag": {match: manifest(http.MethodGet), served: true},
		"blob, begun":     {match: func(r *http.Request) bool { return r.Method == http.MethodPost }, served: true},
		"blob, sent": {match: func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/")
		}, served: true},
		"manifest, before it taken": {match: manifest(http.MethodPut)},
		"manifest, not answered":    {match: manifest(http.MethodPut), served: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := emptyChaos(t, size{pipelines: 1}, 1)
			key := filepath.Join(c.c.Secrets, "registry.key")
			c.write(key, registryKey)
			r := startRegistry(t, c.address)
			target, err := url.Parse("http://" + r.host)
			if err != nil {
				t.Fatal(err)
			}
			// Relative addresses in the registry's answers keep the daemon on this side.
			between := httptest.NewServer(s.wrap(&httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(p *httputil.ProxyRequest) {
				p.SetURL(target)
				p.Out.Host = p.In.Host
			}}))
			t.Cleanup(between.Close)
			host := strings.TrimPrefix(between.URL, "http://")
			text := strings.Replace(pipelineYAML("app0", c.repository.URL), "git: {branch: rendered}", fmt.Sprintf(`oci: {url: "oci://%s/rendered/app0", insecure: true}`, host), 1)
			c.write(filepath.Join(c.c.Pipelines, "app0.yaml"), text)
			s.victim = c.serve(c.c, false)
			tagged := func(n int) func() string {
				return func() string {
					if got := len(r.revisions(t, "rendered/app0")); got != n {
						return fmt.Sprintf("%d artifacts", got)
					}
					return ""
				}
			}
			c.eventually("waiting for the first artifact", tagged(1))
			for n := 1; n <= int(strikes()); n++ {
				s.left.Store(1)
				commit := c.repository.Commit(fmt.Sprint(n), map[string]string{"apps/app0/app.yaml": deployment("app0", fmt.Sprintf("image:%d", n))})
				c.tell(commit)
				c.eventually("waiting for the next artifact", tagged(n+1))
				c.eventually("waiting for the strike", s.fell(n))
				if got := r.revisions(t, "rendered/app0"); got[n] != "main@sha1:"+commit {
					t.Errorf("the tag is at %s, want %s", got[n], commit)
				}
				s.victim.awaitUp(2 * time.Minute)
			}
			if got := s.fired.Load(); got != strikes() {
				t.Errorf("the daemon was killed %d times, want %d", got, strikes())
			}
			time.Sleep(300 * time.Millisecond) // for a push that must not be
			if got := len(r.revisions(t, "rendered/app0")); got != int(strikes())+1 {
				t.Errorf("%d artifacts, want %d", got, strikes()+1)
			}
			if got := r.pushes(t, "rendered/app0"); got > int(strikes())+1 {
				t.Errorf("the manifest was pushed %d times for %d states", got, strikes()+1)
			}
		})
	}
}

// TestKilledWhileItReadsPipelines kills the daemon while the file of a pipeline is written: in the end what the file says
// is done, and a file that was half written has done no harm.
func TestKilledWhileItReadsPipelines(t *testing.T) {
	c := newChaos(t, size{pipelines: 2})
	p := c.serve(c.c, false)
	c.settle()
	file := filepath.Join(c.c.Pipelines, "app0.yaml")
	c.repository.Commit("another directory", map[string]string{"apps/other/app.yaml": deployment("app0", "image:7")})
	states := []string{"apps/app0", "apps/other"}
	text := strings.Replace(pipelineYAML("app0", c.repository.URL), "branch: rendered", "branch: "+branchOf(0), 1)
	before := 0
	for n := range 2 * int(strikes()) {
		next := strings.Replace(text, "path: apps/app0", "path: "+states[(n+1)%2], 1)
		c.write(file, next[:len(next)*(n+1)/(2*int(strikes())+1)])
		time.Sleep(time.Duration(n%5) * 20 * time.Millisecond)
		if n%2 == 0 {
			p.kill()
		}
		c.write(file, next)
		time.Sleep(time.Duration(n%3) * 20 * time.Millisecond)
		p.kill()
		c.newest[0] = []int{7, 0}[n%2]
		c.settle()
		if got := c.shown(1); got != 0 {
			t.Errorf("the other application shows %d", got)
		}
		trees := strings.Fields(c.repository.Git("log", "--format=%T", branchOf(0)))
		if len(trees) != before+1 && before > 0 {
			t.Errorf("%d commits, want one for each change of the file: %d", len(trees), before+1)
		}
		before = len(trees)
	}
}
