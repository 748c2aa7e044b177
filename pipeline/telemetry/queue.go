// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/internal/process/disk"
)

// Queue measures the work queue each time the metrics are read, and whether it can store anything.
func (m *Metrics) Queue(depth func(ctx context.Context) (queue.Depth, error), writable func() bool) {
	m.registry.MustRegister(
		&queueCollector{
			depth: depth,
			jobs: prometheus.NewDesc("prerig_queue_jobs",
				"Jobs that are not done, those of prerig_queue_retrying_jobs included.", nil, nil),
			retrying: prometheus.NewDesc("prerig_queue_retrying_jobs", "Jobs that have failed and are tried again.",
				nil, nil),
			age: prometheus.NewDesc("prerig_queue_age_seconds",
				"How long ago the oldest job was asked for that has not failed; 0 without one.", nil, nil),
		},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "prerig_queue_writable", Help: "1 where events and jobs can be stored, else 0: a full disk, a full queue, a write that failed, no connection.",
		}, func() float64 { return boolToGauge(writable()) }),
	)
}

// Disk measures the file system of the state directory each time the metrics are read.
func (m *Metrics) Disk(dir string) {
	m.registry.MustRegister(&diskCollector{
		dir: dir,
		available: prometheus.NewDesc("prerig_state_available_bytes",
			"Bytes that can still be written to the disk of the state directory.", nil, nil),
		capacity: prometheus.NewDesc("prerig_state_capacity_bytes", "Size of the disk of the state directory.", nil,
			nil),
	})
}

type queueCollector struct {
	depth               func(ctx context.Context) (queue.Depth, error)
	jobs, retrying, age *prometheus.Desc

	mu     sync.Mutex
	oldest time.Time // the job that was the oldest when it was looked last
	seen   time.Time // when it was first the oldest
}

// ageOf is how long ago the oldest job was asked for, at least for as long as it has been seen: the clock may have
// been set back.
func (c *queueCollector) ageOf(oldest time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if oldest.IsZero() {
		c.oldest = oldest
		return 0
	}
	now := time.Now()
	if !oldest.Equal(c.oldest) {
		c.oldest = oldest
		c.seen = now
	}
	return max(now.Sub(oldest), now.Sub(c.seen))
}

// Describe implements prometheus.Collector.
func (c *queueCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.jobs
	out <- c.retrying
	out <- c.age
}

// Collect implements prometheus.Collector.
func (c *queueCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	depth, err := c.depth(ctx)
	if err != nil {
		return
	}
	age := c.ageOf(depth.Oldest).Seconds()
	out <- prometheus.MustNewConstMetric(c.jobs, prometheus.GaugeValue, float64(depth.Jobs))
	out <- prometheus.MustNewConstMetric(c.retrying, prometheus.GaugeValue, float64(depth.Retrying))
	out <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, age)
}

type diskCollector struct {
	dir                 string
	available, capacity *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *diskCollector) Describe(out chan<- *prometheus.Desc) { out <- c.available; out <- c.capacity }

// Collect implements prometheus.Collector.
func (c *diskCollector) Collect(out chan<- prometheus.Metric) {
	space, err := disk.Of(c.dir)
	if err != nil {
		return
	}
	out <- prometheus.MustNewConstMetric(c.available, prometheus.GaugeValue, float64(space.Available))
	out <- prometheus.MustNewConstMetric(c.capacity, prometheus.GaugeValue, float64(space.Capacity))
}
