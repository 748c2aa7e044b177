// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// fullDir tells the process that has no room where the mirror is.
const fullDir = "PRERIG_TEST_FULL"

var fullCases = []int{3, unpackLimit + 1}

// keepWithoutRoom is a process of its own: no file can grow in it, which it notices as it does a full disk.
func keepWithoutRoom(t *testing.T, dir string) {
	m := mirrorIn(t, dir)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{}); err != nil {
		t.Fatal(err)
	}
	for _, files := range fullCases {
		draft, commit := drafted(t, m, files, "content ")
		before, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if draft.Keep(t.Context(), commit) == nil {
				t.Error("there was room")
			}
		}
		if after, _ := os.ReadDir("/proc/self/fd"); len(after) > len(before) {
			t.Errorf("%d files: %d were open before, %d are now", files, len(before), len(after))
		}
		if m.Has(commit) || m.Damaged() {
			t.Errorf("%d files: has it %v, is damaged %v", files, m.Has(commit), m.Damaged())
		}
	}
}

// A disk that is full stays so if each try leaves something behind.
func TestAFullDiskIsNotFilledFurther(t *testing.T) {
	if dir := os.Getenv(fullDir); dir != "" {
		keepWithoutRoom(t, dir)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("it looks at /proc")
	}
	dir := t.TempDir()
	m := mirrorIn(t, dir)
	before := keepPack(t, m, "before")
	command := exec.Command(os.Args[0], "-test.run=^TestAFullDiskIsNotFilledFurther$")
	command.Env = append(os.Environ(), fullDir+"="+dir)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	left, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "tmp_*"))
	if more, _ := filepath.Glob(filepath.Join(m.dir, "objects", "tmp_*")); len(left)+len(more) > 0 {
		t.Errorf("left behind are %d files", len(left))
	}
	if !m.Has(before) || m.Damaged() {
		t.Errorf("has what was there %v, is damaged %v", m.Has(before), m.Damaged())
	}
	for _, files := range fullCases {
		draft, commit := drafted(t, m, files, "content ")
		if err := draft.Keep(t.Context(), commit); err != nil || !m.Has(commit) {
			t.Errorf("%d files, with room: %v", files, err)
		}
	}
}
