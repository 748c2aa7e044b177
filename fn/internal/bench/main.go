// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench compares prerig-fn with a no-op function on kyaml's framework, on generated objects. All contenders
// of a comparison run in turn in one run of this program; medians are printed.
//
//	go run ./fn/internal/bench -binary dist/prerig-fn [-triples 5000] [-rounds 5] [-kustomize 100] [-check]
//	go run ./fn/internal/bench -beside 'istioctl kube-inject -f - --injectConfigFile c --meshConfigFile m --valuesFile v'
//
// With -check it fails if a target is missed: wall time at most 1.0 times and peak memory at most 0.3 times that of
// the other function, processor time at most what mixes has, one Deployment within 30 ms, and a growth from 100 to 10,000 triples that is linear.
//
// With -admit it measures prerig admit beside prerig inject instead. The target is twice its processor time.
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
	"strings"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
)

// options are the flags.
type options struct {
	binary  string
	triples int
	rounds  int
	check   bool
	// kustomize is how many triples kustomize builds, and beside a command to compare prerig inject with.
	kustomize int
	beside    string
	// admit measures prerig admit instead.
	admit bool
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == stopwatch {
		os.Exit(runAndSample(os.Args[2:]))
	}
	var o options
	flag.StringVar(&o.binary, "binary", "dist/prerig-fn", "the prerig-fn to measure; prerig is in the same directory")
	flag.IntVar(&o.triples, "triples", 5000, "how many Deployments, Services and ConfigMaps")
	flag.IntVar(&o.rounds, "rounds", 5, "how many rounds are counted")
	flag.IntVar(&o.kustomize, "kustomize", 100, "how many of them kustomize builds")
	flag.StringVar(&o.beside, "beside", "", "measure prerig inject beside this command, which injects into a stream on its standard input, and nothing else")
	flag.BoolVar(&o.admit, "admit", false, "measure prerig admit beside prerig inject, and nothing else")
	flag.BoolVar(&o.check, "check", false, "fail where a target is missed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run of the program.
type bench struct {
	options
	ctx    context.Context
	dir    string // for what is built and generated
	self   string // this program
	noop   string
	report benchmark.Report
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "prerig-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return err
	}
	b := &bench{options: o, ctx: ctx, dir: dir, noop: filepath.Join(dir, "noop"),
		report: benchmark.Report{Out: os.Stdout}}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if err := build(ctx, b.noop, "github.com/prerig/prerig/fn/internal/bench/noop"); err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, %d CPUs, medians of %d rounds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), o.rounds)
	parts := []func() error{
		b.measureLargeList, b.measureMixes, b.measureSingleDeployment, b.measureObjectGrowth, b.kustomizeBuild, b.measureLintCommand,
	}
	switch {
	case o.admit:
		parts = []func() error{b.measureAdmitCommand}
	case o.beside != "":
		parts = []func() error{b.compareInjectCommands}
	}
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	return b.report.Finish(o.check)
}

// build builds a program of this module or of its tools.
func build(ctx context.Context, out, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s: %w", pkg, err)
	}
	return nil
}

// writeResourceList writes objects to a file as a ResourceList, and returns its name and size.
func (b *bench) writeResourceList(objects []byte) (name string, size int64, err error) {
	list := resourceList(objects)
	name = filepath.Join(b.dir, fmt.Sprintf("list-%d.yaml", len(list)))
	return name, int64(len(list)), os.WriteFile(name, list, 0o644)
}

// measureLargeList is the big ResourceList.
func (b *bench) measureLargeList() error {
	input, size, err := b.writeResourceList(plainTripleStream(b.triples))
	if err != nil {
		return err
	}
	none, ours, err := b.compareWithNothing(b.rounds, input)
	if err != nil {
		return err
	}
	wall := ours.Wall.Seconds() / none.Wall.Seconds()
	peak := float64(ours.Peak) / float64(none.Peak)
	err = b.report.Table(fmt.Sprintf("%d Deployments + Services + ConfigMaps, a ResourceList of %s", b.triples, benchmark.Megabytes(size)),
		[]string{"", "wall", "CPU", "peak memory", "output"},
		[]string{"kyaml function that does nothing", benchmark.Seconds(none.Wall), benchmark.Seconds(none.CPU),
			benchmark.Megabytes(none.Peak), benchmark.Megabytes(none.Out)},
		[]string{"prerig-fn, every Deployment injected", benchmark.Seconds(ours.Wall), benchmark.Seconds(ours.CPU),
			benchmark.Megabytes(ours.Peak), benchmark.Megabytes(ours.Out)},
		[]string{"ratio", fmt.Sprintf("%.2f", wall), fmt.Sprintf("%.2f", ours.CPU.Seconds()/none.CPU.Seconds()),
			fmt.Sprintf("%.2f", peak), ""})
	b.report.Require(wall <= 1.0, "wall time is %.2f times that of the function that does nothing, not at most 1.0",
		wall)
	b.report.Require(peak <= 0.3, "peak memory is %.2f times that of the function that does nothing, not at most 0.3",
		peak)
	b.report.Require(ours.Out > 2*none.Out, "prerig-fn wrote %d bytes: that is not an injection", ours.Out)
	return err
}

// measureSingleDeployment is one Deployment, from the start of the process to its end.
func (b *bench) measureSingleDeployment() error {
	deployment, _, _ := strings.Cut(string(plainTripleStream(1)), "---\n")
	input, _, err := b.writeResourceList([]byte(deployment))
	if err != nil {
		return err
	}
	none, ours, err := b.compareWithNothing(4*b.rounds, input)
	if err != nil {
		return err
	}
	err = b.report.Table("one Deployment, from the start of the process to its end",
		[]string{"", "wall", "CPU", "peak memory"},
		[]string{"kyaml function that does nothing", benchmark.Millis(none.Wall), benchmark.Millis(none.CPU),
			benchmark.Megabytes(none.Peak)},
		[]string{"prerig-fn", benchmark.Millis(ours.Wall), benchmark.Millis(ours.CPU), benchmark.Megabytes(ours.Peak)})
	b.report.Require(ours.Wall <= 30*time.Millisecond, "one Deployment takes %s, not at most 30 ms",
		benchmark.Millis(ours.Wall))
	return err
}

// measureObjectGrowth is how time and memory grow with the number of objects.
func (b *bench) measureObjectGrowth() error {
	sizes := []int{100, 300, 1000, 3000, 10000}
	rows := [][]string{{"triples", "wall", "CPU", "CPU per triple", "peak memory"}}
	var per []time.Duration
	for _, n := range sizes {
		input, _, err := b.writeResourceList(plainTripleStream(n))
		if err != nil {
			return err
		}
		medians, err := b.compareContenders(b.rounds,
			contender{name: "prerig-fn", input: input, args: []string{b.binary}})
		if err != nil {
			return err
		}
		per = append(per, medians[0].CPU/time.Duration(n))
		rows = append(rows, []string{fmt.Sprint(n), benchmark.Seconds(medians[0].Wall), benchmark.Seconds(medians[0].CPU), fmt.Sprintf("%.0f µs", float64(per[len(per)-1].Nanoseconds())/1e3), benchmark.Megabytes(medians[0].Peak)})
	}
	// Beyond the start of the process, which the small ones pay for, a triple must not get dearer.
	ratio := float64(per[len(per)-1]) / float64(per[2])
	b.report.Require(ratio <= 1.5, "a triple of 10,000 takes %.2f times one of 1,000: that is not linear", ratio)
	return b.report.Table("growth of prerig-fn", rows...)
}
