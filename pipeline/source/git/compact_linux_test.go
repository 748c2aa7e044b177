// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"os"
	"runtime/debug"
	"testing"
	"time"
)

// TestCompactionLeavesNoFileOpen compacts hundreds of loose objects without a garbage collection, which would close files that
// no code closes. It is not parallel to other tests, as it counts the descriptors of the process.
func TestCompactionLeavesNoFileOpen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	m := mirrorIn(t, t.TempDir())
	draft, commit := drafted(t, m, 90, "file ")
	if err := draft.Keep(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
	for name, compact := range map[string]func() error{
		"all":   func() error { return m.compactPacks(fileAge{time.Now().Add(time.Hour)}) },
		"loose": m.packLoose,
	} {
		if loose, _ := objectFiles(m); loose < 90 {
			t.Fatalf("%s: %d loose objects", name, loose)
		}
		before := openFiles(t)
		if err := compact(); err != nil {
			t.Fatal(err)
		}
		if after := openFiles(t); after > before+8 {
			t.Errorf("%s: %d files are open after it, %d before", name, after, before)
		}
		draft, commit = drafted(t, m, 90, "another file ")
		if err := draft.Keep(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
