// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prerig/prerig/pipeline/build/cache"
)

func open(dir string, size int64) *cache.Store {
	return cache.Open(cache.Options{Dir: dir, MaxBytes: size})
}

// noise cannot be packed.
func noise(t *testing.T, n int) []byte {
	t.Helper()
	out := make([]byte, n)
	if _, err := rand.Read(out); err != nil {
		t.Fatal(err)
	}
	return out
}

func sizeOf(t *testing.T, dir string) (files int, bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		files, bytes = files+1, bytes+info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, bytes
}

func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "builds")
	s := open(dir, 1<<20)
	if _, ok := s.Read("aa11", "1"); ok || len(s.Variants("aa11")) > 0 {
		t.Error("something is there")
	}
	for i := range 10 {
		s.Write("aa11", fmt.Sprint(i), fmt.Appendf(nil, "content %d", i))
	}
	if got := s.Variants("aa11"); !slices.Equal(got, []string{"9", "8", "7", "6", "5", "4", "3", "2"}) {
		t.Errorf("the variants are %v", got)
	}
	s.Use("aa11", "4")
	s.Remove("aa11", "9")
	s.Write("bb22", "1", []byte("another"))
	s.Write("aa11", "5", []byte("written again"))
	for _, s := range []*cache.Store{s, open(dir, 1<<20)} {
		for variant, want := range map[string]string{"4": "content 4", "5": "written again"} {
			if got, ok := s.Read("aa11", variant); !ok || string(got) != want {
				t.Errorf("%s: %q, %t", variant, got, ok)
			}
		}
		if got := s.Variants("aa11"); len(got) != 7 || slices.Contains(got, "9") {
			t.Errorf("the variants are %v", got)
		}
	}
	// Whoever has removed one elsewhere is no error.
	other := open(dir, 1<<20)
	other.Remove("bb22", "1")
	if _, ok := s.Read("bb22", "1"); ok || len(s.Variants("bb22")) > 0 {
		t.Error("what is gone is still there")
	}
}

// TestTheLeastUsedGoes: the bound holds, over a start too, and what is used stays.
func TestTheLeastUsedGoes(t *testing.T) {
	dir := t.TempDir()
	s := open(dir, 100_000)
	s.Write("aa00", "kept", noise(t, 5_000))
	for i := range 60 {
		s.Write(fmt.Sprintf("%02x00", i), "1", noise(t, 5_000))
		s.Use("aa00", "kept")
		if _, size := sizeOf(t, dir); size > 100_000 {
			t.Fatalf("there are %d bytes", size)
		}
	}
	s.Write("bb00", "large", noise(t, 20_000))
	if _, ok := s.Read("aa00", "kept"); !ok || len(s.Variants("bb00")) > 0 {
		t.Error("what is used is gone, or one entry may have more than its share")
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"3b/.new-1", "3b/.new-2"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("cut off"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(dir, "3b/.new-1"), old, old); err != nil {
		t.Fatal(err)
	}
	s = open(dir, 30_000)
	if files, size := sizeOf(t, dir); size > 30_100 || files < 5 {
		t.Errorf("%d files of %d bytes", files, size)
	}
	if _, ok := s.Read("aa00", "kept"); !ok {
		t.Error("what was used last is gone")
	}
	if _, err := os.Stat(filepath.Join(dir, "3b/.new-1")); err == nil {
		t.Error("what was being written is still there")
	}
	if _, err := os.Stat(filepath.Join(dir, "3b/.new-2")); err != nil {
		t.Error("what another process may be writing is gone")
	}
}

// TestManyUseOneStore: several processes have one directory.
func TestManyUseOneStore(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			s := open(dir, 20_000)
			for i := range 100 {
				slot := fmt.Sprintf("%02x00", (i*7+n)%20)
				want := bytes.Repeat([]byte(slot), 200)
				s.Write(slot, "1", want)
				if got, ok := s.Read(slot, "1"); ok && !bytes.Equal(got, want) {
					t.Errorf("%s has another content", slot)
				}
				s.Use(slot, "1")
			}
		})
	}
	group.Wait()
}

// TestAStoreThatCannotBeWritten: a disk without room, or a directory that is none, is no error. Room that others need is given back.
func TestAStoreThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(filepath.Join(dir, "file"), 1<<20)
	s.Write("aa00", "1", []byte("content"))
	if _, ok := s.Read("aa00", "1"); ok {
		t.Error("it was written")
	}
	small := filepath.Join(dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("LEFT OUT: a full disk needs a small file system, and this user cannot mount one: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	s = open(filepath.Join(small, "builds"), 64<<20)
	for i := range 30 {
		s.Write(fmt.Sprintf("%02x00", i), "1", noise(t, 1<<20))
	}
	files, size := sizeOf(t, small)
	if files == 0 || size > 8<<20 {
		t.Errorf("%d files of %d bytes on a disk of 24 MB, of which others want 16", files, size)
	}
	if err := os.WriteFile(filepath.Join(small, "filler"), noise(t, 24<<20-int(size)-1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Write("ff00", "1", []byte("content"))
	if files, _ := sizeOf(t, small); files != 1 {
		t.Errorf("%d files are on the full disk", files)
	}
	if err := os.Remove(filepath.Join(small, "filler")); err != nil {
		t.Fatal(err)
	}
	s.Write("ff00", "1", []byte("content"))
	if got, ok := s.Read("ff00", "1"); !ok || string(got) != "content" {
		t.Error("nothing is remembered any more")
	}
}
