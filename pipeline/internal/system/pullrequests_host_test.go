// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/internal/giteatest"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// giteaProxy is what the daemon and everybody who pushes see of Gitea. It may refuse calls of the API, and tells of what is written.
type giteaProxy struct {
	*httptest.Server
	to       *httputil.ReverseProxy
	refusing atomic.Bool
	strike   atomic.Pointer[func()] // called once, at the next call that writes, before or after it has taken effect

	calls, refused, writes atomic.Int64

	mu   sync.Mutex
	when map[string]time.Time // when a write to a path was answered first with success
}

func newGiteaProxy(t *testing.T) *giteaProxy {
	p := &giteaProxy{when: map[string]time.Time{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *giteaProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	api, push := strings.HasPrefix(r.URL.Path, "/api/"), strings.HasSuffix(r.URL.Path, "/git-receive-pack") && r.Method == http.MethodPost
	writes := push || api && r.Method != http.MethodGet
	if api {
		p.calls.Add(1)
	}
	struck := (*func())(nil)
	if writes {
		p.writes.Add(1)
		struck = p.strike.Swap(nil)
	}
	refuse := api && p.refusing.Load() && rand.IntN(3) == 0
	after := rand.IntN(2) == 0
	if struck != nil && !after {
		(*struck)()
	}
	recorder := httptest.NewRecorder()
	if !refuse || after {
		// What has begun goes on, also where the one who asked is gone.
		p.to.ServeHTTP(recorder, r.WithContext(context.WithoutCancel(r.Context())))
	}
	if struck != nil && after {
		(*struck)()
	}
	if refuse {
		p.refused.Add(1)
		answerNo(w)
		return
	}
	if writes && recorder.Code/100 == 2 {
		p.note(r.Method + " " + r.URL.Path)
	}
	for key, values := range recorder.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes())
}

// answerNo answers as hosts do that have too much to do.
func answerNo(w http.ResponseWriter) {
	switch rand.IntN(4) {
	case 0:
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"message": "too many requests"}`, http.StatusTooManyRequests)
	case 1:
		http.Error(w, `{"message": "something went wrong"}`, http.StatusInternalServerError)
	case 2:
		http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
	default:
		panic(http.ErrAbortHandler)
	}
}

func (p *giteaProxy) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.when[what]; !ok {
		p.when[what] = time.Now()
	}
}

// forget lets the next write be the first again.
func (p *giteaProxy) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.when)
}

func (p *giteaProxy) first(what string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.when[what]
}

// giteaPull is a pull request as Gitea tells of it.
type giteaPull struct {
	Number int64  `json:"number"`
	State  string `json:"state"`
	Merged bool   `json:"merged"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	Labels []struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	} `json:"labels"`
	Head struct {
		Label string `json:"label"`
		SHA   string `json:"sha"`
	} `json:"head"`
	Base struct {
		Ref string `json:"ref"`
	} `json:"base"`
}

func (p *giteaPull) has(label string) bool {
	for _, one := range p.Labels {
		if one.Name == label {
			return true
		}
	}
	return false
}

// pullEvent is what Gitea tells others of a pull request.
type pullEvent struct {
	Action string    `json:"action"`
	Number int64     `json:"number"`
	Pull   giteaPull `json:"pull_request"`
	Sender struct {
		Login string `json:"login"`
	} `json:"sender"`
}

// reviews is a daemon in a process of its own whose sources and results are in repositories of Gitea, which tells it of pushes.
type reviews struct {
	*chaos
	gitea  *giteatest.Server
	proxy  *giteaProxy
	daemon *process
	source *testbed.Repository // a work tree
	ann    string              // a token of somebody who may write

	eventsMu sync.Mutex
	events   []pullEvent
}

// newReviews starts Gitea with the repositories shop/config, which holds applications, and shop/rendered and shop/direct, which are
// empty.
func newReviews(t *testing.T, applications int) *reviews {
	t.Helper()
	proxy := newGiteaProxy(t)
	g := giteatest.Start(t, giteatest.Options{URL: proxy.URL})
	to, err := url.Parse(g.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy.to = httputil.NewSingleHostReverseProxy(to)
	f := prepareAlone(t, nil)
	r := &reviews{gitea: g, proxy: proxy}
	r.chaos = &chaos{fixture: f, newest: make([]int, applications), answers: map[int]int{}, logs: filepath.Join(t.TempDir(), "log"), patience: time.Minute}
	r.address, f.page = free(t), free(t)
	f.c.Listen, f.c.Admin.Listen, f.c.NATS.AckWait = r.address, f.page, 2*time.Second
	f.c.Receivers = append(f.c.Receivers, config.Receiver{Name: "gitea", Provider: "gitea", Secret: f.c.Receivers[0].Secret})
	r.people()
	files := map[string]string{}
	for i := range applications {
		files[applicationFile(i)] = deployment(fmt.Sprintf("app%d", i), "image:0")
	}
	r.commit("first", files)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last of what the processes logged:\n%s", r.lastLogged(40))
		}
	})
	return r
}

func applicationFile(i int) string { return fmt.Sprintf("apps/app%d/app.yaml", i) }

