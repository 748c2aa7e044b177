// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/review/dryrun"
)

// commandVariable makes the test's own binary the command, for tests that need a shell to call it.
const commandVariable = "PRERIG_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		os.Exit(Main(context.Background(), os.Args[1:], Standard(), ""))
	}
	if err := testprograms.PlaceRenderer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// application is a Deployment that is injected.
func application(name, image string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s, namespace: shop}\nspec:\n  selector: {matchLabels: {app: %[1]s}}\n"+
		"  template:\n    metadata: {labels: {app: %[1]s, sidecar.istio.io/inject: \"true\"}}\n    spec: {containers: [{name: app, image: \"%[2]s\"}]}\n", name, image)
}

// fleet is a repository with some applications, and a pipeline for each.
func fleet(t *testing.T, names ...string) (repository *gittest.Repository, pipelines string) {
	t.Helper()
	repository = gittest.New(t).Repository(t, "config")
	pipelines = t.TempDir()
	files := map[string]string{}
	for _, name := range names {
		files["apps/"+name+"/app.yaml"] = application(name, "app:1")
		text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s, namespace: team}\nspec:\n"+
			"  source: {git: {url: %s, ref: {branch: main}}}\n  build: {path: apps/%[1]s}\n  policies: [{builtIn: istio}]\n  publish: [{git: {branch: rendered}}]\n", name, repository.URL)
		if err := os.WriteFile(filepath.Join(pipelines, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repository.Commit("first", files)
	return repository, pipelines
}

// prerig runs a command line.
func prerig(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Main(t.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &err}, "test")
	return code, out.String(), err.String()
}

func TestRenderDiffAndAffected(t *testing.T) {
	repository, pipelines := fleet(t, "cart", "web", "api")
	common := []string{"--pipelines", pipelines, "--cache", t.TempDir()}
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, err := prerig(t, append(args, common...)...)
		if code != want {
			t.Fatalf("prerig %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, err)
		}
		return out
	}
	if out := run(0, "render", "team/web"); !strings.Contains(out, "istio-proxy") || strings.Contains(out, "name: cart") {
		t.Errorf("rendered:\n%s", out)
	}
	dir := t.TempDir()
	run(0, "render", "--to", dir)
	if _, err := os.Stat(filepath.Join(dir, "cart/shop/deployment-cart.yaml")); err != nil {
		t.Error(err)
	}
	if out := run(0, "diff", "--against", dir, "--exit-code"); !strings.Contains(out, "3 pipelines compared: nothing would change") {
		t.Errorf("nothing was changed:\n%s", out)
	}
	repository.Commit("second", map[string]string{
		"apps/cart/app.yaml": application("cart", "app:2"), "apps/web/app.yaml": application("web", "app:2"), "apps/web/more.yaml": application("more", "app:2"),
	})
	var c dryrun.Comparison
	if err := json.Unmarshal([]byte(run(1, "diff", "--against", dir, "-o", "json")), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Changes) != 2 || len(c.Changes[0].Objects) != 2 || c.Changes[0].Objects[0].Name != "Deployment shop/cart" || c.Changes[1].Kind != "added" {
		t.Errorf("%+v", c)
	}
	run(0, "diff", "--against", dir, "--exit-code=false")
	if out := run(1, "diff", "--against", dir, "-o", "markdown"); !strings.Contains(out, "<details open><summary>modified: the same in 2 Deployments of 2 pipelines</summary>") || !strings.Contains(out, "+        image: app:2") {
		t.Errorf("Markdown:\n%s", out)
	}
	var found affectedReport
	if err := json.Unmarshal([]byte(run(0, "affected", "HEAD~1..HEAD", "-C", repository.Work, "--url", repository.URL)), &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Affected) != 2 || found.Affected[0].Pipeline != "team/cart" || found.Affected[1].Pipeline != "team/web" || found.LookedAt != 3 {
		t.Errorf("%+v", found)
	}
	if code, _, err := prerig(t, append([]string{"render", "team/none"}, common...)...); code != 2 || !strings.Contains(err, "no pipeline team/none") {
		t.Errorf("exit code %d, %s", code, err)
	}
}

