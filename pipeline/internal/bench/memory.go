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

// peakMemory returns the peak resident memory of a process in bytes, or 0 if the system does not report it (only
// Linux has /proc).
func peakMemory(pid int) int64 { return readSizes(fmt.Sprint(pid), "status")["VmHWM"] }

// readSizes reads the sizes, in bytes, and other numbers from a file about a process, such as status.
func readSizes(pid, name string) map[string]int64 {
	text, err := os.ReadFile(filepath.Join("/proc", pid, name))
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

// watchMemory polls a process and its children until it is stopped, and returns their combined peak memory. Shared
// pages, such as those of the program, are counted once.
func watchMemory(pid int) (stop func() int64) {
	quit, result := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for {
			select {
			case <-quit:
				result <- most
				return
			case <-time.After(200 * time.Millisecond):
				most = max(most, familyMemory(pid))
			}
		}
	}()
	return func() int64 { close(quit); return <-result }
}

func familyMemory(pid int) (sum int64) {
	for _, id := range processTreeIDs(pid) {
		if share, ok := readSizes(id, "smaps_rollup")["Pss"]; ok {
			sum += share // of each page the part that the process has among those that share it
			continue
		}
		sum += readSizes(id, "status")["VmRSS"]
	}
	return sum
}

// processTreeIDs returns the ids of a process and of all its running descendants.
func processTreeIDs(pid int) []string {
	names, _ := filepath.Glob("/proc/[0-9]*")
	parent := map[string]string{}
	for _, name := range names {
		id := filepath.Base(name)
		parent[id] = fmt.Sprint(readSizes(id, "status")["PPid"])
	}
	root := fmt.Sprint(pid)
	var out []string
	for id := range parent {
		for up, depth := id, 0; up != "" && depth < 20; up, depth = parent[up], depth+1 {
			if up == root {
				out = append(out, id)
				break
			}
		}
	}
	return out
}

// clockTick is the unit of times in /proc.
const clockTick = time.Second / 100

// familyTime is the processor time that a process has used and all that it or they have started, those that have ended
// too.
func familyTime(pid int) (sum time.Duration) {
	for _, id := range processTreeIDs(pid) {
		text, err := os.ReadFile(filepath.Join("/proc", id, "stat"))
		if err != nil {
			continue
		}
		// The name, in parentheses, may hold anything.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for i := 11; i <= 14 && i < len(fields); i++ { // utime, stime, cutime, cstime
			var ticks int64
			if _, err := fmt.Sscan(fields[i], &ticks); err == nil {
				sum += time.Duration(ticks) * clockTick
			}
		}
	}
	return sum
}
