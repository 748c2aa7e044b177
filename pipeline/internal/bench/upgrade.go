// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// upgradeTimes is what was measured of an upgrade of Istio over all applications.
type upgradeTimes struct {
	ours, single, together []time.Duration
	idle                   []time.Duration
	commits                int
	first                  time.Duration
	daemon, all            int64
}

// measureMany is an upgrade of Istio over many applications of one repository.
func (b *benchRun) measureMany() error {
	r, err := b.git.Repository(b.ctx, "many")
	if err != nil {
		return err
	}
	content := policyFiles("1.29.0")
	for i := range b.apps {
		maps.Copy(content, appFiles(appName(i), "1"))
	}
	if _, err := r.Commit(b.ctx, "first", content); err != nil {
		return err
	}
	if err := b.branchByHand(r); err != nil {
		return err
	}
	begin := time.Now()
	d, err := testbed.Serve(b.ctx, b.prerig, filepath.Join(b.dir, "many"), pipelineFiles(b.apps, r.URL))
	if err != nil {
		return err
	}
	if err := b.waitForTexts(r, b.apps, "proxyv2:1.29.0"); err != nil {
		return fmt.Errorf("%w\n%s", err, d.Problems())
	}
	u := upgradeTimes{first: time.Since(begin)}
	stop := watchMemory(d.PID)
	for round := range max(1, b.rounds/3) {
		if err := b.upgradeOnce(d, r, round, &u); err != nil {
			return err
		}
	}
	u.all = stop()
	u.daemon = peakMemory(d.PID)
	if err := d.Stop(); err != nil {
		return err
	}
	return b.reportUpgrade(u)
}

// idleRounds is the number of events without effect that are sent after each upgrade.
const idleRounds = 10

// upgradeOnce is one round.
func (b *benchRun) upgradeOnce(d *testbed.Daemon, r *testbed.Repository, round int, u *upgradeTimes) error {
	version := fmt.Sprintf("1.29.%d", round+1)
	commit, err := r.Commit(b.ctx, "Istio "+version, policyFiles(version))
	if err != nil {
		return err
	}
	time.Sleep(pause)
	before, begin := r.Head(rendered), time.Now()
	if err := b.sendEvent(d, r, commit); err != nil {
		return err
	}
	if err := b.waitForTexts(r, b.apps, "proxyv2:"+version); err != nil {
		return fmt.Errorf("%w\n%s", err, d.Problems())
	}
	u.ours = append(u.ours, time.Since(begin))
	count, err := r.Git(b.ctx, "rev-list", "--count", before+".."+rendered)
	if err != nil {
		return err
	}
	_, _ = fmt.Sscan(count, &u.commits)
	// The runs are written down after their commit; until then they count as under way.
	if err := b.waitUntilQuiet(d, r, version); err != nil {
		return err
	}
	for range idleRounds {
		idle, err := b.timeUnaffected(d, r, fmt.Sprint(version, time.Now().UnixNano()))
		if err != nil {
			return err
		}
		u.idle = append(u.idle, idle)
	}
	args := []string{r.URL, byHand}
	var single time.Duration
	for i := range b.sample {
		app := appName(i * b.apps / b.sample)
		args = append(args, app)
		took, err := b.runScript(script, r.URL, app, byHand)
		if err != nil {
			return err
		}
		single += took
	}
	u.single = append(u.single, single*time.Duration(b.apps)/time.Duration(b.sample))
	// The versions of the sample are committed by now: another one makes the script have something to commit.
	if _, err := r.Commit(b.ctx, "Istio "+version+"-x", policyFiles(version+"-x")); err != nil {
		return err
	}
	together, err := b.runScript(allScript, args...)
	u.together = append(u.together, together*time.Duration(b.apps)/time.Duration(b.sample))
	return err
}

func (b *benchRun) reportUpgrade(u upgradeTimes) error {
	ours, single, together := benchmark.Median(u.ours...), benchmark.Median(u.single...), benchmark.Median(u.together...)
	title := fmt.Sprintf("an upgrade of Istio over %d applications of one repository; %d rounds", b.apps, len(u.ours))
	title += fmt.Sprintf("\n(the script's times are those of %d of them, times %d)", b.sample, b.apps/b.sample)
	err := b.report.Table(title,
		[]string{"", "time", "times as long as prerig serve"},
		[]string{"script, run for one application after the other", benchmark.Seconds(single),
			fmt.Sprintf("%.1f", single.Seconds()/ours.Seconds())},
		[]string{"script that clones and pushes once for all", benchmark.Seconds(together),
			fmt.Sprintf("%.1f", together.Seconds()/ours.Seconds())},
		[]string{fmt.Sprintf("prerig serve, from the event to the pushed commit (%d)", u.commits),
			benchmark.Seconds(ours), "1"},
		[]string{"prerig serve, from its first start", benchmark.Seconds(u.first), ""},
		[]string{"prerig serve, an event that touches no pipeline", benchmark.Millis(benchmark.Median(u.idle...)),
			fmt.Sprintf("%d of them, the slowest %s", len(u.idle), benchmark.Millis(slices.Max(u.idle)))},
		[]string{"prerig serve, most memory", benchmark.Megabytes(u.daemon), ""},
		[]string{"the same with its renderers", benchmark.Megabytes(u.all), ""})
	b.report.Require(single >= 8*ours, "all applications are rendered %.1f times as fast as by the script, not at least 8 times", single.Seconds()/ours.Seconds())
	b.report.Require(benchmark.Median(u.idle...) <= 50*time.Millisecond,
		"an event that touches none of %d pipelines takes %s, not at most 50 ms", b.apps,
		benchmark.Millis(benchmark.Median(u.idle...)))
	b.report.Require(u.daemon < 300e6, "the daemon took %s of memory, not less than 300 MB",
		benchmark.Megabytes(u.daemon))
	return err
}
