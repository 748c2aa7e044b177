// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"slices"
	"testing"
)

// TestANoteIsAboutTheStateThatItWasMadeFor has two pipelines be noted, one of which stores what became of it, and another process look.
func TestANoteIsAboutTheStateThatItWasMadeFor(t *testing.T) {
	s := store(t)
	ctx := t.Context()
	revisions := map[string]uint64{}
	for _, name := range []string{"team/a", "team/b", "team/c"} {
		revision, err := s.Save(ctx, name, &State{Fingerprint: name}, 0)
		if err != nil {
			t.Fatal(err)
		}
		revisions[name] = revision
	}
	delete(revisions, "team/c")
	if _, err := s.NotePublishing(ctx, revisions); err != nil {
		t.Fatal(err)
	}
	other, err := NewStore(ctx, s.q) // as after a kill
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want map[string]bool) {
		t.Helper()
		for _, at := range []*Store{s, other} {
			if err := at.Sync(ctx); err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.Sorted(maps.Keys(want)) {
				loaded, _, err := at.Load(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				synced, _, err := at.LoadSynced(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				if got := at.Get(name); got.Publishing != want[name] || loaded.Publishing != want[name] || synced.Publishing != want[name] || got.Fingerprint != name {
					t.Errorf("%s, %s: it is %v, loaded %v and %v, not %v", when, name, got.Publishing, loaded.Publishing, synced.Publishing, want[name])
				}
			}
		}
	}
	check("noted", map[string]bool{"team/a": true, "team/b": true, "team/c": false})

	if _, err := s.Save(ctx, "team/a", &State{Fingerprint: "team/a"}, revisions["team/a"]); err != nil {
		t.Fatal(err)
	}
	check("one is stored", map[string]bool{"team/a": false, "team/b": true, "team/c": false})

	_, revision, err := s.Load(ctx, "team/c")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := other.NotePublishing(ctx, map[string]uint64{"team/c": revision})
	if err != nil {
		t.Fatal(err)
	}
	check("another note", map[string]bool{"team/a": false, "team/b": true, "team/c": true})

	if err := s.EndPublishing(ctx, kept); err != nil {
		t.Fatal(err)
	}
	check("that is gone", map[string]bool{"team/a": false, "team/b": true, "team/c": false})
}

// TestNotesOfProcessesThatHaveEndedAreRemoved, and those are kept that say something.
func TestNotesOfProcessesThatHaveEndedAreRemoved(t *testing.T) {
	s := store(t)
	ctx := t.Context()
	note := func(name string) (before uint64) {
		t.Helper()
		if err := s.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		_, before, err := s.LoadSynced(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if before == 0 {
			if before, err = s.Save(ctx, name, &State{}, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.NotePublishing(ctx, map[string]uint64{name: before}); err != nil {
			t.Fatal(err)
		}
		return before
	}
	note("cut off")
	for range 5 {
		before := note("goes on")
		if _, err := s.Save(ctx, "goes on", &State{}, before); err != nil {
			t.Fatal(err)
		}
	}
	note("last")
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	names := s.table.Names(publishingPrefix)
	if len(names) != 2 || !slices.Equal(slices.Sorted(slices.Values(s.table.Few(publishingPrefix))), names) {
		t.Errorf("there are the notes %v and %v", names, s.table.Few(publishingPrefix))
	}
	if !s.Get("cut off").Publishing || s.Get("goes on").Publishing || !s.Get("last").Publishing {
		t.Error("the notes do not say what was noted")
	}
}
