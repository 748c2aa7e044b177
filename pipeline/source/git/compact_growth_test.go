// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// objectFiles returns how many loose objects and packs a mirror has.
func objectFiles(m *Mirror) (loose, packs int) {
	found, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.pack"))
	return len(looseObjects(m.dir, anyAge)), len(found)
}

// TestAMirrorThatIsOnlyPublishedToStaysSmall publishes small commits to a repository that is never fetched from. The
// objects of the last hour stay, though not each in a block of the disk.
func TestAMirrorThatIsOnlyPublishedToStaysSmall(t *testing.T) {
	m := mirrorIn(t, t.TempDir())
	var first, last Hash
	for i := range 200 { // more than a mirror keeps
		draft, commit := drafted(t, m, 10, fmt.Sprint("round ", i, " file "))
		if err := draft.Keep(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = commit
		}
		last = commit
	}
	if loose, packs := objectFiles(m); loose > 1200 || packs > 10 {
		t.Errorf("%d loose objects and %d packs, of 2400 objects", loose, packs)
	}
	for _, hash := range []Hash{first, last} {
		if !m.Has(hash) {
			t.Errorf("%s is gone before its hour is over", hash)
		}
	}
	if err := m.compactPacks(fileAge{time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if m.Has(first) {
		t.Error("what no commit needs is there after its hour")
	}
	commit, err := m.completeCommit(last)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tree.NewView(m.Tree(commit), tree.Limits{}).Read("1"); err != nil || string(got) != "round 199 file 1" {
		t.Errorf("got %q, %v", got, err)
	}
}

// keepLarge keeps a commit of a pack that is more than a megabyte, with more than the files that are stored one by one.
func keepLarge(t *testing.T, m *Mirror, seed uint64) Hash {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	text := make([]byte, 10_000)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	draft, commit := many(t, m, string(text))
	if err := draft.Keep(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
	return commit
}

// TestLargePacksAreDroppedWhenNoCommitNeedsThem: each fetch of a large change leaves a pack, and none is much larger than
// the others.
func TestLargePacksAreDroppedWhenNoCommitNeedsThem(t *testing.T) {
	m := mirrorIn(t, t.TempDir())
	var commits []Hash
	for i := range 6 {
		commits = append(commits, keepLarge(t, m, uint64(i)))
	}
	names, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.pack"))
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.Size() < largePack {
			t.Fatalf("%v, %v: it is no large pack", info, err)
		}
	}
	if err := m.Forget(t.Context(), commits[:4]...); err != nil {
		t.Fatal(err)
	}
	if err := m.compactPacks(fileAge{time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, packs := objectFiles(m); packs != 2 {
		t.Errorf("there are %d packs, and two commits", packs)
	}
	for i, hash := range commits {
		if _, err := m.completeCommit(hash); (err == nil) != (i >= 4) {
			t.Errorf("commit %d: %v", i, err)
		}
	}
}

// TestContentOfAnySizeIsCompacted: what a mirror needs in small packs may be more than is put together at once.
func TestContentOfAnySizeIsCompacted(t *testing.T) {
	m := mirrorIn(t, t.TempDir())
	var last Hash
	for i := range 4 { // packs of a few kilobytes, each with 24 MiB of zeros
		draft := m.NewDraft()
		content := make([]byte, 24<<20)
		content[0] = byte(i)
		root, err := draft.Edit(Hash{}, map[string][]byte{fmt.Sprint(i): content})
		if err != nil {
			t.Fatal(err)
		}
		if last, err = draft.Commit(CommitData{Tree: root, Author: "Ann", Email: "ann@example.com"}); err != nil {
			t.Fatal(err)
		}
		if err := storePack(m.dir, draft.objects, nil); err != nil {
			t.Fatal(err)
		}
		if err := m.rememberCommit(last); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.compactPacks(fileAge{time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, packs := objectFiles(m); packs != 2 {
		t.Errorf("there are %d packs, want 2 of at most 64 MiB each", packs)
	}
	commit, err := m.completeCommit(last)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tree.NewView(m.Tree(commit), tree.Limits{}).Read("3"); err != nil || len(got) != 24<<20 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
