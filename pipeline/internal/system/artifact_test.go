// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/server"
)

// TestArtifactsInAndOut publishes an artifact from Git, renders that artifact with a second pipeline on the registry's
// notification, and has the registry down for a while. It also looks at the log's one id and at who is told.
func TestArtifactsInAndOut(t *testing.T) {
	var down atomic.Bool
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	registryServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		store.ServeHTTP(w, r)
	}))
	defer registryServer.Close()
	host := strings.TrimPrefix(registryServer.URL, "http://")
	sink, told := eventSink(t)

	f := prepare(t, nil)
	out := strings.Replace(pipelineYAML("web", f.repository.URL, "  notify: [{cloudEvent: {url: \""+sink+"\"}}]\n"),
		"publish: [{git: {branch: rendered}}]", "publish: [{oci: {url: \"oci://"+host+"/rendered/web\", insecure: true}}]", 1)
	in := strings.Replace(pipelineYAML("copy", f.repository.URL), "source: {git: {url: "+f.repository.URL+", ref: {branch: main}}}",
		"source: {oci: {url: \"oci://"+host+"/rendered/web\", insecure: true}}", 1)
	in = strings.Replace(in, "build: {path: apps/copy}", "build: {path: .}", 1)
	in = strings.Replace(in, "git: {branch", "git: {url: "+f.repository.URL+", branch", 1)
	f.write(filepath.Join(f.c.Pipelines, "out.yaml"), out)
	f.write(filepath.Join(f.c.Pipelines, "in.yaml"), in)
	key := filepath.Join(f.c.Secrets, "registry.key")
	f.write(key, hookKey)
	f.c.Receivers = append(f.c.Receivers, config.Receiver{Name: "registry", Provider: "distribution", Secret: key})
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	f.start()
	state := func(name string) server.Pipeline { return f.pipelines("team/" + name)[0] }
	f.eventually("waiting for the artifact", func() string {
		if p := state("web"); p.State != server.StateReady {
			return p.State + " " + p.Message
		}
		return ""
	})
	notifyRegistry := func(id string) {
		t.Helper()
		body, err := json.Marshal(map[string]any{"events": []any{map[string]any{"id": id, "action": "push", "target": map[string]any{"repository": "rendered/web", "tag": "latest"}}}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(http.MethodPost, "http://"+f.hooks+"/hook/registry", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+hookKey)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted {
			t.Fatalf("the registry's notification was answered with %s", resp.Status)
		}
	}
	notifyRegistry("1")
	f.shows("copy/shop/deployment-web.yaml", "image: web:1")

	down.Store(true)
	f.push(f.repository.Commit("second", map[string]string{"apps/web/web.yaml": deployment("web", "web:2")}))
	f.eventually("waiting for the failure", func() string {
		if p := state("web"); p.State != server.StateFailing {
			return p.State
		}
		return ""
	})
	down.Store(false)
	f.eventually("waiting for the registry to be tried again", func() string {
		if p := state("web"); p.State != server.StateReady || p.Runs[0].Outcome != "Published" {
			return p.State + " " + p.Message
		}
		return ""
	})
	notifyRegistry("2")
	f.shows("copy/shop/deployment-web.yaml", "image: web:2")
	f.eventually("waiting for the notifications", func() string {
		if text := strings.Join(told(), " "); !strings.Contains(text, "dev.prerig.run.published") || !strings.Contains(text, "dev.prerig.run.failed") {
			return text
		}
		return ""
	})
	f.metricsShow(
		`prerig_deliveries_total{outcome="stored",receiver="registry"} 2`, `prerig_runs_total{outcome="Failed",stage="publish"}`,
		"prerig_event_to_commit_seconds_count", "prerig_queue_age_seconds", "prerig_queue_jobs", `prerig_pipelines{state="Ready"} 2`, "prerig_rendered_bytes_total",
	)
	if info, err := os.Stat(f.c.Socket()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
}
