// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// TestTheCollectorsBallastTakesNoMemory: it is counted, and not there.
func TestTheCollectorsBallastTakesNoMemory(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	// In a process that has just begun, as the daemon has: where a heap was large before, its pages are taken again.
	if os.Getenv("PRERIG_TEST_BALLAST") == "" {
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), "PRERIG_TEST_BALLAST=yes")
		if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	resident := func() int64 {
		debug.FreeOSMemory()
		text, err := os.ReadFile("/proc/self/statm")
		var all, pages int64
		if _, scanned := fmt.Sscan(string(text), &all, &pages); err != nil || scanned != nil {
			t.Fatal(err, scanned)
		}
		return pages * int64(os.Getpagesize())
	}
	before := resident()
	ballast := spareCollector()
	if grown := resident() - before; len(ballast) == 0 || grown > ballastSize/4 {
		t.Errorf("%d bytes take %d", len(ballast), grown)
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if stats.NextGC < ballastSize*3/2 {
		t.Errorf("the next collection is at %d", stats.NextGC)
	}
	runtime.KeepAlive(ballast)
	t.Setenv("GOMEMLIMIT", "500MiB")
	if spareCollector() != nil {
		t.Error("a limit of memory would count it")
	}
}
