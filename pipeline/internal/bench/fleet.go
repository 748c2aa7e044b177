// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// sharing is how many applications of a fleet have a base in common.
const sharing = 500

// fleetEvents is how many events of each kind are sent one after the other.
const fleetEvents = 10

// cost is how long something took, and how much processor time the daemon and its renderers have used meanwhile.
type cost struct{ wall, processor time.Duration }

// fleet is a repository of applications with a pipeline for each, and what was measured of it.
type fleet struct {
	*benchRun
	n    int
	dir  string
	r    *testbed.Repository
	d    *testbed.Daemon
	note func(format string, args ...any)

	first, upgrade, base, start, reload, reconcile cost
	none, one, fetch, push                         []time.Duration // of the last two by git itself
	nonePlan                                       time.Duration   // of processor time, for one event
	ready, page, metrics, status                   time.Duration
	commits                                        int
	daemon, all                                    int64
}

// fleetSizes reads the numbers of applications of a flag.
func fleetSizes(text string) ([]int, error) {
	var sizes []int
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("reading the flag -fleet: %q is not a number of applications", word)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// measureFleets measures fleets of several sizes, as far as time permits, and writes one table of all.
func (b *benchRun) measureFleets() error {
	sizes, err := fleetSizes(b.fleet)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(b.ctx, b.limit)
	defer cancel()
	limited := *b
	limited.ctx = ctx
	begin := time.Now()
	var all []*fleet
	for _, n := range sizes {
		f := &fleet{benchRun: &limited, n: n, dir: filepath.Join(b.dir, fmt.Sprint("fleet-", n))}
		f.note = func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, "%6.1f s, %d pipelines, load %s: %s\n", time.Since(begin).Seconds(), n,
				loadAverage(), fmt.Sprintf(format, args...))
		}
		all = append(all, f)
		if err = f.measureFleet(); err != nil {
			break
		}
	}
	if ctx.Err() != nil && b.ctx.Err() == nil {
		err = fmt.Errorf("measuring fleets: stopped after %s (-limit), what is not in the table was not measured: %w",
			b.limit, err)
	}
	if failed := b.reportFleets(all); failed != nil {
		return failed
	}
	b.requireOfFleets(all)
	return err
}

// measureFleet runs all measurements of one fleet.
func (f *fleet) measureFleet() (err error) {
	if err := f.prepareRepository(); err != nil {
		return err
	}
	defer func() {
		if f.d == nil {
			return
		}
		stopped := f.d.Stop()
		if err == nil {
			err = stopped
		}
	}()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"first render", f.measureFirst},
		{"upgrade", f.measureUpgrade},
		{"events that touch none", f.measureNone},
		{"events that touch one", f.measureOneOfMany},
		{"a shared base", f.measureBase},
		{"start", f.measureStart},
		{"page, metrics, status", f.measureReading},
		{"a changed file of a pipeline", f.measureReload},
		{"reconcile --all", f.measureReconcile},
	} {
		begin := time.Now()
		if err := step.do(); err != nil {
			problems := ""
			if f.d != nil {
				problems = "\n" + f.d.Problems()
			}
			return fmt.Errorf("measuring %s of %d pipelines: %w%s", step.name, f.n, err, problems)
		}
		f.note("%s: %s in all", step.name, benchmark.Seconds(time.Since(begin)))
	}
	return nil
}

func (f *fleet) prepareRepository() (err error) {
	if f.r, err = f.git.Repository(f.ctx, fmt.Sprint("fleet-", f.n)); err != nil {
		return err
	}
	_, err = f.r.Commit(f.ctx, "first", fleetFiles(f.n))
	f.note("the repository is there")
	return err
}

// startDaemon starts the daemon.
func (f *fleet) startDaemon() (err error) {
	f.d, err = testbed.Serve(f.ctx, f.prerig, f.dir, fleetPipelines(f.n, f.r.URL))
	return err
}

// measureFirst measures from the start of a daemon without any state until all is published.
func (f *fleet) measureFirst() error {
	// The pipelines are written before, as a daemon finds them.
	if err := testbed.Write(filepath.Join(f.dir, "pipelines"), fleetPipelines(f.n, f.r.URL)); err != nil {
		return err
	}
	begin := time.Now()
	if err := f.startDaemon(); err != nil {
		return err
	}
	end, err := f.waitForText("proxyv2:1.29.0", f.n)
	if err != nil {
		return err
	}
	if err := f.awaitQuietQueue(); err != nil {
		return err
	}
	f.first = cost{end.Sub(begin), familyTime(f.d.PID)}
	return nil
}

