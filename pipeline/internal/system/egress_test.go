// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/daemon"
)

// TestInternalAnswersStayInside has pipelines read from, publish to and notify servers that answer with a marker, and pipelines that
// name the address at which clouds hand out credentials, and looks for the marker in everything that leaves the daemon.
func TestInternalAnswersStayInside(t *testing.T) {
	const marker = "INTERNAL-MARKER-AKIA"
	l := &leaky{fixture: prepare(t, nil), canaries: map[string]string{}}
	l.repository.Commit("first", map[string]string{"apps/web/app.yaml": deployment("web", "image:1")})
	inside := func(status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Marker", marker)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, marker)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	want := map[string]string{"good": "Ready "}
	add := func(name, from, to, state string) {
		text := strings.Replace(pipelineYAML(name, l.repository.URL), "build: {path: apps/"+name, "build: {path: apps/web", 1)
		text = strings.Replace(text, "branch: rendered}", "branch: rendered, path: "+name+"}", 1)
		l.write(filepath.Join(l.c.Pipelines, name+".yaml"), strings.Replace(text, from, to, 1))
		want[name] = state
	}
	for _, status := range []int{200, 401, 403, 404, 500} {
		host := inside(status)
		add(fmt.Sprintf("git-%d", status), l.repository.URL, host+"/x.git", "Failing ")
		registry := "{oci: {url: \"oci://" + strings.TrimPrefix(host, "http://") + "/x\", insecure: true}}"
		add(fmt.Sprintf("to-git-%d", status), "{git: {branch: rendered", "{git: {url: "+host+"/x.git, branch: rendered", "Failing ")
		add(fmt.Sprintf("to-oci-%d", status), "publish: [", "publish: ["+registry+", ", "Failing ")
		source := "{git: {url: " + l.repository.URL + ", ref: {branch: main}}}"
		add(fmt.Sprintf("oci-%d", status), source, registry, "Failing ")
		name := filepath.Join(l.c.Pipelines, fmt.Sprintf("oci-%d.yaml", status))
		l.write(name, strings.Replace(contentOf(t, name), "branch: rendered", "url: "+l.repository.URL+", branch: rendered", 1))
	}
	refusing := inside(403)
	add("good", "policies:", "notify: [{cloudEvent: {url: \""+refusing+"/hook\"}}, {cloudEvent: {url: \"http://169.254.169.254/latest\"}}]\n  policies:", "Ready ")
	add("metadata", l.repository.URL, "http://169.254.169.254/latest/meta-data", "leads to a link-local address")
	l.startWith(daemon.Options{Log: slog.New(slog.NewJSONHandler(&l.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	l.eventually("waiting for the states", func() string {
		for _, p := range l.pipelines() {
			name := strings.TrimSuffix(filepath.Base(p.File), ".yaml")
			if one := p.State + " " + p.Message; p.State == "New" || !strings.Contains(one, want[name]) {
				return name + " is " + one
			}
		}
		return ""
	})
	l.eventually("waiting for the notifications", func() string {
		if log := l.logs.String(); !strings.Contains(log, "403 Forbidden") || strings.Count(log, "egress.allow") < 2 {
			return "they have not failed yet"
		}
		return ""
	})
	outputs := l.outputs()
	l.stop()
	outputs["logs"] = l.logs.String()
	l.stored(outputs)
	for where, text := range outputs {
		if i := strings.Index(text, marker); i >= 0 {
			t.Errorf("what a server has answered is in %s: …%s…", where, text[max(0, i-300):min(len(text), i+100)])
		}
	}
}

func contentOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
