// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// A commit that is asked for by its hash a long time after it was fetched may be there while files are not that it had in
// common with a commit before it: then it is fetched again.
func TestAnOldCommitIsWhole(t *testing.T) {
	repository := gittest.New(t).Repository(t, "library")
	// Enough to be kept as a pack, and a large one.
	more, less := map[string]string{}, map[string]string{"shared/a": "", "shared/b": "", "other": "x"}
	random := rand.NewChaCha8([32]byte{})
	for i := range 300 {
		content := make([]byte, 10<<10)
		_, _ = random.Read(content)
		more[fmt.Sprintf("more/f%d", i)], less[fmt.Sprintf("more/f%d", i)] = string(content), ""
	}
	repository.Commit("first", map[string]string{"shared/a": "one", "shared/b": "two"})
	m, err := NewStore(t.TempDir(), DefaultLimits()).Mirror(repository.URL)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := NewRemote(repository.URL, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(ref Ref) *Commit {
		t.Helper()
		commit, err := m.Fetch(t.Context(), remote, ref)
		if err != nil {
			t.Fatal(err)
		}
		return commit
	}
	fetch(Ref{})
	repository.Commit("second", more)
	second := fetch(Ref{})
	repository.Commit("third", less)
	third := fetch(Ref{})
	if err := os.WriteFile(filepath.Join(m.dir, "shallow"), []byte(third.Hash.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.compactPacks(fileAge{time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	m.trees.dropTrees()
	if _, err := tree.NewView(m.Tree(second), tree.Limits{}).Read("shared/a"); err == nil {
		t.Fatal("the case loses nothing")
	}
	putLooseCommit(t, repository.Bare, m.dir, second.Hash.String())
	if !m.Has(second.Hash) {
		t.Fatal("the commit itself is missing")
	}
	again := fetch(Ref{Commit: second.Hash})
	for name, want := range map[string]string{"shared/a": "one", "shared/b": "two", "more/f7": more["more/f7"]} {
		if got, err := tree.NewView(m.Tree(again), tree.Limits{}).Read(name); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// putLooseCommit writes a commit of a repository into a mirror, without its files.
func putLooseCommit(t *testing.T, repository, mirror, hash string) {
	t.Helper()
	content, err := exec.Command("git", "-C", repository, "cat-file", "commit", hash).Output()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	w := zlib.NewWriter(&text)
	fmt.Fprintf(w, "commit %d\x00%s", len(content), content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(mirror, "objects", hash[:2], hash[2:])
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
