// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/run"
	"github.com/prerig/prerig/pipeline/status"
	"github.com/prerig/prerig/pipeline/telemetry"
)

// scrape returns the daemon's own metrics, without the buckets of histograms.
func scrape(m *telemetry.Metrics) []string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "prerig_") && !strings.Contains(line, "_bucket{") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestMetrics pins names and labels: dashboards and alerts of users depend on them.
func TestMetrics(t *testing.T) {
	m := telemetry.NewMetrics("1.2.3")
	m.Delivery("github", "stored")
	m.Delivery("github", "stored")
	m.Delivery("", "unknown")
	at := time.Unix(1_800_000_000, 0)
	ran := func(outcome string) status.Run {
		return status.Run{Run: v1alpha1.Run{Outcome: outcome, Finished: metav1.NewTime(at.Add(3 * time.Second))}, Since: at}
	}
	m.Run(run.Observation{Run: ran(status.Published), Queued: time.Second, Fetch: 500 * time.Millisecond, Render: 250 * time.Millisecond, Publish: 125 * time.Millisecond, Bytes: 1000})
	m.Run(run.Observation{Run: ran(status.Failed), Stage: status.StageBuild, Render: 250 * time.Millisecond, Bytes: 10})
	m.Run(run.Observation{Run: ran(status.Unchanged)})
	m.Queue(func(context.Context) (uint64, time.Time, error) { return 7, time.Now().Add(time.Hour), nil })
	m.Pipelines(func() map[string]int { return map[string]int{"Ready": 2, "Failed": 1} })
	want := []string{
		`prerig_build_info{version="1.2.3"} 1`,
		`prerig_deliveries_total{outcome="stored",receiver="github"} 2`,
		`prerig_deliveries_total{outcome="unknown",receiver=""} 1`,
		`prerig_event_to_commit_seconds_count 1`,
		`prerig_event_to_commit_seconds_sum 3`,
		`prerig_pipelines{state="Failed"} 1`,
		`prerig_pipelines{state="Ready"} 2`,
		`prerig_queue_age_seconds 0`, // a clock that is ahead makes no negative age
		`prerig_queue_jobs 7`,
		`prerig_removed_pipelines_total 0`,
		`prerig_rendered_bytes_total 1010`,
		`prerig_runs_total{outcome="Failed",stage="build"} 1`,
		`prerig_runs_total{outcome="Published",stage=""} 1`,
		`prerig_runs_total{outcome="Unchanged",stage=""} 1`,
		`prerig_step_seconds_count{step="fetch"} 1`,
		`prerig_step_seconds_count{step="publish"} 1`,
		`prerig_step_seconds_count{step="queued"} 1`,
		`prerig_step_seconds_count{step="render"} 2`,
		`prerig_step_seconds_sum{step="fetch"} 0.5`,
		`prerig_step_seconds_sum{step="publish"} 0.125`,
		`prerig_step_seconds_sum{step="queued"} 1`,
		`prerig_step_seconds_sum{step="render"} 0.5`,
	}
	got := scrape(m)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAQueueThatDoesNotAnswerHidesNoOtherMetric(t *testing.T) {
	m := telemetry.NewMetrics("1")
	m.Queue(func(context.Context) (uint64, time.Time, error) { return 0, time.Time{}, errors.New("no answer") })
	if got := scrape(m); !slices.Contains(got, `prerig_build_info{version="1"} 1`) || strings.Contains(strings.Join(got, ""), "prerig_queue") {
		t.Errorf("got %v", got)
	}
}

// TestErrorsOfTracesAreLogged: a line that is not of the log breaks what reads it as JSON.
func TestErrorsOfTracesAreLogged(t *testing.T) {
	var out bytes.Buffer
	before := otel.GetErrorHandler()
	defer otel.SetErrorHandler(before)
	telemetry.TellTraceErrors(slog.New(slog.NewJSONHandler(&out, nil)))
	otel.Handle(errors.New("no collector"))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["error"] != "no collector" || line["level"] != "WARN" {
		t.Errorf("%v: %s", err, &out)
	}
}
