// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures prerig serve beside the shell script that one would write instead: git clone, kustomize
// build with prerig-fn as its function, commit and push. Both use the same Git server on loopback, in one run, in
// turn; it prints medians.
//
//	make bench-pipeline
//	go run ./pipeline/internal/bench -prerig dist/prerig -function dist/prerig-fn [-apps 1000] [-sample 20] [-check]
//	go run ./pipeline/internal/bench -prerig dist/prerig -helm PROGRAM -chart DIR [-apps 300] [-check]
//
// The script for all applications is run for a sample of them, one after the other, and its time multiplied. With
// -check the program fails if a target is missed: from event to pushed commit at most 0.5 times the script's time,
// an event that affects no pipeline within 50 ms, all applications at least 8 times as fast as the script, and less
// than 300 MB of memory in the daemon.
//
// With -helm it measures charts instead, beside helm template: the chart of a directory, one release of many, and
// another version of the chart of all. The targets are 60 ms and 64 MiB for the chart in a renderer that waits for
// work, one render for an event that touches one release, and a quarter of the script's time for all.
//
// With -fleet it measures fleets of applications instead, as far as the time of -limit permits: their first render,
// upgrades, events, starts, and reads by people, beside the processor time of the daemon and its renderers. Figures
// that grow faster than linearly are named.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// benchOptions are the flags.
type benchOptions struct {
	prerig, function     string
	helm, chart          string
	apps, sample, rounds int
	check                bool
	fleet                string
	files                int
	limit                time.Duration
}

func main() {
	var o benchOptions
	flag.StringVar(&o.prerig, "prerig", "dist/prerig", "the prerig to measure")
	flag.StringVar(&o.function, "function", "dist/prerig-fn", "the prerig-fn that the script's kustomize runs")
	flag.StringVar(&o.helm, "helm", "", "the helm to measure charts beside")
	flag.StringVar(&o.chart, "chart", "", "with -helm, the directory of the chart to measure")
	flag.IntVar(&o.apps, "apps", 1000, "how many applications an upgrade of Istio renders")
	flag.IntVar(&o.sample, "sample", 20, "for how many of them the script is run")
	flag.IntVar(&o.rounds, "rounds", 9, "how many rounds are counted; of the upgrade a third as many")
	flag.StringVar(&o.fleet, "fleet", "", "measure fleets of so many applications instead, such as \"1000 10000\"")
	flag.IntVar(&o.files, "files", 0, "measure one application in a repository of so many files instead, with a tenth as many commits")
	flag.DurationVar(&o.limit, "limit", time.Hour, "with -fleet, the longest time for all")
	flag.BoolVar(&o.check, "check", false, "fail where a target is missed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runBench(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// benchRun is one run of the program.
type benchRun struct {
	benchOptions
	ctx    context.Context
	dir    string
	path   string // of programs that the script uses
	git    *testbed.Git
	report benchmark.Report
}

func runBench(ctx context.Context, o benchOptions) (err error) {
	b := &benchRun{benchOptions: o, ctx: ctx, report: benchmark.Report{Out: os.Stdout}}
	if b.dir, err = os.MkdirTemp("", "prerig-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := b.buildPrograms(); err != nil {
		return err
	}
	if b.git, err = testbed.ServeGit(filepath.Join(b.dir, "git")); err != nil {
		return err
	}
	defer b.git.Close()
	fmt.Printf("%s %s/%s, %d CPUs, medians\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	parts := []func() error{b.measureSmallApplication, b.measureMany}
	switch {
	case b.helm != "":
		parts = []func() error{b.measureHelm}
	case b.fleet != "":
		parts = []func() error{b.measureFleets}
	case b.files > 0:
		parts = []func() error{b.measureLarge}
	}
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	return b.report.Finish(o.check)
}

// buildPrograms puts what the script runs on its path: Helm, or the function and kustomize, which it builds as go.mod
// pins it.
func (b *benchRun) buildPrograms() (err error) {
	for _, path := range []*string{&b.prerig, &b.function, &b.helm, &b.chart} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if b.helm != "" {
		b.path = filepath.Dir(b.helm) + string(filepath.ListSeparator) + os.Getenv("PATH")
		return nil
	}
	if b.fleet != "" || b.files > 0 {
		return nil // no script is run
	}
	bin := filepath.Join(b.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(b.function, filepath.Join(bin, "prerig-fn")); err != nil {
		return err
	}
	cmd := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o",
		filepath.Join(bin, "kustomize"), "sigs.k8s.io/kustomize/kustomize/v5")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building kustomize: %w\n%s", err, out)
	}
	b.path = bin + string(filepath.ListSeparator) + os.Getenv("PATH")
	return nil
}
