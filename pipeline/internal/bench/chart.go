// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// warming is how long a renderer has to get ready: longer than the start of its process.
const warming = 300 * time.Millisecond

// measureChart renders one chart in renderers that wait for work, and by helm template.
func (b *benchRun) measureChart() error {
	source, err := chartTree(b.chart)
	if err != nil {
		return err
	}
	command := []string{filepath.Join(filepath.Dir(b.prerig), render.Program)}
	pool, err := render.NewPool(render.Options{Command: command, Warm: 1})
	if err != nil {
		return err
	}
	defer pool.Close()
	request := render.Request{Type: v1alpha1.BuildHelm, Limits: render.DefaultLimits(), Helm: &v1alpha1.Helm{
		Chart: "chart", ReleaseName: "istiod", Namespace: "istio-system", KubeVersion: "1.33.4",
		Lookup: v1alpha1.ImpureEmpty,
	}}
	objects := 0
	renderOnce := func() (time.Duration, error) {
		time.Sleep(warming)
		begin := time.Now()
		response, err := pool.Render(b.ctx, tree.NewView(source, tree.Limits{}), request)
		took := time.Since(begin)
		if err == nil {
			objects = len(response.Objects)
		}
		return took, err
	}
	var ours, hands []time.Duration
	var memory, own, helmMemory int64
	for range 5 * b.rounds {
		took, err := renderOnce()
		if err != nil {
			return fmt.Errorf("rendering the chart %s: %w", b.chart, err)
		}
		hand, used, err := b.timeHelm("template", "istiod", b.chart, "--namespace", "istio-system", "--kube-version",
			"1.33.4")
		if err != nil {
			return err
		}
		ours, hands, helmMemory = append(ours, took), append(hands, hand), max(helmMemory, used)
		// In a separate render, because watching has a cost.
		stop := watchChildren(os.Getpid())
		_, err = renderOnce()
		all, private := stop()
		memory, own = max(memory, all), max(own, private)
		if err != nil {
			return err
		}
	}
	median := benchmark.Median(ours...)
	b.report.Require(median <= 60*time.Millisecond, "a chart takes %s in a warm renderer, not at most 60 ms",
		benchmark.Millis(median))
	b.report.Require(memory <= 64<<20, "a renderer takes %s, not at most 64 MiB", benchmark.Megabytes(memory))
	return b.report.Table(fmt.Sprintf("the chart %s, %d objects; %d rounds", filepath.Base(b.chart), objects, len(ours)),
		[]string{"", "time", "most memory", "without the program's own pages"},
		[]string{"helm template", benchmark.Millis(benchmark.Median(hands...)), benchmark.Megabytes(helmMemory), ""},
		[]string{"a renderer that waits for work", benchmark.Millis(median), benchmark.Megabytes(memory),
			benchmark.Megabytes(own)})
}

// chartTree returns a source with a chart in the directory chart.
func chartTree(at string) (*tree.Tree, error) {
	files, err := chartFiles(at)
	if err != nil {
		return nil, err
	}
	builder := tree.NewBuilder(tree.Limits{})
	for name, content := range files {
		if err := builder.Add("chart/"+name, tree.File, content); err != nil {
			return nil, err
		}
	}
	return builder.Build(), nil
}

// timeHelm runs Helm, and returns its duration and peak resident memory.
func (b *benchRun) timeHelm(args ...string) (took time.Duration, memory int64, err error) {
	command := exec.CommandContext(b.ctx, b.helm, args...)
	command.Env = b.helmEnvironment()
	begin := time.Now()
	if out, err := command.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("running helm %s: %w\n%s", args[0], err, out)
	}
	took = time.Since(begin)
	if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		memory = usage.Maxrss * 1024
	}
	return took, memory, nil
}

// watchChildren polls the children of a process until it is stopped, and returns the peak resident memory of any of
// them, and the peak without the pages of its program, which all of them share. It polls without a pause, as some
// live for milliseconds only.
func watchChildren(pid int) (stop func() (all, own int64)) {
	var quit atomic.Bool
	var all, own int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !quit.Load() {
			for _, id := range childProcessIDs(pid) {
				status := readSizes(id, "status")
				all, own = max(all, status["VmHWM"]), max(own, status["RssAnon"])
			}
		}
	}()
	return func() (int64, int64) { quit.Store(true); <-done; return all, own }
}

// childProcessIDs returns the ids of the processes that a process has started, whichever of its threads did.
func childProcessIDs(pid int) []string {
	var out []string
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		out = append(out, strings.Fields(string(text))...)
	}
	return out
}
