// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// longRun returns how long TestALongRunKeepsNothing takes, and of how many pipelines.
func longRun(t *testing.T) (length time.Duration, pipelines int) {
	t.Helper()
	text := os.Getenv("PRERIG_E2E_LONG")
	if text == "" {
		t.Skip("LEFT OUT: make e2e-long runs it for two hours")
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < 3*time.Minute {
		t.Fatalf("PRERIG_E2E_LONG is %q, want a duration of three minutes or more", text)
	}
	return length, 500
}

// usage is what a daemon has of the machine.
type usage struct {
	// heap is what is reachable, resident the memory in RAM, and disk what the state directory takes, in bytes.
	heap, resident, disk                   uint64
	goroutines, descriptors, threads, kids int
}

func (u usage) String() string {
	return fmt.Sprintf("%d MB reachable, %d MB resident, %d goroutines, %d descriptors, %d threads, %d children, %d MB on disk",
		u.heap>>20, u.resident>>20, u.goroutines, u.descriptors, u.threads, u.kids, u.disk>>20)
}

// usage measures the daemon. Its goroutines are written by itself, after a collection of garbage.
func (f *besideHostile) usage() (u usage) {
	f.t.Helper()
	f.daemon.mu.Lock()
	pid := f.daemon.command.Process.Pid
	f.daemon.mu.Unlock()
	asked := time.Now()
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("waiting for the daemon's account", func() string {
		info, err := os.Stat(f.account)
		if err != nil || info.ModTime().Before(asked) {
			return "it is not written"
		}
		return ""
	})
	text, err := os.ReadFile(f.account)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &u.goroutines, &u.heap); err != nil {
		f.t.Fatal(err)
	}
	dir := filepath.Join("/proc", fmt.Sprint(pid))
	u.descriptors, u.threads = entries(f.t, dir+"/fd"), entries(f.t, dir+"/task")
	u.resident = inStatus(dir, "VmRSS:")
	u.kids = len(childrenOf(fmt.Sprint(pid)))
	u.disk = onDisk(f.c.State)
	return u
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func childrenOf(parent string) (pids []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if readStat(filepath.Base(dir)).parent == parent {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

// onDisk is what the files below a directory occupy: the logs of the queue are longer than that.
func onDisk(dir string) (bytes uint64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it was removed meanwhile
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += 512 * uint64(info.Sys().(*syscall.Stat_t).Blocks)
		}
		return nil
	})
	return bytes
}

// settledUsage is the least of each that is seen in a minute without pushes: what one poll or one collection has at hand
// does not count.
func (f *besideHostile) settledUsage() usage {
	least := f.usage()
	for range 30 {
		time.Sleep(2 * time.Second)
		u := f.usage()
		least.heap, least.resident, least.disk = min(least.heap, u.heap), min(least.resident, u.resident), min(least.disk, u.disk)
		least.goroutines, least.descriptors = min(least.goroutines, u.goroutines), min(least.descriptors, u.descriptors)
		least.threads, least.kids = min(least.threads, u.threads), min(least.kids, u.kids)
	}
	return least
}

// TestALongRunKeepsNothing has 500 pipelines of a few repositories with pushes, and a hostile source of each kind, for
// hours. At the end the daemon has as much memory, goroutines, file descriptors and disk as after a tenth of that.
func TestALongRunKeepsNothing(t *testing.T) {
	length, pipelines := longRun(t)
	const repositories = 20
	f := startHonest(t, repositories)
	f.patience = length // it is not about the speed of the machine
	h := newHostileServer(t)
	charts := f.git.Repository(t, "charts")
	h.addCharts(charts)
	f.addPipelines(pipelines - repositories)
	kinds := slices.Sorted(maps.Keys(hostileKinds))
	for i, kind := range kinds {
		f.write(filepath.Join(f.c.Pipelines, "evil-"+kind+".yaml"), h.hostilePipeline(kind, i, charts))
	}
	f.eventually("waiting for every kind of hostile source to be read", func() string { return strings.Join(h.unasked(1), " ") })
	pushes, began := f.pushUntil(time.Now().Add(length/10)), time.Now()
	first := f.settledUsage()
	t.Logf("after %d pushes: %s", pushes, first)
	for end := began.Add(length - length/10); time.Now().Before(end); {
		pushes += f.pushUntil(earlier(end, time.Now().Add(length/20)))
		t.Logf("after %d pushes, %s left: %s", pushes, time.Until(end).Round(time.Second), f.usage())
	}
	last := f.settledUsage()
	t.Logf("after %d pushes: %s", pushes, last)
	f.judge(first, last)
	f.allReadyOf("team/", pipelines)
	f.allReadyOf("evil/", 0)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// addPipelines adds pipelines of directories of the honest repositories, and waits until their results are published.
func (f *besideHostile) addPipelines(n int) {
	f.t.Helper()
	of := func(i int) *gittest.Repository { return f.honest[i%len(f.honest)] }
	files := map[*gittest.Repository]map[string]string{}
	for i := range n {
		name, r := fmt.Sprintf("more-%d", i), of(i)
		if files[r] == nil {
			files[r] = map[string]string{}
		}
		files[r]["apps/"+name+"/app.yaml"] = deployment(name, "image:first")
		f.write(filepath.Join(f.c.Pipelines, name+".yaml"), pipelineYAML(name, r.URL, "  interval: 10s\n"))
	}
	for r, of := range files {
		f.pushTo(r, r.Commit("more", of))
	}
	f.allReadyOf("team/", n+len(f.honest))
}

// allReadyOf waits until a number of pipelines of a namespace are ready.
func (f *besideHostile) allReadyOf(prefix string, want int) {
	f.t.Helper()
	f.eventually("waiting for all pipelines", func() string {
		ready := 0
		for _, p := range f.pipelines() {
			if strings.HasPrefix(p.Name, prefix) && p.State == "Ready" {
				ready++
			}
		}
		time.Sleep(time.Second)
		if ready != want {
			return fmt.Sprintf("%d of %d are ready", ready, want)
		}
		return ""
	})
}

// pushUntil changes one honest source after the other until a time, and returns how often.
func (f *besideHostile) pushUntil(end time.Time) (pushes int) {
	f.t.Helper()
	for time.Now().Before(end) {
		took, _ := f.push(10, time.Until(end))
		pushes += len(took)
	}
	return pushes
}

// judge compares what the daemon has at the end with what it had after its first pushes. The heap of Go's runtime is
// given back late, and one history of runs is a few kilobytes: so what counts is far from them, and close to a leak of one
// goroutine, descriptor or kilobyte a push.
func (f *besideHostile) judge(first, last usage) {
	f.t.Helper()
	check := func(what string, first, last, more float64) {
		if last > first+more {
			f.t.Errorf("%s: %g at the end, %g at the start", what, math.Round(last), math.Round(first))
		}
	}
	const mb = 1 << 20
	check("reachable bytes", float64(first.heap), float64(last.heap), max(float64(first.heap)/4, 16*mb))
	check("resident bytes", float64(first.resident), float64(last.resident), max(float64(first.resident)/4, 64*mb))
	check("bytes on disk", float64(first.disk), float64(last.disk), max(float64(first.disk)/4, 64*mb))
	check("goroutines", float64(first.goroutines), float64(last.goroutines), 30)
	check("descriptors", float64(first.descriptors), float64(last.descriptors), 15)
	check("children", float64(first.kids), float64(last.kids), 2)
}
