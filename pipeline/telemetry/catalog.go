// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
)

// Catalog reports the status of reading the pipelines each time the metrics are read. With several directories and
// repositories, the label catalog names each.
func (m *Metrics) Catalog(now func() []catalog.Status) {
	names := []string{"catalog"}
	m.registry.MustRegister(&catalogCollector{
		now: now,
		readable: prometheus.NewDesc("prerig_catalog_readable",
			"1 where a directory or repository of pipelines could be read the last time, else 0.", names, nil),
		last: prometheus.NewDesc("prerig_catalog_last_read_timestamp_seconds",
			"When pipelines were last read with success.", names, nil),
	})
}

type catalogCollector struct {
	now            func() []catalog.Status
	readable, last *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *catalogCollector) Describe(out chan<- *prometheus.Desc) { out <- c.readable; out <- c.last }

// Collect implements prometheus.Collector.
func (c *catalogCollector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.now() {
		last := 0.0
		if !s.Checked.IsZero() {
			last = float64(s.Checked.Unix())
		}
		out <- prometheus.MustNewConstMetric(c.readable, prometheus.GaugeValue, boolToGauge(s.Error == ""), s.Name)
		out <- prometheus.MustNewConstMetric(c.last, prometheus.GaugeValue, last, s.Name)
	}
}

// Removed counts one pipeline that was removed.
func (m *Metrics) Removed() { m.removed.Inc() }

// Removals counts the pipelines that are missing and not removed yet each time the metrics are read.
func (m *Metrics) Removals(list func() []prune.Removal) {
	m.registry.MustRegister(&removalCollector{
		count: func() map[string]int {
			counts := map[string]int{prune.Waiting: 0, prune.Held: 0, prune.Removing: 0}
			for _, r := range list() {
				counts[r.State]++
			}
			return counts
		},
		desc: prometheus.NewDesc("prerig_removals", "Deleted pipelines that are not removed yet, by state.",
			[]string{"state"}, nil),
	})
}

type removalCollector struct {
	count func() map[string]int
	desc  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *removalCollector) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector.
func (c *removalCollector) Collect(out chan<- prometheus.Metric) {
	for state, n := range c.count() {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), state)
	}
}
