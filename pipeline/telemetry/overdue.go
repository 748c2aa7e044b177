// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
)

// overdueSteps measures the steps that were left behind.
type overdueSteps struct {
	total   *prometheus.CounterVec
	hanging *prometheus.GaugeVec
}

// newOverdueSteps registers the series of all steps, so that each exists before any step hangs.
func newOverdueSteps(registry prometheus.Registerer) overdueSteps {
	o := overdueSteps{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "prerig_overdue_steps_total", Help: "Steps of jobs that did not end in time and were left behind, by step.",
		}, []string{"step"}),
		hanging: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "prerig_overdue_steps", Help: "Steps that were left behind and have not ended yet, by step.",
		}, []string{"step"}),
	}
	registry.MustRegister(o.total, o.hanging)
	for _, step := range watchdog.Steps {
		o.total.WithLabelValues(step)
		o.hanging.WithLabelValues(step)
	}
	return o
}

// LeftBehind counts a step that was left behind, with 1 for change, and with -1 one that has ended after all.
func (m *Metrics) LeftBehind(step string, change int) {
	m.overdue.hanging.WithLabelValues(step).Add(float64(change))
	if change > 0 {
		m.overdue.total.WithLabelValues(step).Add(float64(change))
	}
}

// Unpolled measures how many sources are no longer polled each time the metrics are read.
func (m *Metrics) Unpolled(count func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "prerig_unpolled_sources",
		Help: "Sources that were not polled for three of their intervals and two minutes, whatever prevents it.",
	}, func() float64 { return float64(count()) }))
}

// Workers measures whether any process accepts jobs each time the metrics are read.
func (m *Metrics) Workers(present func() bool) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "prerig_workers_present", Help: "1 where some process takes jobs, 0 where none has for a while.",
	}, func() float64 { return boolToGauge(present()) }))
}
