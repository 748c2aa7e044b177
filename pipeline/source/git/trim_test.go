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

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// noise is a text that no compression makes smaller than three quarters.
func noise(random *rand.Rand, size int) string {
	out := make([]byte, size)
	for i := range out {
		out[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random.IntN(64)]
	}
	return string(out)
}

// TestTrimKeepsTheNewest has commits of a fork come, of which each brings half a megabyte, as a pack or as single objects.
func TestTrimKeepsTheNewest(t *testing.T) {
	const each, limit = 128 << 10, 512 << 10
	for name, files := range map[string]int{"packs": 300, "single objects": 10} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			repository := gittest.New(t).Repository(t, "config")
			repository.Commit("first", map[string]string{"shared": noise(random, 1000)})
			store := NewStore(t.TempDir(), DefaultLimits())
			m, err := store.Mirror(repository.URL)
			if err != nil {
				t.Fatal(err)
			}
			remote, err := NewRemote(repository.URL, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			var commits []*Commit
			for n := range 8 {
				change := map[string]string{}
				for i := range files {
					change[fmt.Sprintf("f%d", i)] = noise(random, each/files)
				}
				repository.Commit(fmt.Sprint(n), change)
				commit, err := m.Fetch(t.Context(), remote, Ref{})
				if err != nil {
					t.Fatal(err)
				}
				commits = append(commits, commit)
				if err := store.Trim(t.Context(), limit); err != nil {
					t.Fatal(err)
				}
				if size := store.Size(); size > limit {
					t.Errorf("after %d commits it takes %d bytes", n+1, size)
				}
			}
			kept := 0
			for n, commit := range commits {
				if _, err := m.Kept(Ref{Commit: commit.Hash}); err != nil {
					if kept > 0 {
						t.Errorf("commit %d has gone before an older one", n)
					}
					continue
				}
				kept++
				view := tree.NewView(m.Tree(commit), tree.Limits{})
				for _, file := range []string{"shared", "f0", fmt.Sprintf("f%d", files-1)} {
					if _, err := view.Read(file); err != nil {
						t.Errorf("commit %d is kept, and %s cannot be read: %v", n, file, err)
					}
				}
			}
			if kept < 2 || kept == len(commits) {
				t.Errorf("%d of %d commits are kept", kept, len(commits))
			}
			// The first one is had again.
			again, err := m.Fetch(t.Context(), remote, Ref{Commit: commits[0].Hash})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tree.NewView(m.Tree(again), tree.Limits{}).Read("f0"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTrimBeginsWithTheMirrorThatWasUsedLongAgo, also where another process has made it.
func TestTrimBeginsWithTheMirrorThatWasUsedLongAgo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	server, dir := gittest.New(t), t.TempDir()
	size := map[string]int64{}
	dirs := map[string]string{}
	for i, name := range []string{"old", "new"} {
		repository := server.Repository(t, name)
		repository.Commit("first", map[string]string{"a": noise(random, 400<<10)})
		m, err := NewStore(dir, DefaultLimits()).Mirror(repository.URL)
		if err != nil {
			t.Fatal(err)
		}
		remote, err := NewRemote(repository.URL, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Fetch(t.Context(), remote, Ref{}); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-2) * time.Hour)
		if err := os.Chtimes(filepath.Join(m.dir, "shallow"), at, at); err != nil {
			t.Fatal(err)
		}
		dirs[name] = m.dir
	}
	store := NewStore(dir, DefaultLimits())
	if err := store.Trim(t.Context(), 500<<10); err != nil {
		t.Fatal(err)
	}
	for name, at := range dirs {
		size[name] = sizeOf(filepath.Join(at, "objects"))
	}
	if size["old"] > 0 || size["new"] < 200<<10 {
		t.Errorf("they take %v bytes", size)
	}
	if err := store.Trim(t.Context(), 0); err != nil || store.Size() != 0 {
		t.Errorf("%d bytes, %v", store.Size(), err)
	}
}

// TestTrimRemovesWhatAKilledFetchHasLeft in a mirror that nobody opens any more, and leaves what can be read.
func TestTrimRemovesWhatAKilledFetchHasLeft(t *testing.T) {
	dir, random := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	repository := gittest.New(t).Repository(t, "config")
	repository.Commit("first", map[string]string{"a": noise(random, 10<<10)})
	m, err := NewStore(dir, DefaultLimits()).Mirror(repository.URL)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := NewRemote(repository.URL, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	commit, err := m.Fetch(t.Context(), remote, Ref{})
	if err != nil {
		t.Fatal(err)
	}
	const limit = 200 << 10
	for _, name := range []string{"tmp_pack_2", "tmp_obj_2", "pack/tmp_pack_1", "pack/tmp_idx_1", "pack/tmp_obj_1", "pack/pack-" + commit.Hash.String() + ".pack"} {
		if err := os.WriteFile(filepath.Join(m.dir, "objects", name), make([]byte, limit), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := NewStore(dir, DefaultLimits())
	if err := store.Trim(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
	if size := store.Size(); size == 0 || size > limit {
		t.Errorf("it takes %d bytes", size)
	}
	again, err := store.Mirror(repository.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Kept(Ref{Commit: commit.Hash}); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.NewView(again.Tree(commit), tree.Limits{}).Read("a"); err != nil {
		t.Error(err)
	}
}

// TestTrimEmptiesAMirrorThatHasLostAPack, as opening it does.
func TestTrimEmptiesAMirrorThatHasLostAPack(t *testing.T) {
	dir := t.TempDir()
	m, err := NewStore(dir, DefaultLimits()).Mirror("https://git.example/config")
	if err != nil {
		t.Fatal(err)
	}
	lost := filepath.Join(m.dir, "objects", "pack", "pack-"+plumbing.ZeroHash.String()+".idx")
	if err := os.WriteFile(lost, make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	store := NewStore(dir, DefaultLimits())
	if err := store.Trim(t.Context(), 100); err != nil || store.Size() != 0 {
		t.Errorf("%d bytes, %v", store.Size(), err)
	}
}
