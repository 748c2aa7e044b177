// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestASmallFetchLeavesWhatIsKnownOfPacks: to read the index of a large repository again takes longer than all else that a push asks for.
func TestASmallFetchLeavesWhatIsKnownOfPacks(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	files := map[string]string{}
	for i := range unpackLimit + 50 {
		files[fmt.Sprintf("a/%d", i)] = fmt.Sprint(i)
	}
	repository.Commit("first", files)
	dir := t.TempDir()
	m, err := NewStore(dir, DefaultLimits()).Mirror(repository.URL)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := NewRemote(repository.URL, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	fetch := func() *Commit {
		t.Helper()
		commit, err := m.Fetch(t.Context(), remote, Ref{})
		if err != nil {
			t.Fatal(err)
		}
		return commit
	}
	fetch()
	// As if the pack had been there for longer than what another look would have to be made for.
	m.reopenStorage()
	m.listed.seen = time.Now().Add(-time.Minute)
	m.reopenStorage()
	known := m.storage
	for n := range 3 {
		repository.Commit("next", map[string]string{"b": fmt.Sprint(n)})
		commit := fetch()
		if got, err := tree.NewView(m.Tree(commit), tree.Limits{}).Read("b"); err != nil || string(got) != fmt.Sprint(n) {
			t.Fatalf("got %q, %v", got, err)
		}
		draft := m.NewDraft()
		root, err := draft.Edit(commit.Tree, map[string][]byte{"c": []byte(fmt.Sprint(n))})
		if err != nil {
			t.Fatal(err)
		}
		made, err := draft.Commit(CommitData{Tree: root, Date: time.Unix(1, 0)})
		if err != nil {
			t.Fatal(err)
		}
		if err := draft.Keep(t.Context(), made); err != nil || !m.Has(made) {
			t.Fatal(err)
		}
	}
	if m.storage != known {
		t.Error("the indexes of packs are read again")
	}
	// A pack that another process stores is found.
	for i := range unpackLimit + 50 {
		files[fmt.Sprintf("d/%d", i)] = fmt.Sprint("new ", i)
	}
	repository.Commit("many", files)
	other, err := NewStore(dir, DefaultLimits()).Mirror(repository.URL)
	if err != nil {
		t.Fatal(err)
	}
	commit, err := other.Fetch(t.Context(), remote, Ref{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tree.NewView(m.Tree(commit), tree.Limits{}).Read("d/7"); err != nil || string(got) != "new 7" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestAMissEndsWhateverTheClockOfThePacks: the clock may have been set back since a pack was stored, or the clock of
// the file server is ahead. A miss, with which each fetch of a new commit begins, ends all the same, and what was
// stored is found.
func TestAMissEndsWhateverTheClockOfThePacks(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, 365 * 24 * time.Hour, -time.Hour, -365 * 24 * time.Hour, 0, time.Millisecond} {
		t.Run(ahead.String(), func(t *testing.T) {
			repository := gittest.New(t).Repository(t, "config")
			repository.Commit("first", map[string]string{"a": "1"})
			dir := t.TempDir()
			m, err := NewStore(dir, DefaultLimits()).Mirror(repository.URL)
			if err != nil {
				t.Fatal(err)
			}
			remote, err := NewRemote(repository.URL, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			packs, at := filepath.Join(m.dir, "objects", "pack"), time.Now().Add(ahead)
			for n := range 3 {
				if err := os.Chtimes(packs, at, at); err != nil {
					t.Fatal(err)
				}
				if n == 2 { // after a restart
					if m, err = NewStore(dir, DefaultLimits()).Mirror(repository.URL); err != nil {
						t.Fatal(err)
					}
				}
				missed := make(chan bool)
				go func() { missed <- m.Has(Hash{1}) }()
				select {
				case has := <-missed:
					if has {
						t.Fatal("an object is there that nobody has stored")
					}
				case <-time.After(time.Minute):
					t.Fatal("the look for an object that is not there does not end")
				}
				repository.Commit("next", map[string]string{"b": fmt.Sprint(n)})
				if _, err := m.Fetch(t.Context(), remote, Ref{}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
