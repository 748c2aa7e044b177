// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/server"
)

// ask returns the status and body of an answer of the daemon.
func (f *fixture) ask(address, path string) (int, string) {
	f.t.Helper()
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// metricsShow waits until the metrics hold each of some texts: a run is counted a moment after what it has published can be seen.
func (f *fixture) metricsShow(texts ...string) {
	f.t.Helper()
	for _, want := range texts {
		f.eventually("waiting for "+want+" among the metrics", func() string {
			if _, body := f.ask(f.page, "/metrics"); !strings.Contains(body, want) {
				return body
			}
			return ""
		})
	}
}

// metrics are what the daemon exports, by "name{label="value",…}" with the labels sorted.
func (f *fixture) metrics() map[string]float64 {
	f.t.Helper()
	status, body := f.ask(f.page, "/metrics")
	if status != http.StatusOK {
		f.t.Fatalf("the metrics are answered with %d: %s", status, body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	out := map[string]float64{}
	for name, family := range families {
		for _, m := range family.Metric {
			labels := model.Metric{model.MetricNameLabel: model.LabelValue(name)}
			for _, l := range m.Label {
				labels[model.LabelName(l.GetName())] = model.LabelValue(l.GetValue())
			}
			out[labels.String()] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

// TestAFailingPipelineHasSeries: one can be paged for the pipeline that fails, and its retries do not look like a queue that hangs.
func TestAFailingPipelineHasSeries(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()
	f := prepare(t, map[string]string{
		"web.yaml":      pipelineYAML("web", "URL", "  notify: [{cloudEvent: {url: "+refusing.URL+"}}]\n"),
		"broken.yaml":   strings.ReplaceAll(pipelineYAML("broken", "http://127.0.0.1:1/none.git"), "{git: {branch: rendered}}", "{git: {url: URL, branch: broken}}"),
		"typo.yaml":     strings.ReplaceAll(pipelineYAML("typo", "URL"), "source:", "sauce:"),
		"nonsense.yaml": "\"\n",
	})
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	f.start()
	f.shows("web/shop/deployment-web.yaml", "image: web:1")
	want := map[string]float64{
		`prerig_pipeline_info{name="web", namespace="team", state="Ready"}`:               1,
		`prerig_pipeline_info{name="broken", namespace="team", state="Failing"}`:          1,
		`prerig_pipeline_info{name="typo", namespace="team", state="Invalid"}`:            1,
		`prerig_pipeline_ready{name="web", namespace="team"}`:                             1,
		`prerig_pipeline_ready{name="broken", namespace="team"}`:                          0,
		`prerig_pipeline_ready{name="typo", namespace="team"}`:                            0,
		`prerig_pipeline_suspended{name="web", namespace="team"}`:                         0,
		`prerig_pipeline_consecutive_failures{name="web", namespace="team"}`:              0,
		`prerig_pipeline_last_success_timestamp_seconds{name="broken", namespace="team"}`: 0,
		`prerig_pipelines{state="Invalid"}`:                                               2,
		`prerig_pipelines_omitted`:                                                        0,
		`prerig_notifications_total{kind="cloudEvent", outcome="failed"}`:                 1,
		`prerig_queue_retrying_jobs`:                                                      1,
		`prerig_queue_jobs`:                                                               1,
		`prerig_queue_age_seconds`:                                                        0,
		`prerig_queue_writable`:                                                           1,
	}
	f.eventually("waiting for the metrics", func() string {
		got, problems := f.metrics(), []string{}
		for series, value := range want {
			if have, ok := got[series]; !ok || have != value {
				problems = append(problems, fmt.Sprintf("%s is %g (%v), want %g", series, have, ok, value))
			}
		}
		for _, series := range []string{
			`prerig_pipeline_consecutive_failures{name="broken", namespace="team"}`,
			`prerig_pipeline_last_success_timestamp_seconds{name="web", namespace="team"}`,
			`prerig_state_available_bytes`, `prerig_state_capacity_bytes`,
		} {
			if got[series] < 1 {
				problems = append(problems, fmt.Sprintf("%s is %g", series, got[series]))
			}
		}
		return strings.Join(problems, "\n")
	})
}

// TestAFullDiskIsTold by /readyz, the status and the metrics, at once, and is over by itself.
func TestAFullDiskIsTold(t *testing.T) {
	dir := smallDisk(t)
	f := prepare(t, map[string]string{"web.yaml": pipelineYAML("web", "URL")})
	f.c.State = filepath.Join(dir, "s")
	f.c.Listen, f.c.Admin.Listen = free(t), free(t)
	commit := f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:0")})
	f.start()
	f.shows("web/shop/deployment-web.yaml", "image: web:0")
	if status, body := f.ask(f.hooks, "/readyz"); status != http.StatusOK {
		t.Fatalf("before: %d %s", status, body)
	}
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	for _, address := range []string{f.hooks, f.page} {
		status, body := f.ask(address, "/readyz")
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "disk of the state directory is full") || strings.Contains(body, dir) || strings.Contains(body, "web") {
			t.Errorf("/readyz: %d %s", status, body)
		}
	}
	if status := f.push(commit); status != http.StatusServiceUnavailable {
		t.Errorf("an event was answered with %d", status)
	}
	var catalog server.Catalog
	if status, body := f.ask(f.page, "/api/v1/catalog"); status != http.StatusOK || json.Unmarshal([]byte(body), &catalog) != nil || !strings.Contains(catalog.Problem, "full") {
		t.Errorf("the state of the daemon: %d %s", status, body)
	}
	if _, body := f.ask(f.page, "/"); !strings.Contains(body, "disk of the state directory is full") {
		t.Errorf("the page does not tell:\n%s", body)
	}
	if got := f.metrics(); got["prerig_queue_writable"] != 0 || got["prerig_state_available_bytes"] >= 4<<20 || got["prerig_state_capacity_bytes"] != 48<<20 {
		t.Errorf("writable %g, %g of %g bytes", got["prerig_queue_writable"], got["prerig_state_available_bytes"], got["prerig_state_capacity_bytes"])
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	f.eventually("waiting for the daemon to be ready", func() string {
		if status, body := f.ask(f.hooks, "/readyz"); status != http.StatusOK {
			return fmt.Sprint(status, body)
		}
		return ""
	})
}

// TestAFullDiskRefusesEventsAtOnce: the sender gets the reason, and does not wait until the queue's server has not answered.
func TestAFullDiskRefusesEventsAtOnce(t *testing.T) {
	dir := smallDisk(t)
	q, err := queue.Open(t.Context(), queue.Options{Dir: filepath.Join(dir, "queue")})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	fill(t, filepath.Join(dir, "filler"))
	_, err = q.Put(t.Context(), event.Event{ID: "1", Receiver: "git"})
	if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "full") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Put(t.Context(), event.Event{ID: "1", Receiver: "git"}); err != nil {
		t.Errorf("with room: %v", err)
	}
}
