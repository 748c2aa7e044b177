// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// rendered is the branch that Prerig writes.
const rendered = "rendered"

// pause between events is longer than the default of debounce, which is no part of what one event costs.
const pause = 1100 * time.Millisecond

// measureSmallApplication is one small application in a repository of its own.
func (b *benchRun) measureSmallApplication() error {
	r, err := b.git.Repository(b.ctx, "one")
	if err != nil {
		return err
	}
	first := policyFiles("1.29.0")
	maps.Copy(first, appFiles(appName(0), "0"))
	if _, err := r.Commit(b.ctx, "first", first); err != nil {
		return err
	}
	if err := b.branchByHand(r); err != nil {
		return err
	}
	d, err := testbed.Serve(b.ctx, b.prerig, filepath.Join(b.dir, "one"), pipelineFiles(1, r.URL))
	if err != nil {
		return err
	}
	if err := b.waitForTexts(r, 1, "app-0000:0"); err != nil {
		return err
	}
	var hands, ours, none []time.Duration
	for round := range b.rounds + 1 {
		tag := fmt.Sprint(round + 1)
		commit, err := r.Commit(b.ctx, "tag "+tag, appFiles(appName(0), tag))
		if err != nil {
			return err
		}
		time.Sleep(pause)
		took, err := b.timePublished(d, r, commit)
		if err != nil {
			return err
		}
		if err := b.waitUntilQuiet(d, r, tag); err != nil {
			return err
		}
		hand, err := b.runScript(script, r.URL, appName(0), byHand)
		if err != nil {
			return err
		}
		idle, err := b.timeUnaffected(d, r, tag)
		if err != nil {
			return err
		}
		if round > 0 {
			hands, ours, none = append(hands, hand), append(ours, took), append(none, idle)
		}
	}
	memory := peakMemory(d.PID)
	if err := d.Stop(); err != nil {
		return err
	}
	return b.reportSmallApplication(hands, ours, none, memory)
}

// reportSmallApplication reports the times of the script, of the daemon, and of events that touch no pipeline.
func (b *benchRun) reportSmallApplication(hands, ours, none []time.Duration, memory int64) error {
	ratio := benchmark.Median(ours...).Seconds() / benchmark.Median(hands...).Seconds()
	err := b.report.Table(fmt.Sprintf("one small application: a Deployment, a Service and a ConfigMap; %d rounds", b.rounds),
		[]string{"", "time", ""},
		[]string{"script: clone, kustomize build, commit, push", benchmark.Millis(benchmark.Median(hands...)), ""},
		[]string{"prerig serve, from the event to the pushed commit", benchmark.Millis(benchmark.Median(ours...)),
			fmt.Sprintf("%.2f of the script", ratio)},
		[]string{"prerig serve, an event that touches no pipeline", benchmark.Millis(benchmark.Median(none...)),
			"the slowest " + benchmark.Millis(slices.Max(none))},
		[]string{"prerig serve, most memory", benchmark.Megabytes(memory), ""})
	b.report.Require(ratio <= 0.5, "from the event to the pushed commit takes %.2f times as long as the script, not at most 0.5", ratio)
	b.report.Require(benchmark.Median(none...) <= 50*time.Millisecond,
		"an event that touches nothing takes %s, not at most 50 ms", benchmark.Millis(benchmark.Median(none...)))
	return err
}

// timePublished sends the event of a commit and waits until the branch has another one.
func (b *benchRun) timePublished(d *testbed.Daemon, r *testbed.Repository, commit string) (time.Duration, error) {
	before := r.Head(rendered)
	begin := time.Now()
	if err := b.sendEvent(d, r, commit); err != nil {
		return 0, err
	}
	for r.Head(rendered) == before {
		if time.Since(begin) > time.Minute {
			return 0, fmt.Errorf("waiting for a commit: there is none after a minute\n%s", d.Problems())
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(begin), nil
}

func (b *benchRun) sendEvent(d *testbed.Daemon, r *testbed.Repository, commit string) error {
	status, err := d.Push(b.ctx, r.URL, commit)
	if err == nil && status != 202 {
		err = fmt.Errorf("calling the webhook: it was answered with %d", status)
	}
	return err
}

// timeUnaffected returns the time from before sending an event that affects no pipeline to the decision that no
// pipeline runs: it includes the webhook's answer, storing the event, fetching its commit and checking all
// pipelines.
func (b *benchRun) timeUnaffected(d *testbed.Daemon, r *testbed.Repository, text string) (time.Duration, error) {
	before := r.Head(rendered)
	took, runs, err := b.timePlanned(d, r, text)
	if err == nil && (runs != 0 || r.Head(rendered) != before) {
		err = fmt.Errorf("sending an event that touches nothing: it runs %d pipelines", runs)
	}
	return took, err
}

// timePlanned commits a file that no pipeline reads, and returns the time from the event to the decision how many
// run.
func (b *benchRun) timePlanned(d *testbed.Daemon, r *testbed.Repository,
	text string) (took time.Duration, runs int, err error) {
	commit, err := r.Commit(b.ctx, "docs", map[string]string{"docs/README.md": text + "\n"})
	if err != nil {
		return 0, 0, err
	}
	mark, begin := d.Mark(), time.Now()
	if err := b.sendEvent(d, r, commit); err != nil {
		return 0, 0, err
	}
	// From time to time some pipelines are looked at without an event; this one is about all.
	e, err := d.Entry(b.ctx, mark, func(e testbed.Entry) bool { return e.Message == "planned" && e.Fields["reason"] != "interval" })
	if err != nil {
		return 0, 0, err
	}
	n, _ := e.Fields["to run"].(float64)
	return e.At.Sub(begin), int(n), nil
}

// waitUntilQuiet waits until an event that affects no pipeline triggers no run: then no run is under way any more.
func (b *benchRun) waitUntilQuiet(d *testbed.Daemon, r *testbed.Repository, text string) error {
	for try := range 60 {
		time.Sleep(pause)
		if _, runs, err := b.timePlanned(d, r, fmt.Sprint(text, " quiet ", try)); err != nil || runs == 0 {
			return err
		}
	}
	return fmt.Errorf("waiting for the daemon: after a minute runs are still under way\n%s", d.Problems())
}

// waitForTexts waits until the branch has a text in the files of n applications.
func (b *benchRun) waitForTexts(r *testbed.Repository, n int, texts ...string) error {
	last := ""
	for begin := time.Now(); time.Since(begin) < 15*time.Minute; time.Sleep(5 * time.Millisecond) {
		head := r.Head(rendered)
		if head == "" || head == last {
			continue
		}
		last = head
		for _, text := range texts {
			// git fails if it finds no match.
			if out, err := r.Git(b.ctx, "grep", "-l", "-F", text, head); err == nil && strings.Count(out+"\n", "\n") >= n {
				return nil
			}
		}
	}
	return fmt.Errorf("waiting for %q in %d applications: it did not come", texts, n)
}
