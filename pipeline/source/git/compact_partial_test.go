// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/source/tree"
)

const anyURL = "https://git.example.com/config.git"

func mirrorIn(t *testing.T, dir string) *Mirror {
	t.Helper()
	m, err := NewStore(dir, DefaultLimits()).Mirror(anyURL)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// keepPack keeps a commit of a few files as a pack of its own.
func keepPack(t *testing.T, m *Mirror, round string) Hash {
	t.Helper()
	draft, commit := drafted(t, m, 2, round+" content ")
	unlock, err := m.lockMirror(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := storePack(m.dir, draft.objects, nil); err != nil {
		t.Fatal(err)
	}
	if err := m.rememberCommit(commit); err != nil {
		t.Fatal(err)
	}
	return commit
}

// One index that cannot be read for a moment, as when too many files are open, must not hide its pack for ever.
func TestAnIndexThatIsReadableAgainIsRead(t *testing.T) {
	dir := t.TempDir()
	first, second := keepPack(t, mirrorIn(t, dir), "first"), keepPack(t, mirrorIn(t, dir), "second")
	m := mirrorIn(t, dir)
	names, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.idx"))
	if len(names) != 2 {
		t.Fatalf("there are the indexes %v", names)
	}
	for _, name := range names {
		if err := os.Rename(name, name+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(name, 0o700); err != nil { // reading it is an error of the system
			t.Fatal(err)
		}
	}
	if m.Has(first) || m.Has(second) {
		t.Error("it was read without its index")
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".away", name); err != nil {
			t.Fatal(err)
		}
	}
	if !m.Has(first) || !m.Has(second) {
		t.Error("it is not found although its index can be read again")
	}
	if m.Damaged() {
		t.Error("an error of the system is taken for damage")
	}
}

// A process that was killed between the two names of a pack leaves a pack without an index.
func TestAPackWithoutAnIndexIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	m := mirrorIn(t, dir)
	lost := keepPack(t, m, "lost")
	names, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.idx"))
	kept := keepPack(t, m, "kept")
	running := mirrorIn(t, dir)
	if len(names) != 1 {
		t.Fatalf("there are %v", names)
	}
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*Mirror{"that runs": running, "that starts": mirrorIn(t, dir)} {
		if m.Has(lost) || !m.Has(kept) || m.Damaged() {
			t.Errorf("process %s: lost %v, kept %v, damaged %v", name, m.Has(lost), m.Has(kept), m.Damaged())
		}
	}
	if left, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*")); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

// An index without a pack is what is left of objects that were lost: a file that is missing is not one that is too large.
func TestAnIndexWithoutAPackBeginsAnew(t *testing.T) {
	dir := t.TempDir()
	m := mirrorIn(t, dir)
	commit := keepPack(t, m, "lost")
	names, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.pack"))
	if len(names) != 1 {
		t.Fatalf("there are %v", names)
	}
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	again := mirrorIn(t, dir)
	if again.Has(commit) || again.Damaged() || len(shallowCommits(again.dir)) != 0 {
		t.Errorf("has it %v, damaged %v, knows %v", again.Has(commit), again.Damaged(), shallowCommits(again.dir))
	}
	keepPack(t, again, "lost")
	if err := again.compactPacks(fileAge{time.Now().Add(time.Hour)}); err != nil || !again.Has(commit) {
		t.Errorf("has it %v, %v", again.Has(commit), err)
	}
}

// A process that is at work on a mirror for long must not keep others from opening it.
func TestAMirrorIsOpenedWhileOthersWork(t *testing.T) {
	dir := t.TempDir()
	m := mirrorIn(t, dir)
	unlock, err := m.lockMirror(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	opened := make(chan error, 1)
	go func() {
		_, err := NewStore(dir, DefaultLimits()).Mirror(anyURL)
		opened <- err
	}()
	select {
	case err := <-opened:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for the other process")
	}
}

// Putting together what is one pack already, beside packs that nobody needs, gives the same pack, by the same name.
func TestCompactKeepsThePackThatItMade(t *testing.T) {
	dir := t.TempDir()
	m := mirrorIn(t, dir)
	commit := keepPack(t, m, "needed")
	later := fileAge{time.Now().Add(time.Hour)}
	keepPack(t, m, "other")
	if err := m.compactPacks(later); err != nil { // as the encoder orders objects
		t.Fatal(err)
	}
	old := keepPack(t, m, "not needed")
	if err := os.WriteFile(filepath.Join(m.dir, "shallow"), []byte(commit.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.compactPacks(later); err != nil {
		t.Fatal(err)
	}
	keepPack(t, m, "not needed either")
	if err := os.WriteFile(filepath.Join(m.dir, "shallow"), []byte(commit.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.compactPacks(later); err != nil {
		t.Fatal(err)
	}
	if _, err := m.completeCommit(commit); err != nil {
		t.Errorf("what is needed is gone: %v", err)
	}
	if m.Has(old) {
		t.Error("what is not needed is there still")
	}
}

// Others read while packs are put together, here and in another process.
func TestReadingWhileCompacting(t *testing.T) {
	dir := t.TempDir()
	m, other := mirrorIn(t, dir), mirrorIn(t, dir)
	var commits []Hash
	for i := range 3 {
		commits = append(commits, keepPack(t, m, fmt.Sprint("start ", i)))
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for _, from := range []*Mirror{m, other} {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				commit, err := from.Commit(commits[i%len(commits)])
				if err != nil {
					t.Errorf("reading a commit: %v", err)
					return
				}
				files := tree.New(&mirrorObjects{from}, commit.Tree.String())
				if _, err := tree.NewView(files, tree.Limits{}).Read(fmt.Sprint(i % 2)); err != nil {
					t.Errorf("reading a file: %v", err)
					return
				}
			}
		})
	}
	for round := range 8 {
		for i := range 6 {
			keepPack(t, m, fmt.Sprint("round ", round, i))
		}
		unlock, err := m.lockMirror(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := m.compactPacks(fileAge{time.Now().Add(time.Hour)}); err != nil {
			t.Error(err)
		}
		unlock()
	}
	close(done)
	readers.Wait()
	if m.Damaged() || other.Damaged() {
		t.Error("it is taken for damage")
	}
}
