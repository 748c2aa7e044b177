// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"go.opentelemetry.io/otel"

	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/telemetry"
)

func TestMain(m *testing.M) {
	if err := testprograms.PlaceRenderer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Everything secret that the processes know.
const (
	hookKey   = "secret-hook-key"
	password  = "secret-git-password"
	collected = "secret-collector-token"
)

func write(t *testing.T, text string, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const pipeline = `apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: shop}
spec:
  source: {git: {url: %[1]s, ref: {branch: main}, secretRef: {name: git}}}
  build: {path: app}
  publish: [{git: {url: %[1]s, secretRef: {name: git}, branch: rendered}}]
`

// natsServer stands between the planner and the worker: it is all that they share.
func natsServer(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the NATS server did not start")
	}
	return s.ClientURL()
}

// TestOneTraceFromAnEventToItsCommit has a daemon that only plans and a worker.
func TestOneTraceFromAnEventToItsCommit(t *testing.T) {
	git := gittest.New(t)
	git.Username, git.Password = "robot", password
	repository := git.Repository(t, "shop")
	repository.Commit("first", map[string]string{"app/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {a: first}\n"})
	collector, dir := collect(t), t.TempDir()
	c := config.Default()
	c.Pipelines, c.Policies, c.Secrets, c.State = dir+"/pipelines", dir+"/policies", dir+"/secrets", dir+"/planner"
	c.Listen, c.Admin.Listen, c.Debounce, c.Workers = "127.0.0.1:0", "", time.Millisecond, 0
	c.NATS.URL = natsServer(t)
	c.Tracing = config.Tracing{Endpoint: collector.URL, Headers: write(t, "Authorization: Bearer "+collected+"\nX-Team: a:b\n", dir, "headers"), Ratio: 1}
	c.Receivers = []config.Receiver{{Name: "git", Provider: "generic", Secret: write(t, hookKey, dir, "hook.key")}}
	write(t, fmt.Sprintf(pipeline, repository.URL), c.Pipelines, "shop.yaml")
	write(t, "robot", c.Secrets, "git/username")
	write(t, password, c.Secrets, "git/password")
	write(t, git.URL, c.Secrets, "git/.hosts")
	write(t, "", c.Policies, "none")
	worker := c
	worker.Workers, worker.State = 1, dir+"/worker"
	before := otel.GetTracerProvider()
	defer otel.SetTracerProvider(before)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listening, ended := make(chan string, 1), make(chan error, 2)
	go func() {
		ended <- daemon.Serve(ctx, &c, daemon.Options{Version: "1.2.3", Listening: func(hooks, _ string) { listening <- hooks }})
	}()
	hooks := <-listening
	go func() { ended <- daemon.Work(ctx, &worker, daemon.Options{Version: "1.2.3"}) }()
	shows(t, repository, "a: first")
	id := event(t, hooks, repository, repository.Commit("second", map[string]string{"app/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {a: second}\n"}))
	commit := shows(t, repository, "a: second")
	stopWhenSaved(t, cancel, ended)

	roots := collector.find(func(s span) bool { return s.Name == "event" && slices.Equal(s.Text["prerig.id"], []string{id}) })
	if len(roots) != 1 || roots[0].Parent != "" {
		t.Fatalf("events of the push: %+v", roots)
	}
	spans := collector.find(func(s span) bool { return s.Trace == roots[0].Trace })
	if diff := cmp.Diff("event(plan(run(fetch render publish)))", shape(spans, roots[0].ID, "event")); diff != "" {
		t.Errorf("the trace: %s\n%+v", diff, spans)
	}
	published := slices.IndexFunc(spans, func(s span) bool { return s.Name == "publish" })
	if published < 0 || !slices.Equal(spans[published].Text["prerig.commits"], []string{commit}) {
		t.Errorf("the trace does not lead to commit %s: %+v", commit, spans)
	}
	for _, secret := range []string{hookKey, password, collected} {
		if collector.sent(secret) {
			t.Errorf("%s was sent with the traces", secret)
		}
	}
	collector.mu.Lock()
	defer collector.mu.Unlock()
	if collector.problem != nil {
		t.Error(collector.problem)
	}
	if h := collector.headers[0]; h.Get("Authorization") != "Bearer "+collected || h.Get("X-Team") != "a:b" {
		t.Errorf("headers: %v", h)
	}
	about := strings.Join(collector.services, " ")
	if !strings.Contains(about, "service.name") || !strings.Contains(about, "prerig") || !strings.Contains(about, "1.2.3") {
		t.Errorf("the resource is %q", about)
	}
}

// event tells the daemon of a commit and gives the event's id.
func event(t *testing.T, hooks string, r *gittest.Repository, commit string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"git": map[string]any{"urls": []string{r.URL}, "ref": "refs/heads/main", "after": commit}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, "http://"+hooks+"/hook/git", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(hookKey))
	mac.Write(body)
	request.Header.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	request.Header.Set("X-Request-Id", commit)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var reply struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil || response.StatusCode != http.StatusAccepted || reply.ID == "" {
		t.Fatalf("answer %d, %+v, %v", response.StatusCode, reply, err)
	}
	return reply.ID
}

