// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Pipeline is what is measured of one pipeline.
type Pipeline struct {
	// Namespace and Name are its identity. A file that does not name its pipeline has no name, and counts by state
	// only.
	Namespace, Name string
	// State is one of the server's.
	State string
	// Ready is its condition, Suspended whether it is stopped, by whomever.
	Ready, Suspended bool
	// LastSuccess is when it was last found to be as it should, the zero time where it never was.
	LastSuccess time.Time
	// ConsecutiveFailures is how many runs have failed since.
	ConsecutiveFailures int
}

// Pipelines counts pipelines by state, including states without pipelines, and has series for each of at most limit
// pipelines, each time the metrics are read. Above the limit every namespace gets its share, so that the pipelines
// of one do not displace those of another.
func (m *Metrics) Pipelines(list func() []Pipeline, states []string, limit int) {
	names := []string{"namespace", "name"}
	m.registry.MustRegister(&pipelineCollector{
		list: list, states: states, limit: limit,
		byState: prometheus.NewDesc("prerig_pipelines", "Pipelines by state.", []string{"state"}, nil),
		omitted: prometheus.NewDesc("prerig_pipelines_omitted",
			"Pipelines that have no series of their own, as there are more than metrics.pipelines.", nil, nil),
		info: prometheus.NewDesc("prerig_pipeline_info", "Always 1; the state of a pipeline is a label.",
			append(names, "state"), nil),
		ready: prometheus.NewDesc("prerig_pipeline_ready", "1 where the last run of a pipeline succeeded, else 0.",
			names, nil),
		stopped: prometheus.NewDesc("prerig_pipeline_suspended", "1 where a pipeline is suspended, else 0.", names,
			nil),
		success: prometheus.NewDesc("prerig_pipeline_last_success_timestamp_seconds",
			"When a run of a pipeline last succeeded, 0 for never. Looks that find nothing new are no runs.", names,
			nil),
		failed: prometheus.NewDesc("prerig_pipeline_consecutive_failures",
			"Runs of a pipeline that have failed since the last that succeeded.", names, nil),
	})
}

type pipelineCollector struct {
	list   func() []Pipeline
	states []string
	limit  int

	byState, omitted, info, ready, stopped, success, failed *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *pipelineCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.byState, c.omitted, c.info, c.ready, c.stopped, c.success, c.failed} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *pipelineCollector) Collect(out chan<- prometheus.Metric) {
	all := c.list()
	counts := map[string]int{}
	for _, state := range c.states {
		counts[state] = 0
	}
	for _, p := range all {
		counts[p.State]++
	}
	for state, n := range counts {
		out <- prometheus.MustNewConstMetric(c.byState, prometheus.GaugeValue, float64(n), state)
	}
	shown, omitted := fairShare(all, c.limit)
	out <- prometheus.MustNewConstMetric(c.omitted, prometheus.GaugeValue, float64(omitted))
	for _, p := range shown {
		success := 0.0
		if !p.LastSuccess.IsZero() {
			success = float64(p.LastSuccess.UnixMilli()) / 1000
		}
		out <- prometheus.MustNewConstMetric(c.info, prometheus.GaugeValue, 1, p.Namespace, p.Name, p.State)
		for desc, value := range map[*prometheus.Desc]float64{
			c.ready: boolToGauge(p.Ready), c.stopped: boolToGauge(p.Suspended), c.success: success,
			c.failed: float64(p.ConsecutiveFailures),
		} {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, p.Namespace, p.Name)
		}
	}
}

// fairShare returns at most limit pipelines that have names, and how many are left out: of each namespace the first by
// name, as many as of any other that has so many.
func fairShare(all []Pipeline, limit int) (shown []Pipeline, omitted int) {
	type ranked struct {
		Pipeline
		rank int // within its namespace
	}
	named := make([]ranked, 0, len(all))
	for _, p := range all {
		if p.Name != "" {
			named = append(named, ranked{Pipeline: p})
		}
	}
	slices.SortFunc(named, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := 1; i < len(named); i++ {
		if named[i].Namespace == named[i-1].Namespace {
			named[i].rank = named[i-1].rank + 1
		}
	}
	slices.SortStableFunc(named, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	for _, p := range named[:min(limit, len(named))] {
		shown = append(shown, p.Pipeline)
	}
	return shown, len(named) - len(shown)
}

func boolToGauge(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
