// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// measureLarge is one small application in a repository with many files and a long history: the first look at it, and
// events that touch none and one of its files that are read.
func (b *benchRun) measureLarge() error {
	r, err := b.git.Repository(b.ctx, "large")
	if err != nil {
		return err
	}
	commits := max(1, b.files/10)
	if err := importLarge(b.ctx, r, b.files, commits); err != nil {
		return err
	}
	begin := time.Now()
	d, err := testbed.Serve(b.ctx, b.prerig, filepath.Join(b.dir, "large"),
		map[string]string{"a.yaml": fleetPipeline(0, r.URL, "")})
	if err != nil {
		return err
	}
	defer func() { _ = d.Stop() }()
	if err := b.waitForTexts(r, 1, "proxyv2:1.29.0"); err != nil {
		return fmt.Errorf("%w\n%s", err, d.Problems())
	}
	first, used := time.Since(begin), familyTime(d.PID)
	var none, one []time.Duration
	var noneUsed, oneUsed time.Duration
	for i := range fleetEvents {
		time.Sleep(pause)
		before := familyTime(d.PID)
		took, err := b.timeUnaffected(d, r, fmt.Sprint("none ", i))
		if err != nil {
			return err
		}
		none, noneUsed = append(none, took), noneUsed+familyTime(d.PID)-before
		commit, err := r.Commit(b.ctx, "tag", fleetApp(0, fmt.Sprint("2.", i)))
		if err != nil {
			return err
		}
		before = familyTime(d.PID)
		if took, err = b.timePublished(d, r, commit); err != nil {
			return err
		}
		one, oneUsed = append(one, took), oneUsed+familyTime(d.PID)-before
		if err := b.waitUntilQuiet(d, r, fmt.Sprint("large ", i)); err != nil {
			return err
		}
	}
	b.report.Require(benchmark.Median(none...) <= 100*time.Millisecond,
		"a push to a large repository takes %s, not at most 100 ms", benchmark.Millis(benchmark.Median(none...)))
	return b.report.Table(fmt.Sprintf("one small application in a repository of %d files and %d commits; load %s", b.files, commits, loadAverage()),
		[]string{"", "time", "the slowest", "processor time"},
		[]string{"from the start of the daemon to the first commit", benchmark.Seconds(first), "",
			benchmark.Seconds(used)},
		[]string{"a push that touches nothing that is read", benchmark.Millis(benchmark.Median(none...)),
			benchmark.Millis(slices.Max(none)), benchmark.Millis(noneUsed / fleetEvents)},
		[]string{"a push of the application, to its commit", benchmark.Millis(benchmark.Median(one...)),
			benchmark.Millis(slices.Max(one)), benchmark.Millis(oneUsed / fleetEvents)})
}

// importLarge makes a repository of so many files, a hundred in each directory, beside the application, with so many
// commits on main.
func importLarge(ctx context.Context, r *testbed.Repository, files, commits int) error {
	command := exec.CommandContext(ctx, "git", "fast-import", "--quiet")
	command.Dir, command.Env = r.Bare, testbed.Environment()
	in, err := command.StdinPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("making a large repository: %w", err)
	}
	out := bufio.NewWriter(in)
	writeHistory(out, files, commits)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("making a large repository: %w", err)
	}
	in.Close()
	if err := command.Wait(); err != nil {
		return fmt.Errorf("making a large repository: %w", err)
	}
	_, err = r.InWork(ctx, "pull", "-q", "origin", "main")
	return err
}

// writeHistory writes what git fast-import reads: all files in the first commit, and one changed file in each other.
func writeHistory(out io.Writer, files, commits int) {
	write := func(name, text string) { fmt.Fprintf(out, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text) }
	for n := range commits {
		message := fmt.Sprint("commit ", n)
		fmt.Fprintf(out, "commit refs/heads/main\ncommitter Ann <ann@example.com> %d +0000\ndata %d\n%s\n",
			1_700_000_000+n, len(message), message)
		if n > 0 {
			write(largeFile(n%files), fmt.Sprintf("kind: ConfigMap # %d\n", n))
			continue
		}
		for i := range files {
			write(largeFile(i), fmt.Sprintf("kind: ConfigMap\nmetadata: {name: c%d}\n", i))
		}
		app := fleetApp(0, "1")
		maps.Copy(app, fleetFiles(0))
		for name, text := range app {
			write(name, text)
		}
	}
}

func largeFile(i int) string {
	return fmt.Sprintf("other/%03d/%02d/file-%d.yaml", i/10_000, i/100%100, i)
}