// shows waits until the rendered branch holds a text and gives its commit.
func shows(t *testing.T, r *gittest.Repository, text string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if r.Git("branch", "--list", "rendered") == "" {
			continue
		}
		head := r.Git("rev-parse", "rendered")
		for name := range strings.Lines(r.Git("ls-tree", "-r", "--name-only", head)) {
			if strings.Contains(r.Git("show", head+":"+strings.TrimSpace(name)), text) {
				return head
			}
		}
	}
	t.Fatalf("%s was not rendered", text)
	return ""
}

// stopWhenSaved ends the processes; what they have under way they bring to its end first.
func stopWhenSaved(t *testing.T, cancel func(), ended <-chan error) {
	t.Helper()
	time.Sleep(500 * time.Millisecond) // a run that is cut off after its push has its span all the same, and another one later
	cancel()
	for range 2 {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a process does not end")
		}
	}
}

// shape writes the spans below one, in the order of their beginning, which is that of the stages.
func shape(spans []span, id, name string) string {
	var below []string
	for _, want := range []string{"event", "plan", "run", "fetch", "render", "publish"} {
		for _, s := range spans {
			if s.Parent == id && s.Name == want {
				below = append(below, shape(spans, s.ID, s.Name))
			}
		}
	}
	if len(below) == 0 {
		return name
	}
	return name + "(" + strings.Join(below, " ") + ")"
}

func TestTrace(t *testing.T) {
	before := otel.GetTracerProvider()
	defer otel.SetTracerProvider(before)
	for name, test := range map[string]struct {
		suffix string
		ratio  float64
		paths  []string
	}{
		"the URL of a collector":     {"", 1, []string{"/v1/traces"}},
		"with a slash":               {"/", 1, []string{"/v1/traces"}},
		"in full":                    {"/v1/traces", 1, []string{"/v1/traces"}},
		"below a path":               {"/otlp", 1, []string{"/otlp/v1/traces"}},
		"a ratio that keeps nothing": {"", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := collect(t)
			stop, err := telemetry.Trace(config.Tracing{Endpoint: c.URL + test.suffix, Ratio: test.ratio}, "1")
			if err != nil {
				t.Fatal(err)
			}
			_, one := otel.Tracer("test").Start(t.Context(), "one")
			one.End()
			if err := stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.paths, c.paths); diff != "" {
				t.Error(diff)
			}
		})
	}
	otel.SetTracerProvider(before)
	stop, err := telemetry.Trace(config.Tracing{Ratio: 1}, "1")
	if err != nil || stop(t.Context()) != nil || otel.GetTracerProvider() != before {
		t.Errorf("without a collector: %v", err)
	}
}

func TestHeadersAreNotQuoted(t *testing.T) {
	for name, text := range map[string]string{
		"no colon": "A: b\nBearer " + collected + "\n",
		"no file":  "",
	} {
		file := filepath.Join(t.TempDir(), "headers")
		if text != "" {
			write(t, text, file)
		}
		_, err := telemetry.Trace(config.Tracing{Endpoint: "http://127.0.0.1:1", Headers: file, Ratio: 1}, "1")
		if err == nil || strings.Contains(err.Error(), collected) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