// people makes users, repositories and webhooks, and the daemon's secret.
func (r *reviews) people() {
	g := r.gitea
	for _, name := range []string{"prerig", "ann"} {
		g.User(name)
	}
	r.ann = g.Token("ann", "all")
	g.Must(g.Admin, http.MethodPost, "/orgs", map[string]any{"username": "shop"}, nil)
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		var e pullEvent
		if json.NewDecoder(request.Body).Decode(&e) == nil && e.Number > 0 {
			r.eventsMu.Lock()
			r.events = append(r.events, e)
			r.eventsMu.Unlock()
		}
	}))
	r.t.Cleanup(sink.Close)
	hook := func(repository, to string, events ...string) {
		g.Must(g.Admin, http.MethodPost, "/repos/shop/"+repository+"/hooks", map[string]any{
			"type": "gitea", "active": true, "events": events, "config": map[string]any{"url": to, "content_type": "json", "secret": hookKey},
		}, nil)
	}
	for _, name := range []string{"config", "rendered", "direct"} {
		g.Must(g.Admin, http.MethodPost, "/orgs/shop/repos", map[string]any{"name": name, "default_branch": "main", "private": true}, nil)
		for _, user := range []string{"prerig", "ann"} {
			g.Must(g.Admin, http.MethodPut, "/repos/shop/"+name+"/collaborators/"+user, map[string]any{"permission": "write"}, nil)
		}
		events := []string{"push"}
		if name == "rendered" {
			events = append(events, "pull_request")
		}
		hook(name, "http://"+r.address+"/hook/gitea", events...)
	}
	hook("rendered", sink.URL, "pull_request", "pull_request_sync")
	token := g.Token("prerig", "write:repository,write:issue")
	for key, text := range map[string]string{"username": "prerig", "password": token, "token": token, ".hosts": r.proxy.URL} {
		r.write(filepath.Join(r.c.Secrets, "team", "gitea", key), text)
	}
	r.source = &testbed.Repository{Work: r.t.TempDir()}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"remote", "add", "origin", r.remote("config")}} {
		if _, err := r.source.InWork(context.Background(), args...); err != nil {
			r.t.Fatal(err)
		}
	}
}

// remote is the URL of a repository for ann's git.
func (r *reviews) remote(repository string) string {
	return strings.Replace(r.proxy.URL, "://", "://ann:"+r.ann+"@", 1) + "/shop/" + repository + ".git"
}

// commit pushes files to the source.
func (r *reviews) commit(subject string, files map[string]string) {
	r.t.Helper()
	if _, err := r.source.Commit(context.Background(), subject, files); err != nil {
		r.t.Fatal(err)
	}
}

// setImage pushes a state of one application.
func (r *reviews) setImage(i, n int) {
	r.t.Helper()
	r.newest[i] = n
	r.commit(fmt.Sprintf("app%d gets image:%d", i, n), map[string]string{applicationFile(i): deployment(fmt.Sprintf("app%d", i), fmt.Sprintf("image:%d", n))})
}

// pipeline writes one that publishes by pull request; want are more of its fields, and more is more of its spec.
func (r *reviews) pipeline(i int, cluster, want, more string) {
	r.t.Helper()
	r.write(filepath.Join(r.c.Pipelines, fmt.Sprintf("app%d.yaml", i)), fmt.Sprintf(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: app%d, namespace: team, labels: {cluster: %q}}
spec:
  source: {git: {url: "%s/shop/config.git", ref: {branch: main}, secretRef: {name: gitea}}}
  build: {path: apps/app%[1]d}
  publish:
  - git:
      url: %[3]s/shop/rendered.git
      branch: main
      path: app%[1]d
      secretRef: {name: gitea}
      pullRequest: {provider: Gitea, labels: [rendered]%[4]s}
%[5]s`, i, cluster, r.proxy.URL, want, more))
}

func (r *reviews) serveReviews() {
	r.t.Helper()
	r.daemon = r.serve(r.c, false)
}

// pulls are all pull requests of the rendered repository, newest first.
func (r *reviews) pulls(state string) (out []giteaPull) {
	r.t.Helper()
	for page := 1; ; page++ {
		var some []giteaPull
		var answer json.RawMessage
		path := fmt.Sprintf("/repos/shop/rendered/pulls?state=%s&sort=newest&limit=50&page=%d", state, page)
		if status := r.gitea.API(r.ann, http.MethodGet, path, nil, &answer); status == http.StatusNotFound {
			return nil // so Gitea answers for an empty repository
		}
		if err := json.Unmarshal(answer, &some); err != nil {
			r.t.Fatalf("%s: %s", path, answer)
		}
		out = append(out, some...)
		if len(some) < 50 {
			slices.SortFunc(out, func(a, b giteaPull) int { return int(b.Number - a.Number) })
			return out
		}
	}
}

func pullPath(number int64) string { return fmt.Sprintf("/repos/shop/rendered/pulls/%d", number) }

// inRendered asks the rendered repository on the server; "" is also for what is not there.
func (r *reviews) inRendered(args ...string) string {
	command := exec.Command("git", args...)
	command.Dir, command.Env = filepath.Join(r.gitea.Repositories, "shop", "rendered.git"), testbed.Environment()
	out, err := command.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// image is what a commit or branch of the rendered repository has of an application, "" for nothing.
func (r *reviews) image(at string, i int) string {
	_, after, _ := strings.Cut(r.inRendered("show", at+":"+r.file(i)), "image: image:")
	image, _, _ := strings.Cut(after, "\n")
	return image
}
