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

// pushTo tells the daemon that main of some repository moved.
func (f *fixture) pushTo(r *gittest.Repository, commit string) {
	f.t.Helper()
	body, err := json.Marshal(map[string]any{"git": map[string]any{"urls": []string{r.URL}, "ref": "refs/heads/main", "after": commit}})
	if err != nil {
		f.t.Fatal(err)
	}
	if status, err := post(f.hooks, body, commit); err != nil || status != http.StatusAccepted {
		f.t.Fatalf("the webhook was answered with %d, %v", status, err)
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
func peak(dir string) uint64 {
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}
