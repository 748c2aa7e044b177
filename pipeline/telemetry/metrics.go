// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/prerig/prerig/pipeline/run"
	"github.com/prerig/prerig/pipeline/status"
)

// Metrics are the daemon's.
type Metrics struct {
	registry      *prometheus.Registry
	deliveries    *prometheus.CounterVec
	runs          *prometheus.CounterVec
	bytes         prometheus.Counter
	removed       prometheus.Counter
	eventToCommit prometheus.Histogram
	steps         *prometheus.HistogramVec
	isolation     *prometheus.GaugeVec
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
			Name: "prerig_removed_pipelines_total", Help: "Pipelines that were gone and removed by this process.",
		}),
		eventToCommit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "prerig_event_to_commit_seconds", Help: "Time from the storing of an event to what it led to being published.", Buckets: seconds,
		}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "prerig_step_seconds", Help: "Time that the steps of a run take.", Buckets: seconds,
		}, []string{"step"}),
	}
	m.isolation = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "prerig_renderer_isolation", Help: "Whether renderers are kept from the machine by a layer: 1 or 0.",
	}, []string{"layer"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "prerig_build_info", Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(m.deliveries, m.runs, m.bytes, m.removed, m.eventToCommit, m.steps, m.isolation, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Delivery counts one webhook delivery.
func (m *Metrics) Delivery(receiver, outcome string) {
	m.deliveries.WithLabelValues(receiver, outcome).Inc()
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
		m.eventToCommit.Observe(o.Run.Finished.Sub(o.Run.Since).Seconds())
	}
}

// Queue measures the work queue each time the metrics are read.
func (m *Metrics) Queue(depth func(ctx context.Context) (jobs uint64, oldest time.Time, err error)) {
	m.registry.MustRegister(&queueCollector{depth: depth,
		jobs: prometheus.NewDesc("prerig_queue_jobs", "Jobs that are not done.", nil, nil),
		age:  prometheus.NewDesc("prerig_queue_age_seconds", "How long the oldest job has waited.", nil, nil),
	})
}

// Pipelines counts pipelines by state each time the metrics are read.
func (m *Metrics) Pipelines(count func() map[string]int) {
	m.registry.MustRegister(&pipelineCollector{count: count,
		desc: prometheus.NewDesc("prerig_pipelines", "Pipelines by state.", []string{"state"}, nil)})
}

// Isolation notes which layers keep renderers from the machine.
func (m *Metrics) Isolation(layers map[string]bool) {
	for layer, have := range layers {
		value := 0.0
		if have {
			value = 1
		}
		m.isolation.WithLabelValues(layer).Set(value)
	}
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

type queueCollector struct {
	depth     func(ctx context.Context) (uint64, time.Time, error)
	jobs, age *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *queueCollector) Describe(out chan<- *prometheus.Desc) { out <- c.jobs; out <- c.age }

// Collect implements prometheus.Collector.
func (c *queueCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	jobs, oldest, err := c.depth(ctx)
	if err != nil {
		return
	}
	age := 0.0
	if !oldest.IsZero() {
		age = max(0, time.Since(oldest).Seconds())
	}
	out <- prometheus.MustNewConstMetric(c.jobs, prometheus.GaugeValue, float64(jobs))
	out <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, age)
}

type pipelineCollector struct {
	count func() map[string]int
	desc  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *pipelineCollector) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector.
func (c *pipelineCollector) Collect(out chan<- prometheus.Metric) {
	for state, n := range c.count() {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), state)
	}
}
