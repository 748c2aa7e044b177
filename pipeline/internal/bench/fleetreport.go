// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
)

// fleetRow is a line of the table: a figure of each fleet.
type fleetRow struct {
	name string
	of   func(f *fleet) float64 // in seconds or bytes; 0 for what was not measured
	text func(figure float64) string
}

func durationInSeconds(of func(f *fleet) time.Duration) func(f *fleet) float64 {
	return func(f *fleet) float64 { return of(f).Seconds() }
}

func secondsText(figure float64) string {
	d := time.Duration(figure * float64(time.Second))
	if d < time.Second {
		return benchmark.Millis(d)
	}
	return benchmark.Seconds(d)
}

func bytesText(figure float64) string { return benchmark.Megabytes(int64(figure)) }

func medianOr0(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return benchmark.Median(all...)
}

var fleetRows = []fleetRow{
	{"first render of all", durationInSeconds(func(f *fleet) time.Duration { return f.first.wall }), secondsText},
	{"… in processor time", durationInSeconds(func(f *fleet) time.Duration { return f.first.processor }), secondsText},
	{"upgrade of all, from the event to the last commit", durationInSeconds(func(f *fleet) time.Duration { return f.upgrade.wall }), secondsText},
	{"… in processor time", durationInSeconds(func(f *fleet) time.Duration { return f.upgrade.processor }), secondsText},
	{"… commits", func(f *fleet) float64 { return float64(f.commits) }, func(n float64) string { return fmt.Sprint(int(n)) }},
	{"… most memory of the daemon", func(f *fleet) float64 { return float64(f.daemon) }, bytesText},
	{"… most memory with renderers", func(f *fleet) float64 { return float64(f.all) }, bytesText},
	{"event that touches none", durationInSeconds(func(f *fleet) time.Duration { return medianOr0(f.none) }), secondsText},
	{"… in processor time", durationInSeconds(func(f *fleet) time.Duration { return f.nonePlan }), secondsText},
	{"… git fetch --depth 1 of its commit", durationInSeconds(func(f *fleet) time.Duration { return medianOr0(f.fetch) }), secondsText},
	{"event that touches one, to its commit", durationInSeconds(func(f *fleet) time.Duration { return medianOr0(f.one) }), secondsText},
	{"… git push of one changed file", durationInSeconds(func(f *fleet) time.Duration { return medianOr0(f.push) }), secondsText},
	{"change of a base that at most 500 share", durationInSeconds(func(f *fleet) time.Duration { return f.base.wall }), secondsText},
	{"… in processor time", durationInSeconds(func(f *fleet) time.Duration { return f.base.processor }), secondsText},
	{"start with nothing new, to ready", durationInSeconds(func(f *fleet) time.Duration { return f.ready }), secondsText},
	{"… until all are looked at", durationInSeconds(func(f *fleet) time.Duration { return f.start.wall }), secondsText},
	{"… in processor time", durationInSeconds(func(f *fleet) time.Duration { return f.start.processor }), secondsText},
	{"one changed file of a pipeline, to the plan", durationInSeconds(func(f *fleet) time.Duration { return f.reload.wall }), secondsText},
	{"… in processor time", durationInSeconds(func(f *fleet) time.Duration { return f.reload.processor }), secondsText},
	{"reconcile --all --wait with nothing new", durationInSeconds(func(f *fleet) time.Duration { return f.reconcile.wall }), secondsText},
	{"… in processor time", durationInSeconds(func(f *fleet) time.Duration { return f.reconcile.processor }), secondsText},
	{"page with the list", durationInSeconds(func(f *fleet) time.Duration { return f.page }), secondsText},
	{"metrics", durationInSeconds(func(f *fleet) time.Duration { return f.metrics }), secondsText},
	{"status of all, as JSON", durationInSeconds(func(f *fleet) time.Duration { return f.status }), secondsText},
}

