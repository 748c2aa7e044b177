// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// withoutRoom runs f while no file can grow, which a program notices as it does a full disk.
func withoutRoom(t *testing.T, f func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Skip(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 0, Max: was.Max}); err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// A disk that is full stays so if each try leaves something behind.
func TestAFullDiskIsNotFilledFurther(t *testing.T) {
	m := mirrorIn(t, t.TempDir())
	commit := keepPack(t, m, "before")
	for _, files := range []int{3, unpackLimit + 1} {
		draft, contents := m.NewDraft(), map[string][]byte{}
		for i := range files {
			contents[fmt.Sprint(i)] = []byte(fmt.Sprint(files, " content ", i))
		}
		root, err := draft.Edit(Hash{}, contents)
		if err != nil {
			t.Fatal(err)
		}
		later, err := draft.Commit(CommitData{Tree: root, Author: "Ann", Email: "ann@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		var kept error
		withoutRoom(t, func() {
			for range 5 {
				kept = draft.Keep(t.Context(), later)
			}
		})
		if kept == nil {
			t.Fatal("there was room")
		}
		if after, _ := os.ReadDir("/proc/self/fd"); len(after) > len(before) {
			t.Errorf("%d files: %d were open before, %d are now", files, len(before), len(after))
		}
		if left, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "tmp_*")); len(left) > 0 {
			t.Errorf("%d files: left behind are %d files", files, len(left))
		}
		if m.Has(later) || !m.Has(commit) || m.Damaged() {
			t.Errorf("%d files: has the new one %v, the old one %v, is damaged %v", files, m.Has(later), m.Has(commit), m.Damaged())
		}
		if err := draft.Keep(t.Context(), later); err != nil || !m.Has(later) {
			t.Errorf("%d files, with room: %v", files, err)
		}
	}
}
