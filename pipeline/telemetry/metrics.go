// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/prerig/prerig/pipeline/daemon/run"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/notify"
)

// Metrics are the daemon's.
type Metrics struct {
	registry      *prometheus.Registry
	deliveries    *prometheus.CounterVec
	runs          *prometheus.CounterVec
	bytes         prometheus.Counter
	removed       prometheus.Counter
	remembered    *prometheus.CounterVec
	notifications *prometheus.CounterVec
	eventToCommit prometheus.Histogram
	steps         *prometheus.HistogramVec
	isolation     *prometheus.GaugeVec
	overdue       overdueSteps
}

// seconds are buckets from a hundredth of a second to ten minutes.
var seconds = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

// NewMetrics returns metrics with a registry of their own.
func NewMetrics(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "prerig_deliveries_total", Help: "Webhook deliveries by receiver and what became of them.",
		}, []string{"receiver", "outcome"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "prerig_runs_total", Help: "Runs of pipelines by outcome, and by the stage that failed.",
		}, []string{"outcome", "stage"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{Name: "prerig_rendered_bytes_total", Help: "Bytes of manifests that were rendered."}),
		removed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "prerig_removed_pipelines_total", Help: "Deleted pipelines that this process has removed.",
		}),
		remembered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "prerig_remembered_builds_total",
			Help: "Builds that could be remembered, by whether they were: hit or miss.",
		}, []string{"outcome"}),
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "prerig_notifications_total", Help: "Notifications about runs by kind and outcome, after the last try of each.",
		}, []string{"kind", "outcome"}),
		eventToCommit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "prerig_event_to_commit_seconds",
			Help: "Time from the storing of an event to what it led to being published.", Buckets: seconds,
		}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "prerig_step_seconds", Help: "Time that the steps of a run take.", Buckets: seconds,
		}, []string{"step"}),
	}
	for _, kind := range []string{notify.FluxReceiver, notify.CloudEvent, notify.CommitStatus} {
		for _, outcome := range []string{"sent", "failed"} {
			m.notifications.WithLabelValues(kind, outcome) // so that the first failure is an increase
		}
	}
	for _, outcome := range []string{"hit", "miss"} {
		m.remembered.WithLabelValues(outcome)
	}
	m.isolation = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "prerig_renderer_isolation", Help: "Whether renderers are kept from the machine by a layer: 1 or 0.",
	}, []string{"layer"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "prerig_build_info", Help: "Always 1; the version is a label.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(m.deliveries, m.runs, m.bytes, m.removed, m.remembered, m.notifications, m.eventToCommit,
		m.steps, m.isolation, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.overdue = newOverdueSteps(m.registry)
	return m
}

// Delivery counts one webhook delivery.
func (m *Metrics) Delivery(receiver, outcome string) {
	m.deliveries.WithLabelValues(receiver, outcome).Inc()
}

// Receiver has the deliveries of a receiver begin at 0, so that the first one of a kind is an increase.
func (m *Metrics) Receiver(name string) {
	for _, outcome := range []string{"refused", "stored", "duplicate", "unwatched", "ignored"} {
		m.deliveries.WithLabelValues(name, outcome)
	}
}

// Remembered counts one build that was looked for among those that are remembered.
func (m *Metrics) Remembered(hit bool) {
	outcome := "miss"
	if hit {
		outcome = "hit"
	}
	m.remembered.WithLabelValues(outcome).Inc()
}

// Notification counts one notification that was sent, or abandoned after an error.
func (m *Metrics) Notification(kind string, err error) {
	outcome := "sent"
	if err != nil {
		outcome = "failed"
	}
	m.notifications.WithLabelValues(kind, outcome).Inc()
}

// Run counts one run.
func (m *Metrics) Run(o run.Observation) {
	m.runs.WithLabelValues(o.Run.Outcome, o.Stage).Inc()
	m.bytes.Add(float64(o.Bytes))
	for step, took := range map[string]time.Duration{"queued": o.Queued, "fetch": o.Fetch, "render": o.Render, "publish": o.Publish} {
		if took > 0 {
			m.steps.WithLabelValues(step).Observe(took.Seconds())
		}
	}
	if o.Run.Outcome == status.Published && !o.Run.Since.IsZero() {
		m.eventToCommit.Observe(max(0, o.Run.Finished.Sub(o.Run.Since).Seconds()))
	}
}

// Isolation notes which layers keep renderers from the machine.
func (m *Metrics) Isolation(layers map[string]bool) {
	for layer, have := range layers {
		m.isolation.WithLabelValues(layer).Set(boolToGauge(have))
	}
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