// reportFleets writes the table, and the rows that grow faster than the number of pipelines.
func (b *benchRun) reportFleets(all []*fleet) error {
	head := []string{"pipelines"}
	for _, f := range all {
		head = append(head, fmt.Sprint(f.n))
	}
	if len(all) > 1 {
		head = append(head, "grows with the power")
	}
	rows := [][]string{head}
	var faster []string
	of := "" // what a row that begins with dots belongs to
	for _, row := range fleetRows {
		cells, name := []string{row.name}, row.name
		if rest, ok := strings.CutPrefix(name, "…"); ok {
			name = of + rest
		} else {
			of = name
		}
		for _, f := range all {
			text := "–"
			if figure := row.of(f); figure > 0 {
				text = row.text(figure)
			}
			cells = append(cells, text)
		}
		if len(all) > 1 {
			power, ok := growthExponent(all, row.of)
			cells = append(cells, power)
			if ok {
				faster = append(faster, name)
			}
		}
		rows = append(rows, cells)
	}
	title := fmt.Sprintf("fleets of small applications of one repository; load of the machine at the end %s",
		loadAverage())
	if err := b.report.Table(title, rows...); err != nil || len(all) < 2 {
		return err
	}
	text := "none"
	if len(faster) > 0 {
		text = strings.Join(faster, "; ")
	}
	_, err := fmt.Fprintf(b.report.Out, "\ngrows faster than linearly between the last two: %s\n", text)
	return err
}

// growthExponent returns the exponent with which a figure grows with the number of pipelines between the two largest
// fleets, and reports whether that is more than linear beyond the noise of one run.
func growthExponent(all []*fleet, of func(f *fleet) float64) (text string, faster bool) {
	from, to := all[len(all)-2], all[len(all)-1]
	if of(from) <= 0 || of(to) <= 0 || from.n == to.n {
		return "–", false
	}
	power := math.Log(of(to)/of(from)) / math.Log(float64(to.n)/float64(from.n))
	return fmt.Sprintf("%.2f", power), power > 1.1
}

// requireOfFleets notes which targets are missed.
func (b *benchRun) requireOfFleets(all []*fleet) {
	within := func(f *fleet, what string, took, asked time.Duration) {
		b.report.Require(took <= asked, "%s of %d pipelines takes %s, not at most %s", what, f.n,
			benchmark.Seconds(took), asked)
	}
	for _, f := range all {
		if f.n <= 10_000 {
			within(f, "an event that touches none", medianOr0(f.none), 30*time.Millisecond)
			within(f, "an event that touches one", medianOr0(f.one), 150*time.Millisecond)
			within(f, "a start", f.ready, 5*time.Second)
			within(f, "a change of a shared base", f.base.wall, 6*time.Second)
			b.report.Require(f.all <= 700e6, "an upgrade of %d pipelines takes %s of memory, not at most 700 MB", f.n,
				benchmark.Megabytes(f.all))
		}
		if f.n == 1000 {
			within(f, "an upgrade", f.upgrade.wall, 3*time.Second)
		}
		if f.n == 10_000 {
			within(f, "an upgrade", f.upgrade.wall, 30*time.Second)
			within(f, "the first render", f.first.wall, 4*time.Minute)
		}
	}
}

// runPrerig runs the command.
func (b *benchRun) runPrerig(args ...string) error {
	if out, err := exec.CommandContext(b.ctx, b.prerig, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("running prerig %s: %w\n%s", args[0], err, out[:min(len(out), 2000)])
	}
	return nil
}

// timeReading gets something and reads it to its end.
func timeReading(ctx context.Context, client *http.Client, path string) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return 0, fmt.Errorf("asking for %s: %w", path, err)
	}
	begin := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("asking for %s: %w", path, err)
	}
	defer response.Body.Close()
	if n, err := io.Copy(io.Discard, response.Body); err != nil || n == 0 || response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("asking for %s: %s, %d bytes: %w", path, response.Status, n, err)
	}
	return time.Since(begin), nil
}

// loadAverage is how busy the machine was in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
