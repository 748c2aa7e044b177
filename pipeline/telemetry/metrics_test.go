// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/run"
	"github.com/prerig/prerig/pipeline/daemon/status"
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
	m.Queue(func(context.Context) (queue.Depth, error) {
		return queue.Depth{Jobs: 7, Retrying: 2, Oldest: time.Now().Add(time.Hour)}, nil
	}, func() bool { return true })
	m.Remembered(true)
	m.Notification("cloudEvent", nil)
	m.Notification("cloudEvent", errors.New("no answer"))
	m.Pipelines(func() []telemetry.Pipeline {
		return []telemetry.Pipeline{
			{Namespace: "team", Name: "web", State: "Ready", Ready: true, LastSuccess: at},
			{Namespace: "team", Name: "cart", State: "Failing", Suspended: true, ConsecutiveFailures: 3},
			{State: "Invalid"},
		}
	}, []string{"Ready", "Failing", "New"}, 10)
	want := []string{
		`prerig_build_info{version="1.2.3"} 1`,
		`prerig_deliveries_total{outcome="stored",receiver="github"} 2`,
		`prerig_deliveries_total{outcome="unknown",receiver=""} 1`,
		`prerig_event_to_commit_seconds_count 1`,
		`prerig_event_to_commit_seconds_sum 3`,
		`prerig_notifications_total{kind="cloudEvent",outcome="failed"} 1`,
		`prerig_notifications_total{kind="cloudEvent",outcome="sent"} 1`,
		`prerig_notifications_total{kind="commitStatus",outcome="failed"} 0`,
		`prerig_notifications_total{kind="commitStatus",outcome="sent"} 0`,
		`prerig_notifications_total{kind="fluxReceiver",outcome="failed"} 0`,
		`prerig_notifications_total{kind="fluxReceiver",outcome="sent"} 0`,
		`prerig_overdue_steps_total{step="catalog"} 0`,
		`prerig_overdue_steps_total{step="difference"} 0`,
		`prerig_overdue_steps_total{step="fetch"} 0`,
		`prerig_overdue_steps_total{step="notify"} 0`,
		`prerig_overdue_steps_total{step="plan"} 0`,
		`prerig_overdue_steps_total{step="publish"} 0`,
		`prerig_overdue_steps_total{step="render"} 0`,
		`prerig_overdue_steps{step="catalog"} 0`,
		`prerig_overdue_steps{step="difference"} 0`,
		`prerig_overdue_steps{step="fetch"} 0`,
		`prerig_overdue_steps{step="notify"} 0`,
		`prerig_overdue_steps{step="plan"} 0`,
		`prerig_overdue_steps{step="publish"} 0`,
		`prerig_overdue_steps{step="render"} 0`,
		`prerig_pipeline_consecutive_failures{name="cart",namespace="team"} 3`,
		`prerig_pipeline_consecutive_failures{name="web",namespace="team"} 0`,
		`prerig_pipeline_info{name="cart",namespace="team",state="Failing"} 1`,
		`prerig_pipeline_info{name="web",namespace="team",state="Ready"} 1`,
		`prerig_pipeline_last_success_timestamp_seconds{name="cart",namespace="team"} 0`,
		`prerig_pipeline_last_success_timestamp_seconds{name="web",namespace="team"} 1.8e+09`,
		`prerig_pipeline_ready{name="cart",namespace="team"} 0`,
		`prerig_pipeline_ready{name="web",namespace="team"} 1`,
		`prerig_pipeline_suspended{name="cart",namespace="team"} 1`,
		`prerig_pipeline_suspended{name="web",namespace="team"} 0`,
		`prerig_pipelines_omitted 0`,
		`prerig_pipelines{state="Failing"} 1`,
		`prerig_pipelines{state="Invalid"} 1`,
		`prerig_pipelines{state="New"} 0`,
		`prerig_pipelines{state="Ready"} 1`,
		`prerig_queue_age_seconds 0`, // a clock that is ahead makes no negative age
		`prerig_queue_jobs 7`,
		`prerig_queue_retrying_jobs 2`,
		`prerig_queue_writable 1`,
		`prerig_remembered_builds_total{outcome="hit"} 1`,
		`prerig_remembered_builds_total{outcome="miss"} 0`,
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

// TestSeriesOfPipelinesAreBounded: who has many pipelines does not take the series of others, and what is left out is counted.
func TestSeriesOfPipelinesAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		limit, omitted int
		want           []string
	}{
		"none": {0, 102, nil},
		"few":  {3, 99, []string{"a/app-000", "a/app-001", "b/cart"}},
		"some": {5, 97, []string{"a/app-000", "a/app-001", "a/app-002", "b/cart", "b/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := telemetry.NewMetrics("1")
			m.Pipelines(func() (out []telemetry.Pipeline) {
				for i := range 100 {
					out = append(out, telemetry.Pipeline{Namespace: "a", Name: fmt.Sprintf("app-%03d", i), State: "Ready"})
				}
				return append(out, telemetry.Pipeline{Namespace: "b", Name: "web", State: "Ready"}, telemetry.Pipeline{Namespace: "b", Name: "cart", State: "Ready"})
			}, nil, tc.limit)
			var got []string
			for _, line := range scrape(m) {
				var app, namespace string
				if n, _ := fmt.Sscanf(strings.NewReplacer(`"`, " ", ",", " ").Replace(line), "prerig_pipeline_ready{name= %s namespace= %s", &app, &namespace); n == 2 {
					got = append(got, namespace+"/"+app)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			for _, line := range []string{fmt.Sprintf("prerig_pipelines_omitted %d", tc.omitted), `prerig_pipelines{state="Ready"} 102`} {
				if !slices.Contains(scrape(m), line) {
					t.Errorf("there is no %q", line)
				}
			}
		})
	}
}

func TestAQueueThatDoesNotAnswerHidesNoOtherMetric(t *testing.T) {
	m := telemetry.NewMetrics("1")
	m.Queue(func(context.Context) (queue.Depth, error) { return queue.Depth{}, errors.New("no answer") }, func() bool { return false })
	if got := scrape(m); !slices.Contains(got, `prerig_build_info{version="1"} 1`) || strings.Contains(strings.Join(got, ""), "prerig_queue_jobs") || !slices.Contains(got, "prerig_queue_writable 0") {
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

// TestReceiversBeginAtZero has nothing be delivered yet: alerts compare what is refused with what is not.
func TestReceiversBeginAtZero(t *testing.T) {
	m := telemetry.NewMetrics("1")
	m.Receiver("github")
	got := scrape(m)
	for _, outcome := range []string{"refused", "stored", "duplicate", "unwatched", "ignored"} {
		if want := `prerig_deliveries_total{outcome="` + outcome + `",receiver="github"} 0`; !slices.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
}