// serve runs a daemon until the end of the test and gives its state directory and the address of its page.
func serve(t *testing.T, pipelines string) (state, page string) {
	t.Helper()
	state, page, _ = serveUntil(t, pipelines)
	return state, page
}

// serveUntil is serve for a daemon that is to end before the test does, as it would act upon what is changed later.
func serveUntil(t *testing.T, pipelines string) (state, page string, stop func()) {
	t.Helper()
	state, err := os.MkdirTemp("", "p") // names of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	c := config.Default()
	c.Pipelines, c.State, c.Listen, c.Admin.Listen, c.Workers = pipelines, state, "127.0.0.1:0", "127.0.0.1:0", 1
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- daemon.Serve(ctx, &c, daemon.Options{Version: "test", Listening: func(_, page string) { ready <- page }})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	select {
	case page = <-ready:
		return state, page, stop
	case err := <-done:
		done <- nil
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("the daemon did not start")
	}
	return "", "", nil
}

// TestDaemonCommands has a daemon answer the commands over its socket, and compares with what it published.
func TestDaemonCommands(t *testing.T) {
	repository, pipelines := fleet(t, "web")
	state, page := serve(t, pipelines)
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, err := prerig(t, append(args, "--state", state)...)
		if code != want {
			t.Fatalf("prerig %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, err)
		}
		return out + err
	}
	if out := run(0, "daemon", "reconcile", "team/web", "--wait"); !strings.Contains(out, "Ready") {
		t.Errorf("reconcile:\n%s", out)
	}
	if out := run(0, "daemon", "status"); !strings.Contains(out, "team/web  Ready") || !strings.Contains(out, "main@sha1:") {
		t.Errorf("status:\n%s", out)
	}
	if code, out, _ := prerig(t, "diff", "--pipelines", pipelines, "--cache", t.TempDir(), "--exit-code"); code != 0 {
		t.Errorf("what was published differs from what is rendered:\n%s", out)
	}
	if out := run(0, "daemon", "suspend", "team/web"); !strings.Contains(out, "suspended team/web") {
		t.Errorf("suspend:\n%s", out)
	}
	repository.Commit("second", map[string]string{"apps/web/app.yaml": application("web", "app:2")})
	if out := run(1, "daemon", "reconcile", "team/web", "--wait"); !strings.Contains(out, "on hold or suspended, and not run: team/web") {
		t.Errorf("reconcile while suspended:\n%s", out)
	}
	if out := run(0, "daemon", "reconcile", "--all", "--wait"); !strings.Contains(out, "Suspended") {
		t.Errorf("reconcile of all while one is suspended:\n%s", out)
	}
	if got := repository.Git("show", "rendered:web/shop/deployment-web.yaml"); strings.Contains(got, "app:2") {
		t.Error("a suspended pipeline was published")
	}
	run(0, "daemon", "resume", "team/web")
	run(0, "daemon", "reconcile", "--all", "--wait")
	if got := repository.Git("show", "rendered:web/shop/deployment-web.yaml"); !strings.Contains(got, "app:2") {
		t.Error("a resumed pipeline was not published")
	}
	if out := run(0, "daemon", "status", "team/web"); !strings.Contains(out, "Published") || !strings.Contains(out, "OUTCOME") {
		t.Errorf("status of one:\n%s", out)
	}
	repository.Commit("broken", map[string]string{"apps/web/app.yaml": "a: [\n"})
	if out := run(1, "daemon", "reconcile", "team/web", "--wait"); !strings.Contains(out, "Stalled") {
		t.Errorf("reconcile of what is broken:\n%s", out)
	}
	for _, args := range [][]string{{"daemon", "reconcile", "team/none"}, {"daemon", "reconcile"}, {"daemon", "status", "-o", "xml"}} {
		run(2, args...)
	}
	// Over HTTP the token is needed.
	server := "http://" + page
	if code, out, err := prerig(t, "daemon", "suspend", "team/web", "--server", server, "--state", state); code != 0 {
		t.Errorf("with the token: %d, %s%s", code, out, err)
	}
	if code, _, err := prerig(t, "daemon", "suspend", "team/web", "--server", server, "--state", t.TempDir()); code != 2 || !strings.Contains(err, "token") {
		t.Errorf("without the token: %d, %s", code, err)
	}
}
