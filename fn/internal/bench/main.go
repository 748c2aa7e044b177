// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures prerig-fn beside a function on kyaml's framework that does nothing, on objects that it makes
// up. All of a comparison runs in turn in one run of this program; medians are printed.
//
//	go run ./fn/internal/bench -binary dist/prerig-fn [-triples 5000] [-rounds 5] [-check]
//
// With -check it fails where a target is missed: wall time at most 1.0 times and peak memory at most 0.3 times that of
// the other function, one Deployment within 30 ms, and a growth from 100 to 10,000 triples that is linear.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	binary  string
	triples int
	rounds  int
	check   bool
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == stopwatch {
		os.Exit(watch(os.Args[2:]))
	}
	var o options
	flag.StringVar(&o.binary, "binary", "dist/prerig-fn", "the prerig-fn to measure")
	flag.IntVar(&o.triples, "triples", 5000, "how many Deployments, Services and ConfigMaps")
	flag.IntVar(&o.rounds, "rounds", 5, "how many rounds are counted")
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
	missed []error
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
	b := &bench{options: o, ctx: ctx, dir: dir, noop: filepath.Join(dir, "noop")}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if err := build(ctx, b.noop, "github.com/prerig/prerig/fn/internal/bench/noop"); err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, %d CPUs, medians of %d rounds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.rounds)
	for _, part := range []func() error{b.list, b.single, b.growth, b.kustomize} {
		if err := part(); err != nil {
			return err
		}
	}
	if o.check {
		return errors.Join(b.missed...)
	}
	for _, err := range b.missed {
		fmt.Println("missed:", err)
	}
	return nil
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

// write puts objects into a file as a ResourceList, and gives its name and size.
func (b *bench) write(objects []byte) (name string, size int64, err error) {
	list := resourceList(objects)
	name = filepath.Join(b.dir, fmt.Sprintf("list-%d.yaml", len(list)))
	return name, int64(len(list)), os.WriteFile(name, list, 0o644)
}

// target notes a figure that misses its target.
func (b *bench) target(ok bool, format string, args ...any) {
	if !ok {
		b.missed = append(b.missed, fmt.Errorf(format, args...))
	}
}

// list is the big ResourceList.
func (b *bench) list() error {
	input, size, err := b.write(stream(b.triples))
	if err != nil {
		return err
	}
	medians, err := b.compare(b.rounds,
		contender{name: "a function that does nothing", input: input, args: []string{b.noop}},
		contender{name: "prerig-fn", input: input, args: []string{b.binary}})
	if err != nil {
		return err
	}
	none, ours := medians[0], medians[1]
	wall := ours.Wall.Seconds() / none.Wall.Seconds()
	peak := float64(ours.Peak) / float64(none.Peak)
	fmt.Printf("\n%d Deployments + Services + ConfigMaps, a ResourceList of %s\n", b.triples, mega(size))
	table([]string{"", "wall", "CPU", "peak memory", "output"}, [][]string{
		{"kyaml function that does nothing", seconds(none.Wall), seconds(none.CPU), mega(none.Peak), mega(none.Out)},
		{"prerig-fn, every Deployment injected", seconds(ours.Wall), seconds(ours.CPU), mega(ours.Peak), mega(ours.Out)},
		{"ratio", fmt.Sprintf("%.2f", wall), fmt.Sprintf("%.2f", ours.CPU.Seconds()/none.CPU.Seconds()), fmt.Sprintf("%.2f", peak), ""},
	})
	b.target(wall <= 1.0, "wall time is %.2f times that of the function that does nothing, not at most 1.0", wall)
	b.target(peak <= 0.3, "peak memory is %.2f times that of the function that does nothing, not at most 0.3", peak)
	b.target(ours.Out > 2*none.Out, "prerig-fn wrote %d bytes: that is not an injection", ours.Out)
	return nil
}

// single is one Deployment, from the start of the process to its end.
func (b *bench) single() error {
	deployment, _, _ := strings.Cut(string(stream(1)), "---\n")
	input, _, err := b.write([]byte(deployment))
	if err != nil {
		return err
	}
	medians, err := b.compare(4*b.rounds,
		contender{name: "a function that does nothing", input: input, args: []string{b.noop}},
		contender{name: "prerig-fn", input: input, args: []string{b.binary}})
	if err != nil {
		return err
	}
	fmt.Println("\none Deployment, from the start of the process to its end")
	table([]string{"", "wall", "CPU", "peak memory"}, [][]string{
		{"kyaml function that does nothing", millis(medians[0].Wall), millis(medians[0].CPU), mega(medians[0].Peak)},
		{"prerig-fn", millis(medians[1].Wall), millis(medians[1].CPU), mega(medians[1].Peak)},
	})
	b.target(medians[1].Wall <= 30*time.Millisecond, "one Deployment takes %s, not at most 30 ms", millis(medians[1].Wall))
	return nil
}

// growth is how time and memory grow with the number of objects.
func (b *bench) growth() error {
	sizes := []int{100, 300, 1000, 3000, 10000}
	var rows [][]string
	var per []time.Duration
	for _, n := range sizes {
		input, _, err := b.write(stream(n))
		if err != nil {
			return err
		}
		medians, err := b.compare(b.rounds, contender{name: "prerig-fn", input: input, args: []string{b.binary}})
		if err != nil {
			return err
		}
		per = append(per, medians[0].CPU/time.Duration(n))
		rows = append(rows, []string{fmt.Sprint(n), seconds(medians[0].Wall), seconds(medians[0].CPU), fmt.Sprintf("%.0f µs", float64(per[len(per)-1].Nanoseconds())/1e3), mega(medians[0].Peak)})
	}
	fmt.Println("\ngrowth of prerig-fn")
	table([]string{"triples", "wall", "CPU", "CPU per triple", "peak memory"}, rows)
	// Beyond the start of the process, which the small ones pay for, a triple must not get dearer.
	ratio := float64(per[len(per)-1]) / float64(per[2])
	b.target(ratio <= 1.5, "a triple of 10,000 takes %.2f times one of 1,000: that is not linear", ratio)
	return nil
}

// table prints rows in columns.
func table(head []string, rows [][]string) {
	widths := make([]int, len(head))
	all := append([][]string{head}, rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for n, row := range all {
		for i, cell := range row {
			fmt.Printf("| %s%s ", cell, strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		fmt.Println("|")
		if n == 0 {
			for _, w := range widths {
				fmt.Print("|", strings.Repeat("-", w+2))
			}
			fmt.Println("|")
		}
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
func millis(d time.Duration) string  { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }
func mega(n int64) string            { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }
