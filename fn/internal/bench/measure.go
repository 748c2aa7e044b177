// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
)

// sample is what one run of a process took.
type sample struct {
	Wall time.Duration
	CPU  time.Duration // of all threads, in and for the process
	Peak int64         // most memory in RAM at a time, in bytes
	Out  int64         // bytes on standard output
}

// stopwatch is the first argument that makes this program a stopwatch: it runs the rest of its arguments as a command
// and prints a sample on descriptor 3. A process of its own does this because the system counts what the parent has in
// memory as the child's too.
const stopwatch = "stopwatch"

// runAndSample runs a command and writes its sample. Its status is that of the command.
func runAndSample(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	start := time.Now()
	err := cmd.Run()
	s := sample{Wall: time.Since(start)}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		fmt.Fprintln(os.Stderr, "this system does not tell what a process used")
		return 1
	}
	s.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	s.Peak = int64(usage.Maxrss)
	if runtime.GOOS != "darwin" {
		s.Peak *= 1024 // kilobytes, but for macOS
	}
	if err := json.NewEncoder(os.NewFile(3, "sample")).Encode(s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// measureContender runs a contender to its end. Input and output are files, so that no other process is involved.
func (b *bench) measureContender(ctx context.Context, c contender) (s sample, err error) {
	in, err := os.Open(c.input)
	if err != nil {
		return s, err
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(b.dir, "output"))
	if err != nil {
		return s, err
	}
	defer out.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return s, err
	}
	defer r.Close()
	cmd := exec.CommandContext(ctx, b.self, append([]string{stopwatch}, c.args...)...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = c.dir, in, out, &errs, []*os.File{w}
	err = cmd.Run()
	w.Close()
	if err != nil {
		return s, fmt.Errorf("running %s: %w: %s", c.args[0], err, outputTail(errs.Bytes()))
	}
	if err := json.NewDecoder(r).Decode(&s); err != nil {
		return s, fmt.Errorf("reading what %s took: %w", c.args[0], err)
	}
	info, err := out.Stat()
	if err != nil {
		return s, err
	}
	s.Out = info.Size()
	return s, nil
}

// outputTail returns the end of what a command printed.
func outputTail(b []byte) []byte {
	b = bytes.TrimSpace(b)
	return b[max(0, len(b)-400):]
}

// contender is a command in a comparison.
type contender struct {
	name  string
	dir   string
	input string   // the file on its standard input
	args  []string // the program and its arguments
}

// compareWithNothing measures prerig-fn over an input, and beside it the function that does nothing.
func (b *bench) compareWithNothing(rounds int, input string) (none, ours sample, err error) {
	medians, err := b.compareContenders(rounds,
		contender{name: "a function that does nothing", input: input, args: []string{b.noop}},
		contender{name: "prerig-fn", input: input, args: []string{b.binary}})
	if err != nil {
		return none, ours, err
	}
	return medians[0], medians[1], nil
}

// compareContenders runs every contender in turn, for a number of rounds, so that other load on the machine affects all
// of them alike. It returns the medians in the order of the contenders. A warm-up round is not counted.
func (b *bench) compareContenders(rounds int, contenders ...contender) ([]sample, error) {
	samples := make([][]sample, len(contenders))
	for round := range rounds + 1 {
		for i, c := range contenders {
			s, err := b.measureContender(b.ctx, c)
			if err != nil {
				return nil, fmt.Errorf("measuring %s: %w", c.name, err)
			}
			if round > 0 {
				samples[i] = append(samples[i], s)
			}
		}
	}
	medians := make([]sample, len(contenders))
	for i := range contenders {
		medians[i] = medianOfSamples(samples[i])
	}
	return medians, nil
}

// medianOfSamples returns the median of each figure separately.
func medianOfSamples(samples []sample) sample {
	return sample{
		Wall: medianOfFigure(samples, func(s sample) time.Duration { return s.Wall }),
		CPU:  medianOfFigure(samples, func(s sample) time.Duration { return s.CPU }),
		Peak: medianOfFigure(samples, func(s sample) int64 { return s.Peak }),
		Out:  samples[0].Out,
	}
}

func medianOfFigure[T cmp.Ordered](samples []sample, figure func(sample) T) T {
	var all []T
	for _, s := range samples {
		all = append(all, figure(s))
	}
	return benchmark.Median(all...)
}
