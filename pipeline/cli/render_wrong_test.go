// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/server"
)

// TestWrongFlagsOfRendering has what cannot be meant refused before anything is rendered.
func TestWrongFlagsOfRendering(t *testing.T) {
	repository, pipelines := fleet(t, "web")
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a negative number of jobs":           {[]string{"render", "--jobs", "-3"}, "the flag --jobs must not be negative, found -3"},
		"a negative number of jobs of diff":   {[]string{"diff", "-j", "-1"}, "the flag --jobs must not be negative, found -1"},
		"a directory for a source that is no": {[]string{"render", "--source", "https://git.example/typo.git=" + dir}, "has the source https://git.example/typo.git"},
		"a revision of a directory":           {[]string{"render", "--source", dir, "--revision", "main@sha1:00"}, "--source " + dir + " and --revision cannot be used together"},
		"a source that is no directory":       {[]string{"diff", "--source", repository.URL + "=" + dir + "/nowhere"}, "/nowhere is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, stderr := prerig(t, append(c.args, "--pipelines", pipelines, "--cache", t.TempDir())...)
			if code != 2 || out != "" || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, want 2 and %q\n%s%s", code, c.want, out, stderr)
			}
		})
	}
}

func TestACommandThatIsNearlyOne(t *testing.T) {
	for typed, want := range map[string]string{"renderr": "did you mean render?", "statsu": "did you mean daemon status?", "serv": "did you mean serve?", "photograph": "unknown command photograph; see"} {
		if code, _, stderr := prerig(t, typed); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", typed, code, stderr)
		}
	}
}

// TestHelpAndCompletionOfWhatIsNoCommand must not look as if they had worked: a shell reads the output of completion.
func TestHelpAndCompletionOfWhatIsNoCommand(t *testing.T) {
	for typed, want := range map[string]string{
		"help nope": "unknown command nope", "help rendr": "did you mean render?", "help images nope": "unknown command nope; see prerig images --help",
		"completion": "specify a shell, one of bash, zsh, fish, powershell", "completion foo": "unknown command foo",
	} {
		if code, out, stderr := prerig(t, strings.Fields(typed)...); code != ExitError || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s%s", typed, code, out, stderr)
		}
	}
	for _, typed := range []string{"help", "help render", "help images pin", "completion --help", "completion bash"} {
		if code, out, stderr := prerig(t, strings.Fields(typed)...); code != ExitOK || out == "" {
			t.Errorf("%s: exit code %d, %s%s", typed, code, out, stderr)
		}
	}
	for _, of := range []string{"", "render", "images pin"} {
		_, help, _ := prerig(t, strings.Fields("help "+of)...)
		if _, flag, _ := prerig(t, strings.Fields(of+" --help")...); help != flag {
			t.Errorf("help %s differs from --help:\n%s\n%s", of, help, flag)
		}
	}
}

func TestWrongFlagsForADaemon(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Authorization") {
		case "":
			http.NotFound(w, r)
		case "Bearer page":
			_, _ = w.Write([]byte("<html>"))
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer other.Close()
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	state := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no time between looks":    {[]string{"daemon", "status", "--watch", "--every", "0"}, "the flag --every must be more than 0, found 0s"},
		"a check without an end":   {[]string{"daemon", "status", "--watch", "--check"}, "the flags --watch and --check cannot be used together"},
		"a server without scheme":  {[]string{"daemon", "status", "--server", "127.0.0.1:8081"}, `the flag --server must be a URL that begins with http:// or https://, found "127.0.0.1:8081"`},
		"names and all":            {[]string{"daemon", "reconcile", "web", "--all"}, "pipelines and --all cannot be used together"},
		"no time to wait":          {[]string{"daemon", "reconcile", "web", "--wait", "--timeout", "-1s"}, "the flag --timeout must be more than 0, found -1s"},
		"a server that is another": {[]string{"daemon", "status", "--server", other.URL}, "404 Not Found; is " + other.URL + " the address of its page"},
		"a server with pages":      {[]string{"daemon", "status", "--server", other.URL, "--token-file", file("page")}, "is " + other.URL + " the address of its page"},
		"a server in between":      {[]string{"daemon", "status", "--server", other.URL, "--token-file", file("x")}, "502 Bad Gateway"},
		"a file that is no token":  {[]string{"daemon", "status", "--server", other.URL, "--token-file", file("a: b\nc: d\n")}, "does not contain a token"},
		"an empty token":           {[]string{"daemon", "status", "--server", other.URL, "--token-file", file("\n")}, "does not contain a token"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, stderr := prerig(t, append(c.args, "--state", state)...)
			if code != 2 || out != "" || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, want 2 and %q\n%s%s", code, c.want, out, stderr)
			}
		})
	}
}

