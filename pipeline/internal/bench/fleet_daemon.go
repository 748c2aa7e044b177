// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// measureStart stops the daemon and restarts it without any changes: it measures until webhooks are accepted, and
// until all pipelines are checked.
func (f *fleet) measureStart() error {
	if err := f.awaitQuietQueue(); err != nil {
		return err
	}
	if err := f.d.Stop(); err != nil {
		return err
	}
	f.d = nil
	begin := time.Now()
	if err := f.startDaemon(); err != nil {
		return err
	}
	f.ready = time.Since(begin)
	e, err := f.d.Entry(f.ctx, 0, func(e testbed.Entry) bool { return e.Message == "planned" && e.Fields["reason"] == "start" })
	if err != nil {
		return err
	}
	if n, _ := e.Fields["to run"].(float64); n != 0 {
		return fmt.Errorf("starting with nothing new: %v pipelines run", n)
	}
	f.start = cost{e.At.Sub(begin), familyTime(f.d.PID)}
	return nil
}

// socketClient calls the daemon on its socket.
func (f *fleet) socketClient() *http.Client {
	socket := filepath.Join(f.dir, "state", "prerig.sock")
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
}

// measureReading asks for what people and Prometheus read.
func (f *fleet) measureReading() error {
	client := f.socketClient()
	defer client.CloseIdleConnections()
	for path, to := range map[string]*time.Duration{"/": &f.page, "/metrics": &f.metrics, "/api/v1/pipelines": &f.status} {
		var took []time.Duration
		for range 5 {
			one, err := timeReading(f.ctx, client, path)
			if err != nil {
				return err
			}
			took = append(took, one)
		}
		*to = benchmark.Median(took...)
	}
	return nil
}

// measureReload changes the file of one pipeline: it measures until the set of pipelines to run is known, including
// the pause granted to editors.
func (f *fleet) measureReload() error {
	if err := f.awaitQuietQueue(); err != nil {
		return err
	}
	mark, used, begin := f.d.Mark(), familyTime(f.d.PID), time.Now()
	file := filepath.Join(f.dir, "pipelines", "000", appName(0)+".yaml")
	if err := os.WriteFile(file, []byte(fleetPipeline(0, f.r.URL, "  interval: 100h\n")), 0o600); err != nil {
		return fmt.Errorf("changing a pipeline: %w", err)
	}
	e, err := f.d.Entry(f.ctx, mark, func(e testbed.Entry) bool { return e.Message == "planned" && e.Fields["reason"] == "pipeline changed" })
	f.reload = cost{e.At.Sub(begin), familyTime(f.d.PID) - used}
	return err
}

// measureReconcile has all looked at, as prerig daemon reconcile --all --wait does, until all requests are handled.
func (f *fleet) measureReconcile() error {
	if err := f.awaitQuietQueue(); err != nil {
		return err
	}
	used, begin := familyTime(f.d.PID), time.Now()
	if err := f.runPrerig("daemon", "reconcile", "--all", "--wait", "--timeout", "10m", "--state", filepath.Join(f.dir, "state")); err != nil {
		return err
	}
	f.reconcile = cost{time.Since(begin), familyTime(f.d.PID) - used}
	return nil
}