// measureUpgrade is from an event to the last pushed commit of all.
func (f *fleet) measureUpgrade() error {
	stop := watchMemory(f.d.PID)
	rounds := 1
	if f.n <= 1000 {
		rounds = 3
	}
	var took, used []time.Duration
	for round := range rounds {
		version := fmt.Sprintf("1.29.%d", round+1)
		before := f.r.Head(rendered)
		one, err := f.timePublishing(fleetPolicy(version), "proxyv2:"+version, f.n)
		if err != nil {
			return err
		}
		took, used = append(took, one.wall), append(used, one.processor)
		count, err := f.r.Git(f.ctx, "rev-list", "--count", before+".."+rendered)
		if err != nil {
			return err
		}
		_, _ = fmt.Sscan(count, &f.commits)
	}
	f.upgrade = cost{benchmark.Median(took...), benchmark.Median(used...)}
	f.all, f.daemon = stop(), peakMemory(f.d.PID)
	return nil
}

// timePublishing commits files and sends the event: the time until a text of it is published for all that it touches,
// and the processor time until all of them have ended.
func (f *fleet) timePublishing(files map[string]string, text string, n int) (cost, error) {
	time.Sleep(pause)
	commit, err := f.r.Commit(f.ctx, "change", files)
	if err != nil {
		return cost{}, err
	}
	used, begin := familyTime(f.d.PID), time.Now()
	if err := f.sendEvent(f.d, f.r, commit); err != nil {
		return cost{}, err
	}
	end, err := f.waitForText(text, n)
	if err != nil {
		return cost{}, err
	}
	err = f.awaitQuietQueue()
	return cost{end.Sub(begin), familyTime(f.d.PID) - used}, err
}

// awaitQuietQueue waits until no job is left, and longer than the debounce.
func (f *fleet) awaitQuietQueue() error {
	time.Sleep(pause)
	return f.waitUntilQuiet(f.d, f.r, fmt.Sprint("settle ", time.Now().UnixNano()))
}

// quiet is how long a branch must not have moved before it is searched: searching all files of a large one is slow.
const quiet = 300 * time.Millisecond

// waitForText waits until so many applications are published with a text, and returns when the last commit came.
func (f *fleet) waitForText(text string, n int) (end time.Time, err error) {
	last, looked, missing := "", true, ""
	for {
		if head := f.r.Head(rendered); head != last {
			last, looked, end = head, false, time.Now()
		}
		if !looked && time.Since(end) > quiet {
			looked = true
			if missing = f.findMissing(last, text, n, missing); missing == "" {
				return end, nil
			}
		}
		select {
		case <-f.ctx.Done():
			return end, fmt.Errorf("waiting for %s in %d applications: %w", text, n, f.ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// findMissing returns one of the first n applications that a text is not published for, or "" if all are complete.
// The application that was missing before is checked first, as that is cheap.
func (f *fleet) findMissing(head, text string, n int, before string) string {
	if before != "" {
		if _, err := f.r.Git(f.ctx, "grep", "-l", "-F", text, head, "--", before); err != nil { // it fails if it finds no match
			return before
		}
	}
	out, _ := f.r.Git(f.ctx, "grep", "-l", "-F", text, head)
	found := map[string]bool{}
	for line := range strings.Lines(out) {
		app, _, _ := strings.Cut(strings.TrimPrefix(line, head+":"), "/")
		found[app] = true
	}
	for i := range n {
		if !found[appName(i)] {
			return appName(i)
		}
	}
	return ""
}

// measureNone measures from an event to the decision that no pipeline runs, beside the time that git itself needs
// to fetch the commit.
func (f *fleet) measureNone() error {
	if err := f.awaitQuietQueue(); err != nil {
		return err
	}
	alone, err := f.cloneSideBranch("main")
	if err != nil {
		return err
	}
	used := familyTime(f.d.PID)
	for i := range fleetEvents {
		took, err := f.timeUnaffected(f.d, f.r, fmt.Sprint("none ", i, time.Now().UnixNano()))
		if err != nil {
			return err
		}
		f.none = append(f.none, took)
		if took, err = alone.timeFetch(); err != nil {
			return err
		}
		f.fetch = append(f.fetch, took)
	}
	f.nonePlan = (familyTime(f.d.PID) - used) / fleetEvents
	return nil
}

// measureOneOfMany measures from an event that touches one application to its pushed commit, beside the time that
// git itself needs to push one.
func (f *fleet) measureOneOfMany() error {
	alone, err := f.cloneSideBranch(rendered)
	if err != nil {
		return err
	}
	for i := range fleetEvents {
		commit, err := f.r.Commit(f.ctx, "tag", fleetApp(i*(f.n/fleetEvents), fmt.Sprint("2.", i)))
		if err != nil {
			return err
		}
		time.Sleep(pause)
		took, err := f.timePublished(f.d, f.r, commit)
		if err != nil {
			return err
		}
		f.one = append(f.one, took)
		if took, err = alone.timePush(i); err != nil {
			return err
		}
		f.push = append(f.push, took)
	}
	return nil
}

// measureBase is a change of what many applications share.
func (f *fleet) measureBase() (err error) {
	f.base, err = f.timePublishing(map[string]string{"base/defaults.yaml": fleetBase("changed")}, "value: changed",
		min(f.n, sharing))
	return err
}
