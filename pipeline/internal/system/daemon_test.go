// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/statetest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/server"
)

func TestMain(m *testing.M) {
	if os.Getenv("PRERIG_TEST_DAEMON") != "" {
		os.Exit(child())
	}
	if os.Getenv("PRERIG_TEST_NATS") != "" {
		os.Exit(node())
	}
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU())); err != nil { // they wait more than they work
		panic(err)
	}
	os.Exit(m.Run())
}

// deployment is a workload that every namespace with the label gets a proxy in.
func deployment(name, image string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %s
  namespace: shop
spec:
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      labels: {app: %[1]s, sidecar.istio.io/inject: "true"}
    spec:
      containers:
      - name: app
        image: %[2]s
`, name, image)
}

// pipelineYAML is a pipeline that renders apps/NAME of the repository to the branch rendered.
func pipelineYAML(name, url string, more ...string) string {
	return fmt.Sprintf(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %s, namespace: team}
spec:
  source: {git: {url: %s, ref: {branch: main}}}
  build: {path: apps/%[1]s}
  policies: [{builtIn: istio}]
  publish: [{git: {branch: rendered}}]
%[3]s`, name, url, strings.Join(more, ""))
}

const hookKey = "a key for webhooks"

// fixture is a daemon in this process, with a Git server.
type fixture struct {
	t           *testing.T
	c           *config.Config
	git         *gittest.Server
	repository  *gittest.Repository
	hooks, page string
	stop        func()
	// logs gets the daemon's log; nil drops it.
	logs io.Writer
	// patience is how long eventually waits, if not as long as in all tests.
	patience time.Duration
}

// short are the names of the tests of a daemon that -short does not leave out: they go through most of it.
var short []string

func init() {
	for _, test := range []func(*testing.T){
		TestAPushBecomesARenderedCommit, TestARemovedPipelineTakesItsFilesAlong, TestAFailingPipelineHasSeries,
		TestASecretIsNotShown, TestNoCredentialGetsOut, TestTakesOverOlderState,
	} {
		name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
		short = append(short, name[strings.LastIndexByte(name, '.')+1:])
	}
}

// prepare sets up directories, a repository and a configuration. Tests that do so run beside each other, as they wait more than they
// work, but for those of full size.
func prepare(t *testing.T, pipelines map[string]string) *fixture {
	t.Helper()
	if !full() {
		t.Parallel()
	}
	return prepareAlone(t, pipelines)
}

// prepareAlone is prepare for a test that measures, or changes what others see: nothing else runs beside it.
func prepareAlone(t *testing.T, pipelines map[string]string) *fixture {
	t.Helper()
	if testing.Short() && !slices.Contains(short, t.Name()) {
		t.Skip("LEFT OUT: make test-race runs it, and make e2e-pipeline at full size")
	}
	dir := statetest.Dir(t)
	f := &fixture{t: t, git: gittest.New(t)}
	f.repository = f.git.Repository(t, "config")
	c := config.Default()
	c.Pipelines, c.Policies, c.Secrets, c.State = filepath.Join(dir, "pipelines"), filepath.Join(dir, "policies"), filepath.Join(dir, "secrets"), filepath.Join(dir, "s")
	c.Listen, c.Admin.Listen, c.Workers, c.Debounce = "127.0.0.1:0", "127.0.0.1:0", 2, 50*time.Millisecond
	for _, name := range []string{c.Pipelines, c.Policies, c.Secrets} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(dir, "hook.key")
	f.write(key, hookKey)
	c.Receivers = []config.Receiver{{Name: "git", Provider: "generic", Secret: key}}
	f.c = &c
	for name, text := range pipelines {
		f.write(filepath.Join(c.Pipelines, name), strings.ReplaceAll(text, "URL", f.repository.URL))
	}
	return f
}

func (f *fixture) write(path, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// start starts the daemon.
func (f *fixture) start() {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	var first sync.Once
	var out io.Writer = io.Discard
	switch {
	case f.logs != nil:
		out = f.logs
	case os.Getenv("PRERIG_TEST_LOGS") != "":
		out = os.Stderr
	}
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	go func() {
		done <- daemon.Serve(ctx, f.c, daemon.Options{Version: "test", Render: render.Options{Command: renderer(f.t)}, Log: log, Listening: func(hooks, page string) {
			first.Do(func() {
				f.hooks, f.page = hooks, page
				close(ready)
			})
		}})
	}()
	select {
	case <-ready:
	case err := <-done:
		f.t.Fatal(err)
	case <-time.After(2 * time.Minute):
		f.t.Fatal("the daemon did not start")
	}
	f.stop = func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("the daemon ended with %v", err)
		}
		f.stop = func() {}
	}
	f.t.Cleanup(func() { f.stop() })
}

// push tells the daemon that a branch moved, as a Git host would.
func (f *fixture) push(commit string) (status int) {
	f.t.Helper()
	body, err := json.Marshal(map[string]any{"git": map[string]any{"urls": []string{f.repository.URL}, "ref": "refs/heads/main", "after": commit}})
	if err != nil {
		f.t.Fatal(err)
	}
	status, err = post(f.hooks, body, commit)
	if err != nil {
		f.t.Fatal(err)
	}
	return status
}

