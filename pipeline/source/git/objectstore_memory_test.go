// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestManyMirrorsHoldFewObjects reads all files of many mirrors: a daemon has a mirror for each repository, and what one of them
// holds in memory counts as often. It is not parallel to other tests, as it measures the heap of the process.
func TestManyMirrorsHoldFewObjects(t *testing.T) {
	const mirrors, files = 12, 600
	random := rand.New(rand.NewPCG(34, 0))
	text := make([]byte, 10_000)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	before := reachable()
	var open []*Mirror
	for range mirrors {
		m := mirrorIn(t, t.TempDir())
		open = append(open, m)
		draft, hash := drafted(t, m, files, string(text))
		if err := draft.Keep(t.Context(), hash); err != nil {
			t.Fatal(err)
		}
		commit, err := m.completeCommit(hash)
		if err != nil {
			t.Fatal(err)
		}
		view := tree.NewView(m.Tree(commit), tree.Limits{})
		for i := range files {
			if _, err := view.Read(fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range open {
		m.trees.trees = nil // they have a cache of their own
	}
	if held := (reachable() - before) / mirrors; held > 3<<20 {
		t.Errorf("a mirror with %d MB of files holds %d MB", files*len(text)/1_000_000, held>>20)
	}
	runtime.KeepAlive(open)
}

// reachable returns the bytes that are reachable in this process.
func reachable() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
