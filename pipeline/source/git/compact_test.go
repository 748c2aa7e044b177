// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/tree"
)

func TestCompact(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	files := map[string]string{}
	for i := range 250 {
		files[fmt.Sprintf("d%d/f%d", i%10, i)] = fmt.Sprint("content ", i)
	}
	repository.Commit("first", files)
	m, err := NewStore(t.TempDir(), DefaultLimits()).Mirror(repository.URL)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := NewRemote(repository.URL, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var last *Commit
	for i := range 6 {
		repository.Commit("next", map[string]string{"d1/f1": strings.Repeat(fmt.Sprint(i), 100), fmt.Sprintf("new%d", i): "x"})
		if last, err = m.Fetch(context.Background(), remote, Ref{}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(pattern string) int {
		found, _ := filepath.Glob(filepath.Join(m.dir, "objects", pattern))
		return len(found)
	}
	if count("pack/*.pack") != 1 || count("[0-9a-f][0-9a-f]/*") < 10 {
		t.Fatalf("%d packs, %d single objects", count("pack/*.pack"), count("[0-9a-f][0-9a-f]/*"))
	}
	// Nothing is old enough.
	if err := m.compactPacks(fileAge{time.Now().Add(-time.Hour)}); err != nil || count("[0-9a-f][0-9a-f]/*") < 10 {
		t.Errorf("%d single objects, %v", count("[0-9a-f][0-9a-f]/*"), err)
	}
	if err := m.compactPacks(fileAge{time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if count("pack/*.pack") != 1 || count("[0-9a-f][0-9a-f]/*") != 0 {
		t.Errorf("%d packs, %d single objects", count("pack/*.pack"), count("[0-9a-f][0-9a-f]/*"))
	}
	m.trees.dropTrees()
	for name, want := range map[string]string{"d1/f1": strings.Repeat("5", 100), "d2/f2": "content 2", "new5": "x"} {
		if got, err := tree.NewView(m.Tree(last), tree.Limits{}).Read(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// And the next fetch is still a small one.
	repository.Commit("after", map[string]string{"d1/f1": "after"})
	if _, err := m.Fetch(context.Background(), remote, Ref{}); err != nil || count("[0-9a-f][0-9a-f]/*") != 4 {
		t.Errorf("%d single objects, %v", count("[0-9a-f][0-9a-f]/*"), err)
	}
}

// drafted returns a draft with a commit of files, the same each time.
func drafted(t *testing.T, m *Mirror, files int, text string) (*Draft, Hash) {
	t.Helper()
	draft, contents := m.NewDraft(), map[string][]byte{}
	for i := range files {
		contents[fmt.Sprint(i)] = []byte(fmt.Sprint(text, i))
	}
	root, err := draft.Edit(Hash{}, contents)
	if err != nil {
		t.Fatal(err)
	}
	commit, err := draft.Commit(CommitData{Tree: root, Author: "Ann", Email: "ann@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return draft, commit
}

// many drafts a commit with more files than are kept one by one.
func many(t *testing.T, m *Mirror, text string) (*Draft, Hash) {
	t.Helper()
	return drafted(t, m, unpackLimit+1, text)
}

func TestManyNewObjectsAreKeptAsAPack(t *testing.T) {
	m, err := NewStore(t.TempDir(), DefaultLimits()).Mirror("https://git.example.com/config.git")
	if err != nil {
		t.Fatal(err)
	}
	draft, commit := many(t, m, "content ")
	if err := draft.Keep(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
	if packs, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.pack")); len(packs) != 1 {
		t.Errorf("there are %d packs", len(packs))
	}
	if single := looseObjects(m.dir, anyAge); len(single) != 0 {
		t.Errorf("%d objects have files of their own", len(single))
	}
	kept, err := m.completeCommit(commit)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tree.NewView(m.Tree(kept), tree.Limits{}).Read("7"); err != nil || string(got) != "content 7" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestPacksOfAnotherProcess: two processes have the same directory, and one of them puts packs together.
func TestPacksOfAnotherProcess(t *testing.T) {
	dir, url := t.TempDir(), "https://git.example.com/config.git"
	here, err := NewStore(dir, DefaultLimits()).Mirror(url)
	if err != nil {
		t.Fatal(err)
	}
	there, err := NewStore(dir, DefaultLimits()).Mirror(url)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one ", "two ", "three "} {
		draft, hash := many(t, there, text)
		if here.Has(hash) {
			t.Fatal("it is there before it was kept")
		}
		if err := draft.Keep(t.Context(), hash); err != nil {
			t.Fatal(err)
		}
		commit, err := here.completeCommit(hash)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := there.compactPacks(fileAge{time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if got, err := tree.NewView(here.Tree(commit), tree.Limits{}).Read("7"); err != nil || string(got) != text+"7" {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
