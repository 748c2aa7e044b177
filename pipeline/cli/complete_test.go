// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/server"
)

// completions are what a shell is told for the last word.
func completions(t *testing.T, args ...string) []string {
	t.Helper()
	code, out, said := command(t, "", append([]string{"__complete"}, args...)...)
	if code != 0 {
		t.Fatalf("%q: %d %s", args, code, said)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, ":") {
		t.Fatalf("%q: no directive at the end of %q", args, out)
	}
	return lines[:len(lines)-1]
}

func TestCompletePipelinesOfFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	pipeline := func(namespace, name string) string {
		return "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
			"spec: {source: {git: {url: \"https://git.example.com/x/apps.git\"}}, publish: [{git: {branch: rendered, path: " + namespace + "-" + name + "}}]}\n"
	}
	writeFile(t, "here/a.yaml", pipeline("shop", "web")+"---\n"+pipeline("shop", "till")+"---\n"+pipeline("team", "web"))
	for _, of := range [][]string{{"render"}, {"diff"}, {"charts", "lock"}, {"charts", "update"}, {"charts", "verify"}} {
		args := append(slices.Clone(of), "--pipelines", "here", "shop/web", "shop/")
		if got := completions(t, args...); !slices.Equal(got, []string{"shop/till"}) {
			t.Errorf("%q: %q", args, got)
		}
	}
	if got := completions(t, "render", "--pipelines", "nowhere", ""); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestCompletePipelinesOfDaemon(t *testing.T) {
	state := t.TempDir()
	socket, err := net.Listen("unix", filepath.Join(state, "prerig.sock"))
	must(t, err)
	api := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = []server.Pipeline{{Name: "shop/web"}, {Name: "team/web"}}
		if r.URL.Path == "/api/v1/catalog" {
			answer = map[string]any{"removals": []map[string]any{{"pipeline": "old/web"}}}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	})}
	go func() { _ = api.Serve(socket) }()
	t.Cleanup(func() { api.Close() })
	for _, of := range []string{"status", "reconcile", "suspend", "resume", "promote", "hold", "rollback"} {
		if got := completions(t, "daemon", of, "--state", state, ""); !slices.Equal(got, []string{"shop/web", "team/web"}) {
			t.Errorf("%s: %q", of, got)
		}
	}
	if got := completions(t, "daemon", "remove", "--state", state, ""); !slices.Equal(got, []string{"old/web"}) {
		t.Errorf("remove: %q", got)
	}
	if got := completions(t, "daemon", "status", "--state", t.TempDir(), ""); len(got) != 0 {
		t.Errorf("without a daemon: %q", got)
	}
}

func TestCompleteWorkloadsAndPolicies(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "k8s/web.yaml", initWeb+"---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n")
	writeFile(t, "other/job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: nightly}\nspec: {template: {spec: {containers: [{name: a, image: b}]}}}\n")
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"explain", ""}, []string{"deployment/shop/web", "job/nightly"}},
		{[]string{"explain", "-f", "k8s", "dep"}, []string{"deployment/shop/web"}},
		{[]string{"explain", "other", ""}, []string{"job/nightly"}},
		{[]string{"explain", "-p", "ist"}, []string{"istio"}},
		{[]string{"inject", "--policy", "linkerd"}, []string{"linkerd"}},
		{[]string{"doctor", "vault"}, []string{"vault-agent"}},
		{[]string{"init", "--from", ""}, []string{"built-in", "cluster"}},
	} {
		if got := completions(t, tc.args...); !slices.Equal(got, tc.want) {
			t.Errorf("%q: %q, want %q", tc.args, got, tc.want)
		}
	}
	must(t, os.WriteFile("broken.yaml", []byte("a: [\n"), 0o644))
	_ = completions(t, "explain", "") // says nothing, and does not fail
}

// TestProgressIsForTerminals draws a bar on a terminal, and none on a pipe.
func TestProgressIsForTerminals(t *testing.T) {
	term := openTerminal(t)
	bar := newBar(visibleWriter{term.tty}, "rendering")
	if bar == nil {
		t.Fatal("a terminal gets no bar")
	}
	bar.setProgress(1, 4, "first")
	bar.drawInitialState() // which the second that has passed calls
	term.typeAfter("rendering [======", 1, "")
	bar.setProgress(2, 4, "second\x1b[31m")
	term.typeAfter(`2/4 second\x1b[31m`, 1, "")
	bar.clearLine()
	if _, ok := terminalWidth(visibleWriter{term.tty}); !ok {
		t.Error("a terminal has no width")
	}
	pipe, write, err := os.Pipe()
	must(t, err)
	defer pipe.Close()
	defer write.Close()
	if newBar(visibleWriter{write}, "rendering") != nil {
		t.Error("a pipe gets a bar")
	}
}
