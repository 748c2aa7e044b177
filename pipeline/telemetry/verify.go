// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/prerig/prerig/pipeline/verify"
	"github.com/prerig/prerig/pipeline/verify/watch"
)

// Clusters reports the findings in clusters each time the metrics are read.
func (m *Metrics) Clusters(now func() []watch.Found) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"cluster"}, labels...), nil)
	}
	m.registry.MustRegister(&clusterCollector{
		now:  now,
		ok:   desc("prerig_verify_success", "1 where a cluster could be compared with what is committed the last time, else 0."),
		at:   desc("prerig_verify_timestamp_seconds", "When a cluster was compared last, with success or not."),
		pods: desc("prerig_verify_pods", "Pods of a cluster by how they compare with what is committed.", "state"),
		running: desc("prerig_verify_sidecar_pods", "Pods by the version of a sidecar that they run.", "container",
			"version"),
		committed: desc("prerig_verify_sidecar_committed_pods",
			"Pods by the version of a sidecar that is committed for them.", "container", "version"),
	})
}

type clusterCollector struct {
	now                              func() []watch.Found
	ok, at, pods, running, committed *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *clusterCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.ok, c.at, c.pods, c.running, c.committed} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *clusterCollector) Collect(out chan<- prometheus.Metric) {
	for _, f := range c.now() {
		if f.At.IsZero() {
			continue
		}
		gauge := func(d *prometheus.Desc, value int, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value),
				append([]string{f.Cluster}, labels...)...)
		}
		out <- prometheus.MustNewConstMetric(c.ok, prometheus.GaugeValue, boolToGauge(f.Err == nil), f.Cluster)
		gauge(c.at, int(f.At.Unix()))
		if f.Report == nil {
			continue
		}
		for _, state := range verify.States {
			gauge(c.pods, f.Report.Counts[state], string(state))
		}
		for _, s := range f.Report.Sidecars {
			for _, v := range s.Versions {
				gauge(c.running, v.Pods, s.Container, v.Version)
				gauge(c.committed, v.Committed, s.Container, v.Version)
			}
		}
	}
}