// TestOneConnectionForManyQuestions asks over the socket: one that stays open for each question would use up the files that
// the daemon may have open.
func TestOneConnectionForManyQuestions(t *testing.T) {
	state, err := os.MkdirTemp("", "p") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(state)
	l, err := net.Listen("unix", filepath.Join(state, "prerig.sock"))
	if err != nil {
		t.Fatal(err)
	}
	var connections atomic.Int64
	daemon := &http.Server{
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				connections.Add(1)
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode([]server.Pipeline{}) }),
	}
	go func() { _ = daemon.Serve(l) }()
	defer daemon.Close()
	d := &daemonClient{state: state}
	for range 20 {
		if _, err := d.getPipelines(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n > 2 {
		t.Errorf("%d connections for 20 questions", n)
	}
}

// TestTheEndOfAWaitNamesItsFlag: that a context has a deadline is nothing that anybody has typed.
func TestTheEndOfAWaitNamesItsFlag(t *testing.T) {
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
	}))
	defer daemon.Close()
	d := &daemonClient{url: daemon.URL, state: t.TempDir()}
	err := awaitAllHandled(t.Context(), Streams{}, d, server.Answer{Token: "a", Pipelines: []string{"team/web"}}, 50*time.Millisecond, "text")
	if err == nil || !strings.Contains(err.Error(), "waiting for 1 of 1 pipelines: not done within 50ms (--timeout)") {
		t.Errorf("got %v", err)
	}
}

// TestResultsOfSeveralBranchesDoNotMixInADirectory has two pipelines that publish to the same path, each on its own branch.
func TestResultsOfSeveralBranchesDoNotMixInADirectory(t *testing.T) {
	repository, _ := fleet(t, "web")
	repository.Commit("staging", map[string]string{"apps/staging/app.yaml": application("web", "app:2")})
	pipelines, dir := t.TempDir(), t.TempDir()
	for name, app := range map[string]string{"prod": "web", "staging": "staging", "again": "web"} {
		text := "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: " + name + ", namespace: team}\nspec:\n  source: {git: {url: " + repository.URL +
			", ref: {branch: main}}}\n  build: {path: apps/" + app + "}\n  policies: [{builtIn: istio}]\n  publish: [{git: {branch: env/" + name + ", path: shop}}]\n"
		must(t, os.WriteFile(filepath.Join(pipelines, name+".yaml"), []byte(text), 0o600))
	}
	common := []string{"--pipelines", pipelines, "--cache", t.TempDir(), "--to", dir}
	code, _, stderr := prerig(t, append([]string{"render"}, common...)...)
	if code != 2 || !strings.Contains(stderr, "team/prod and team/staging both have shop/shop/deployment-web.yaml") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if files := tree(t, dir); len(files) > 0 {
		t.Errorf("written: %v", files)
	}
	if code, _, stderr = prerig(t, append([]string{"render", "team/prod", "team/again"}, common...)...); code != 0 {
		t.Errorf("of equal files: exit code %d\n%s", code, stderr)
	}
}

// TestACheckIsOfTheCatalogToo in every form of the output: pipelines that cannot be read are no good state of those that
// could be before.
func TestACheckIsOfTheCatalogToo(t *testing.T) {
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/catalog" {
			var c server.Catalog
			c.Error = "no such repository"
			_ = json.NewEncoder(w).Encode(c)
			return
		}
		if r.URL.Path == "/api/v1/promotions" {
			_ = json.NewEncoder(w).Encode(server.Promotions{})
			return
		}
		if r.URL.Path == "/api/v1/previews" {
			_ = json.NewEncoder(w).Encode(server.Previews{})
			return
		}
		_ = json.NewEncoder(w).Encode([]server.Pipeline{{Name: "web", State: server.StateReady}})
	}))
	defer daemon.Close()
	for _, args := range [][]string{{}, {"-o", "json"}, {"-o", "yaml"}, {"web"}, {"--failing"}} {
		args = append([]string{"daemon", "status", "--server", daemon.URL, "--state", t.TempDir()}, args...)
		if code, out, stderr := prerig(t, args...); code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", args, code, out, stderr)
		}
		code, out, stderr := prerig(t, append(args, "--check")...)
		if code != 1 || !strings.Contains(stderr, "the pipelines cannot be read") {
			t.Errorf("%s --check: exit code %d\n%s%s", args, code, out, stderr)
		}
	}
}
