// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// pushTo tells the daemon that main of some repository moved, again where it has no room for now, as Git hosts do not.
func (f *fixture) pushTo(r *gittest.Repository, commit string) {
	f.t.Helper()
	body, err := json.Marshal(map[string]any{"git": map[string]any{"urls": []string{r.URL}, "ref": "refs/heads/main", "after": commit}})
	if err != nil {
		f.t.Fatal(err)
	}
	most := 5
	if f.patience > 0 {
		most = int(f.patience / time.Second)
	}
	for tries := 0; ; tries++ {
		status, err := post(f.hooks, body, commit)
		switch {
		case err == nil && status == http.StatusAccepted:
			return
		case err == nil && status == http.StatusOK && tries > 0: // it was stored, after the time for the answer was over
			return
		case tries < most && (err != nil && f.patience > 0 || status == http.StatusServiceUnavailable || status == http.StatusRequestTimeout):
			f.t.Logf("the webhook was answered with %d, %v", status, err)
			time.Sleep(time.Second)
		default:
			f.t.Fatalf("the webhook was answered with %d, %v", status, err)
		}
	}
}

// watchMemory looks at the heap of this process, which the daemon is in, and at the resident memory of its renderers until
// it is stopped, and gives the most that it has seen.
func watchMemory(t *testing.T) (stop func() (daemon, renderer uint64)) {
	t.Helper()
	runtime.GC()
	end, ended := make(chan struct{}), make(chan struct{})
	var heap, resident uint64
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			heap = max(heap, m.HeapInuse)
			for _, dir := range renderers() {
				resident = max(resident, peak(dir))
			}
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() (uint64, uint64) {
		close(end)
		<-ended
		return heap, resident
	}
}

// renderers returns the directories in /proc of the renderers that this process has started.
func renderers() (dirs []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		stat, err := os.ReadFile(dir + "/stat")
		_, after, found := bytes.Cut(stat, []byte(") "))
		fields := bytes.Fields(after)
		if err != nil || !found || len(fields) < 2 || string(fields[1]) != fmt.Sprint(os.Getpid()) {
			continue
		}
		line, err := os.ReadFile(dir + "/cmdline")
		if err == nil && strings.Contains(string(line), "render") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// peak is the most memory that a process has had in RAM.
func peak(dir string) uint64 { return inStatus(dir, "VmHWM:") }

// inStatus is a size in what the kernel reports of a process, in bytes.
func inStatus(dir, field string) uint64 {
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kib, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// ticks is the unit of the processor times in /proc (USER_HZ, which is 100 on all architectures of Go).
const ticks = 10 * time.Millisecond

// procStat is what is read of a process in /proc: its parent, and its processor time with that of the children that
// have ended, in ticks.
type procStat struct {
	parent string
	used   int64
}

func readStat(pid string) (s procStat) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	_, after, found := bytes.Cut(text, []byte(") "))
	fields := strings.Fields(string(after))
	if err != nil || !found || len(fields) < 15 {
		return s
	}
	s.parent = fields[1]
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(field, 10, 64)
		s.used += n
	}
	return s
}

// usedHere is the processor time of this process and all that it has started, in ticks.
func usedHere() (used int64) {
	all := map[string]procStat{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid := filepath.Base(dir)
		all[pid] = readStat(pid)
	}
	self := fmt.Sprint(os.Getpid())
	for pid, stat := range all {
		for at := pid; at != "" && at != "0"; at = all[at].parent {
			if at == self {
				used += stat.used
				break
			}
		}
	}
	return used
}

// usedByAll is the processor time that is used on the machine, in ticks, without what waits for disks.
func usedByAll(t *testing.T) (used int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Skip("the machine does not say how busy it is")
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line)[1:] {
		n, _ := strconv.ParseInt(field, 10, 64)
		if i != 3 && i != 4 && i < 8 { // idle, iowait; guests are counted twice
			used += n
		}
	}
	return used
}

// watchOthers begins to measure, and returns what reports whether others have used more than a tenth of the machine
// since: times that are measured meanwhile do not count.
func watchOthers(t *testing.T) (busy func() bool) {
	t.Helper()
	all, here, began := usedByAll(t), usedHere(), time.Now()
	return func() bool {
		others := time.Duration(usedByAll(t)-all-(usedHere()-here)) * ticks
		whole := time.Since(began) * time.Duration(runtime.NumCPU())
		t.Logf("others used %.0f%% of the machine", 100*float64(others)/float64(whole))
		return others > whole/10
	}
}