func post(address string, body []byte, id string) (int, error) {
	resp, err := send(address, body, id)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

// send sends a signed event; the caller closes the answer's body.
func send(address string, body []byte, id string) (*http.Response, error) {
	r, err := http.NewRequest(http.MethodPost, "http://"+address+"/hook/git", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, []byte(hookKey))
	mac.Write(body)
	r.Header.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	r.Header.Set("X-Request-Id", id)
	return http.DefaultClient.Do(r)
}

// pipelines asks the page's API, again where the daemon says that it could not read its state in time, as on a loaded machine.
func (f *fixture) pipelines(names ...string) []server.Pipeline {
	f.t.Helper()
	url := "http://" + f.page + "/api/v1/pipelines?"
	for _, name := range names {
		url += "pipeline=" + name + "&"
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		resp, err := http.Get(url)
		if err != nil {
			f.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			f.t.Fatal(err)
		}
		if resp.StatusCode == http.StatusServiceUnavailable && time.Now().Before(deadline) {
			continue
		}
		var out []server.Pipeline
		if err := json.Unmarshal(text, &out); err != nil {
			f.t.Fatalf("asking for pipelines: %s: %s", resp.Status, text)
		}
		return out
	}
}

// eventually waits until check gives "".
func (f *fixture) eventually(what string, check func() string) {
	f.t.Helper()
	// On a loaded machine a source may not answer in time, after which it is not looked at for a minute.
	const longest = 6 * time.Minute
	deadline := time.Now().Add(max(longest, f.patience))
	for {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: %s", what, problem)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// rendered returns a file of the branch rendered, "" where it is not there.
func (f *fixture) rendered(path string) string {
	f.t.Helper()
	if f.repository.Git("branch", "--list", "rendered") == "" {
		return ""
	}
	if f.repository.Git("ls-tree", "rendered", path) == "" {
		return ""
	}
	return f.repository.Git("show", "rendered:"+path)
}

// shows waits until a rendered file holds a text.
func (f *fixture) shows(path, text string) {
	f.t.Helper()
	f.eventually("waiting for "+text+" in "+path, func() string {
		if got := f.rendered(path); !strings.Contains(got, text) {
			return fmt.Sprintf("got %.100q; pipelines %s", got, f.describe())
		}
		return ""
	})
}

// eventSink takes notifications as CloudEvents. It returns its URL, and what gives the types of the events that have come.
func eventSink(t *testing.T) (url string, told func() []string) {
	t.Helper()
	var mu sync.Mutex
	var types []string
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		types = append(types, r.Header.Get("Ce-Type"))
	}))
	t.Cleanup(sink.Close)
	return sink.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(types)
	}
}

func (f *fixture) describe() string {
	text := ""
	for _, p := range f.pipelines() {
		text += fmt.Sprintf("%s: %s %s; ", p.Name, p.State, p.Message)
	}
	return text
}

func (f *fixture) commits() int {
	f.t.Helper()
	if f.repository.Git("branch", "--list", "rendered") == "" {
		return 0
	}
	return len(strings.Fields(f.repository.Git("rev-list", "rendered")))
}

func TestAPushBecomesARenderedCommit(t *testing.T) {
	f := prepare(t, map[string]string{"shop.yaml": pipelineYAML("web", "URL")})
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	f.start()
	const file = "web/shop/deployment-web.yaml"
	f.shows(file, "image: web:1")
	if got := f.rendered(file); !strings.Contains(got, "istio-proxy") {
		t.Errorf("nothing was injected:\n%s", got)
	}
	second := f.repository.Commit("second", map[string]string{"apps/web/web.yaml": deployment("web", "web:2")})
	begin := time.Now()
	if status := f.push(second); status != http.StatusAccepted {
		t.Fatalf("the webhook was answered with %d", status)
	}
	f.shows(file, "image: web:2")
	t.Logf("from the webhook to the commit: %s", time.Since(begin))
	if status := f.push(second); status != http.StatusOK {
		t.Errorf("a repeated delivery was answered with %d", status)
	}
	message := f.repository.Git("log", "-1", "--format=%B", "rendered")
	for _, want := range []string{"Render web: second", "Prerig-Source-Revision: main@sha1:" + second, "Prerig-Command: prerig render team/web --revision main@sha1:" + second, "Prerig-Version: test"} {
		if !strings.Contains(message, want) {
			t.Errorf("the commit's message lacks %q:\n%s", want, message)
		}
	}
	// A commit beside the pipeline's path, and one that changes nothing in the result, lead to no commit.
	before := f.commits()
	f.push(f.repository.Commit("beside", map[string]string{"README.md": "x"}))
	f.push(f.repository.Commit("a comment", map[string]string{"apps/web/web.yaml": "# a comment\n" + deployment("web", "web:2")}))
	f.eventually("waiting for the run without a change", func() string {
		runs := f.pipelines("team/web")[0].Runs
		if runs[0].Outcome != "Unchanged" {
			return runs[0].Outcome
		}
		return ""
	})
	if got := f.commits(); got != before || before != 2 {
		t.Errorf("%d commits, then %d", before, got)
	}
}
