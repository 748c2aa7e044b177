// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/internal/statetest"
)

func opened(t *testing.T, dir string) *Queue {
	t.Helper()
	q, err := Open(t.Context(), Options{Dir: dir, AckWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestPutRemembersDeliveries(t *testing.T) {
	dir := statetest.Dir(t)
	q := opened(t, dir)
	e := event.Event{ID: "a", Receiver: "github"}
	for i, want := range []bool{false, true} {
		got, err := q.Put(t.Context(), e)
		if err != nil || got != want {
			t.Fatalf("delivery %d: duplicate %v, error %v; want %v", i, got, err, want)
		}
	}
	q.Close()
	q = opened(t, dir)
	if got, err := q.Put(t.Context(), e); err != nil || !got {
		t.Fatalf("after a restart: duplicate %v, error %v; want true", got, err)
	}
	// An event that was planned is gone, and its id is not.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	planned := 0
	if err := q.Events(ctx, 1, func(context.Context, event.Event, time.Time) error {
		planned++
		time.AfterFunc(100*time.Millisecond, cancel)
		return nil
	}); err != nil || planned != 1 {
		t.Fatalf("planned %d times: %v", planned, err)
	}
	q.Close()
	q = opened(t, dir)
	defer q.Close()
	if got, err := q.Put(t.Context(), e); err != nil || !got {
		t.Fatalf("after it was planned and a restart: duplicate %v, error %v; want true", got, err)
	}
}

func TestWorkIsTheNewestJobOfEachPipelineAndNeverTwoAtOnce(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	for i := range 30 {
		if err := q.Request(t.Context(), Job{Pipeline: string('a' + rune(i%3)), Cause: string('0' + rune(i/3))}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var mu sync.Mutex
	done, running := map[string]string{}, map[string]*atomic.Int32{"a": {}, "b": {}, "c": {}}
	_ = q.Work(ctx, 4, func(_ context.Context, j Job) error {
		if running[j.Pipeline].Add(1) > 1 {
			t.Errorf("two jobs of %s at once", j.Pipeline)
		}
		defer running[j.Pipeline].Add(-1)
		if j.Cause == "9" {
			// A newer job that comes while one is running waits for it, and is not lost.
			if err := q.Request(ctx, Job{Pipeline: j.Pipeline, Cause: "newer"}); err != nil {
				return err
			}
		}
		time.Sleep(50 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		done[j.Pipeline] += j.Cause + " "
		if done["a"] == "9 newer " && done["b"] == "9 newer " && done["c"] == "9 newer " {
			cancel()
		}
		return nil
	})
	for _, p := range []string{"a", "b", "c"} {
		if done[p] != "9 newer " {
			t.Errorf("jobs done of %s: %q, want %q", p, done[p], "9 newer ")
		}
	}
}

func TestJobComesAgainAfterAnError(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	if err := q.Request(t.Context(), Job{Pipeline: "a"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tries := 0
	_ = q.Work(ctx, 1, func(context.Context, Job) error {
		if tries++; tries < 3 {
			return &RetryError{After: 10 * time.Millisecond, Err: context.Canceled}
		}
		cancel()
		return nil
	})
	if tries != 3 {
		t.Errorf("%d tries, want 3", tries)
	}
}

// storedLocks has a queue keep its locks as one in a cluster does.
func storedLocks(q *Queue) { q.local = nil }

func TestLockOfADeadHolderIsLost(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	storedLocks(q)
	if _, err := q.locks.Create(t.Context(), subjectToken("x"), []byte("dead")); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := q.TryLock(t.Context(), "x"); ok || err != nil {
		t.Fatalf("took a held lock: %v, %v", ok, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	unlock, err := q.Lock(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	unlock, ok, err := q.TryLock(t.Context(), "x")
	if !ok || err != nil {
		t.Fatalf("an unlocked lock was not free: %v, %v", ok, err)
	}
	unlock()
}

func TestPendingAndDepth(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	for _, name := range []string{"team/a", "b"} {
		if err := q.Request(t.Context(), Job{Pipeline: name}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	started := make(chan struct{})
	_ = q.Work(ctx, 1, func(_ context.Context, j Job) error {
		close(started)
		// A job that runs is pending too: who decides that a pipeline needs none must know of it.
		pending, err := q.Pending(ctx)
		if err != nil || !pending["team/a"] || !pending["b"] || len(pending) != 2 {
			t.Errorf("pending %v, error %v", pending, err)
		}
		for _, names := range [][]string{{"b", "c"}, {"a", "b", "c", "d", "e", "f"}} {
			pending, err := q.PendingOf(ctx, names)
			if err != nil || !pending["b"] || pending["c"] {
				t.Errorf("of %v pending %v, error %v", names, pending, err)
			}
		}
		cancel()
		return nil
	})
	<-started
	depth, err := q.Depth(t.Context(), nil)
	if err != nil || depth.Jobs != 1 || time.Since(depth.Oldest) > time.Minute {
		t.Errorf("%d jobs since %s, error %v", depth.Jobs, depth.Oldest, err)
	}
}

func TestARestartFindsWhatWasBegun(t *testing.T) {
	dir := statetest.Dir(t)
	q, err := Open(t.Context(), Options{Dir: dir, AckWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Request(t.Context(), Job{Pipeline: "a", Cause: "1"}); err != nil {
		t.Fatal(err)
	}
	if msg, err := q.nextMessage(t.Context(), q.work); err != nil || msg == nil {
		t.Fatal(msg, err)
	}
	storedLocks(q) // as earlier versions did with an embedded server, too
	if _, ok, err := q.TryLock(t.Context(), "pipeline/a"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	q.nc.Close() // as a process that is killed
	q.Close()
	q, err = Open(t.Context(), Options{Dir: dir, AckWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	found := ""
	_ = q.Work(ctx, 1, func(_ context.Context, j Job) error { found = j.Cause; cancel(); return nil })
	if found != "1" {
		t.Error("the job that was begun did not come again at once")
	}
}

func TestTwoProcessesCannotShareADirectory(t *testing.T) {
	dir := statetest.Dir(t)
	q := opened(t, dir)
	before := listing(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "another process uses it: end that one") {
		t.Errorf("a second queue opened the directory: %v", err)
	}
	if after := listing(t, dir); !slices.Equal(before, after) {
		t.Errorf("the second one left %v of %v", after, before)
	}
	// One that is told to end is waited for.
	time.AfterFunc(300*time.Millisecond, q.Close)
	second, err := Open(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

// listing returns the files below a directory.
func listing(t *testing.T, dir string) (names []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		names = append(names, name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

func TestSaveAfter(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	first, err := q.SaveAfter(t.Context(), "a", []byte("1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.SaveAfter(t.Context(), "a", []byte("2"), first); err != nil {
		t.Fatal(err)
	}
	for _, revision := range []uint64{0, first} {
		if _, err := q.SaveAfter(t.Context(), "a", []byte("3"), revision); !errors.Is(err, ErrChanged) {
			t.Errorf("saving after %d: %v", revision, err)
		}
	}
}

func TestTable(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	if err := q.Save(t.Context(), "pipeline/a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	table, err := q.Table(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"2", "3"} {
		if err := q.Save(t.Context(), "pipeline/b", []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Forget(t.Context(), "pipeline/a"); err != nil {
		t.Fatal(err)
	}
	if err := table.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := table.Get("pipeline/a"); ok {
		t.Error("what was forgotten is still there")
	}
	if data, _, ok := table.Get("pipeline/b"); !ok || string(data) != "3" {
		t.Errorf("got %q, %v", data, ok)
	}
	if names := table.Names("pipeline/"); len(names) != 1 || names[0] != "pipeline/b" {
		t.Errorf("names: %v", names)
	}
}

func TestAStoppedWorkerKnowsThatItLostItsPipeline(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	storedLocks(q)
	h, ok, err := q.tryLock(t.Context(), "pipeline/a")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	defer h.unlock()
	ctx := context.WithValue(t.Context(), holdKey{}, h)
	time.Sleep(1500 * time.Millisecond)
	if err := Held(ctx); err != nil {
		t.Errorf("a lock that is renewed: %v", err)
	}
	// As if the process had been stopped. Its own copy, as the other is being renewed meanwhile.
	stopped := &heldLock{began: time.Now().Add(-time.Minute), valid: h.valid}
	if err := Held(context.WithValue(t.Context(), holdKey{}, stopped)); err == nil {
		t.Error("a lock that was not renewed in time counts as held")
	}
}

func TestAFullArchiveLeavesTheRestAlone(t *testing.T) {
	q, err := Open(t.Context(), Options{Dir: statetest.Dir(t), MaxStore: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	paper := make([]byte, 300<<10)
	full := false
	for i := range 10 {
		if err := q.PutArchive(t.Context(), string('a'+rune(i)), paper); err != nil {
			full = true
		}
	}
	if !full {
		t.Error("the archive has no bound")
	}
	if data, ok, err := q.GetArchive(t.Context(), "a"); err != nil || !ok || len(data) != len(paper) {
		t.Errorf("%d bytes, %v, %v", len(data), ok, err)
	}
	if err := q.Save(t.Context(), "state", []byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := q.Put(t.Context(), event.Event{ID: "a", Receiver: "r"}); err != nil {
		t.Error(err)
	}
}
