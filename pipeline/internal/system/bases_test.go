// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// A remote base is fetched with the pipeline's credentials, by its commit, and what keeps it away keeps nothing else away.
func TestRemoteBases(t *testing.T) {
	f := prepare(t, nil)
	server := gittest.New(t)
	server.Username, server.Password = "reader", "s3cr3t-of-the-library"
	library := server.Repository(t, "library")
	first := library.Commit("first", map[string]string{"web/kustomization.yaml": "resources: [web.yaml]\n", "web/web.yaml": deployment("web", "web:1")})
	second := library.Commit("second", map[string]string{"web/web.yaml": deployment("web", "web:2")})
	var down atomic.Bool
	server.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if down.Load() {
			http.Error(w, "not now", http.StatusForbidden)
		}
		return down.Load()
	})
	f.write(filepath.Join(f.c.Secrets, "team/library/username"), "reader")
	f.write(filepath.Join(f.c.Secrets, "team/library/.hosts"), server.URL)
	f.write(filepath.Join(f.c.Secrets, "team/library/password"), "s3cr3t-of-the-library")
	f.write(filepath.Join(f.c.Pipelines, "web.yaml"), strings.Replace(pipelineYAML("web", f.repository.URL), "build: {path: apps/web}",
		fmt.Sprintf("build: {path: apps/web, remoteBases: [{url: \"%s/*\", secretRef: {name: library}}]}", server.URL), 1))
	name := func(ref string) string {
		return f.repository.Commit("base "+ref, map[string]string{"apps/web/kustomization.yaml": fmt.Sprintf("resources:\n- %s//web?ref=%s\n", library.URL, ref)})
	}
	name(first)
	f.c.RemoteBases = []string{library.URL, "https://git.example.com/org/*"}
	f.start()
	const file = "web/shop/deployment-web.yaml"
	f.shows(file, "image: web:1")
	commit := name(second)
	f.push(commit)
	f.shows(file, "image: web:2")
	message := f.repository.Git("log", "-1", "--format=%B", "rendered")
	if !strings.Contains(message, "Prerig-Command: prerig render team/web --revision main@sha1:"+commit) {
		t.Errorf("the commit's message is\n%s", message)
	}

	commits := f.commits()
	f.push(name("main"))
	f.fails("apps/web/kustomization.yaml:2: resources", "not pinned to a commit", "run prerig lock")
	f.push(f.repository.Commit("elsewhere", map[string]string{"apps/web/kustomization.yaml": "resources: [\"https://git.example.com/org/repo?ref=" + first + "\"]\n"}))
	f.fails("not allowed by the pipeline", "spec.build.remoteBases")

	other := server.Repository(t, "other")
	f.push(f.repository.Commit("beyond", map[string]string{"apps/web/kustomization.yaml": fmt.Sprintf("resources: [\"%s//web?ref=%s\"]\n", other.URL, first)}))
	f.fails("not allowed by the daemon's configuration")

	down.Store(true)
	third := library.Commit("third", map[string]string{"web/web.yaml": deployment("web", "web:3")})
	f.push(name(third))
	f.fails("fetching the remote base")
	if got := f.commits(); got != commits {
		t.Errorf("there are %d commits, want %d as before", got, commits)
	}
	down.Store(false)
	f.shows(file, "image: web:3") // without another event
}

// fails waits until the only pipeline tells of an error with some texts, and of no credential.
func (f *fixture) fails(texts ...string) {
	f.t.Helper()
	f.eventually("waiting for an error with "+strings.Join(texts, ", "), func() string {
		message := f.pipelines()[0].Message
		if strings.Contains(message, "s3cr3t") {
			f.t.Fatalf("got %s", message)
		}
		for _, text := range texts {
			if !strings.Contains(message, text) {
				return "got " + message
			}
		}
		return ""
	})
}
