// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// TestALockThatCannotBeDroppedIsNoticed fills the disk while a lock is held. The server then gives up the stream of the locks: the
// lock is neither dropped nor does it expire, and whoever asks for it is told that somebody else has it, for ever.
func TestALockThatCannotBeDroppedIsNoticed(t *testing.T) {
	dir := statetest.Dir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=48m"); err != nil {
		t.Skipf("LEFT OUT: a full disk needs a small file system, and this user cannot mount one: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	q, said := telling(t, filepath.Join(dir, "q"))
	defer q.Close()
	storedLocks(q)
	unlock, ok, err := q.TryLock(t.Context(), "a")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	filler := filepath.Join(dir, "filler")
	fillDisk(t, filler)
	// The lock is renewed every third of a second, until the server has no room for it.
	for begin := time.Now(); !strings.Contains(said.String(), "KV_PRERIG_LOCKS"); time.Sleep(100 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("the full disk is not noticed by the server")
		}
	}
	unlock()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := q.Watch(ctx); !errors.Is(err, ErrBroken) {
		_, ok, err := q.TryLock(t.Context(), "a")
		t.Errorf("nobody notices; the lock is taken again: %v, %v", ok, err)
	}
}

// fillDisk writes until nothing fits any more.
func fillDisk(t *testing.T, name string) {
	t.Helper()
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for size := 1 << 20; size > 0; {
		if _, err := out.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}
