// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/prune"
)

// Catalog tells how reading the pipelines goes each time the metrics are read.
func (m *Metrics) Catalog(now func() catalog.Status) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "prerig_catalog_readable", Help: "1 where the directory or repository of the pipelines could be read the last time, else 0.",
		}, func() float64 {
			if now().Error != "" {
				return 0
			}
			return 1
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "prerig_catalog_last_read_timestamp_seconds", Help: "When the pipelines were last read with success.",
		}, func() float64 {
			if at := now().Checked; !at.IsZero() {
				return float64(at.Unix())
			}
			return 0
		}),
	)
}

// Removed counts one pipeline that was removed.
func (m *Metrics) Removed() { m.removed.Inc() }

// Removals counts the pipelines that are gone and not removed yet each time the metrics are read.
func (m *Metrics) Removals(list func() []prune.Removal) {
	m.registry.MustRegister(&removalCollector{
		count: func() map[string]int {
			counts := map[string]int{prune.Waiting: 0, prune.Held: 0, prune.Removing: 0}
			for _, r := range list() {
				counts[r.State]++
			}
			return counts
		},
		desc: prometheus.NewDesc("prerig_removals", "Pipelines that are gone and not removed yet, by state.", []string{"state"}, nil),
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
