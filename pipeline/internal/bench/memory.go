// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// peakMemory is the most memory in RAM that a process had at a time, in bytes; 0 where the system does not tell (it is Linux
// that has /proc).
func peakMemory(pid int) int64 { return readStatus(fmt.Sprint(pid))["VmHWM"] }

// readStatus reads the sizes, in bytes, and the parent of a process.
func readStatus(pid string) map[string]int64 {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return nil
	}
	out := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		var n int64
		if _, err := fmt.Sscan(value, &n); err != nil {
			continue
		}
		if strings.HasSuffix(strings.TrimSpace(value), "kB") {
			n *= 1024
		}
		out[key] = n
	}
	return out
}

// watchMemory looks at a process and its children until it is stopped, and gives the most that they had together. Pages
// that they share are counted for each.
func watchMemory(pid int) (stop func() int64) {
	quit, result := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for {
			select {
			case <-quit:
				result <- most
				return
			case <-time.After(100 * time.Millisecond):
				most = max(most, familyMemory(pid))
			}
		}
	}()
	return func() int64 { close(quit); return <-result }
}

func familyMemory(pid int) int64 {
	names, _ := filepath.Glob("/proc/[0-9]*")
	parent, size := map[string]string{}, map[string]int64{}
	for _, name := range names {
		id := filepath.Base(name)
		s := readStatus(id)
		parent[id], size[id] = fmt.Sprint(s["PPid"]), s["VmRSS"]
	}
	root := fmt.Sprint(pid)
	var sum int64
	for id := range size {
		for up, depth := id, 0; up != "" && depth < 20; up, depth = parent[up], depth+1 {
			if up == root {
				sum += size[id]
				break
			}
		}
	}
	return sum
}
