// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// loggedErrors is what a queue logs, also while it is read.
type loggedErrors struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *loggedErrors) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *loggedErrors) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// telling opens the queue of a directory and gives what it logs as errors.
func telling(t *testing.T, dir string) (*Queue, *loggedErrors) {
	t.Helper()
	var said loggedErrors
	q, err := Open(t.Context(), Options{Dir: dir, AckWait: time.Second, Log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		t.Fatal(err)
	}
	return q, &said
}

// drain does all jobs.
func drain(t *testing.T, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if depth, err := q.Depth(ctx, nil); err == nil && depth.Jobs == 0 {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if err := q.Work(ctx, 20, func(context.Context, Job) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// killed leaves in another directory what a kill at this moment would.
func killed(t *testing.T, dir string) string {
	t.Helper()
	left := filepath.Join(statetest.Dir(t), "left")
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return left
}

func request(t *testing.T, q *Queue, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := q.Request(t.Context(), Job{Pipeline: fmt.Sprint("team/app", i)}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAKillIsNoDamage kills the server some time after it has last written down what it holds: the jobs that were done and
// removed since are not lost.
func TestAKillIsNoDamage(t *testing.T) {
	dir := statetest.Dir(t)
	q, _ := telling(t, dir)
	request(t, q, 0, 30)
	save := func(times int) {
		// States of many pipelines, each of which replaces the one before: files with nothing else are removed.
		for range times {
			for i := range 100 {
				if err := q.Save(t.Context(), fmt.Sprint("state/", i), make([]byte, 100<<10)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	save(1)
	q.Close() // it writes the index, as it also does from time to time
	indexes, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs", "index.db"))
	if err != nil || len(indexes) < 3 {
		t.Fatalf("the indexes are %v: %v", indexes, err)
	}
	old := map[string][]byte{}
	for _, name := range indexes {
		if old[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	q, _ = telling(t, dir)
	drain(t, q)
	request(t, q, 30, 33)
	save(3)
	if err := q.Save(t.Context(), "kept", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	left := killed(t, dir)
	q.Close()
	for name, text := range old {
		if err := os.WriteFile(strings.Replace(name, dir, left, 1), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	q, said := telling(t, left)
	if text := said.String(); text != "" {
		t.Errorf("after a kill it says:\n%s", text)
	}
	if depth, err := q.Depth(t.Context(), nil); err != nil || depth.Jobs != 3 {
		t.Errorf("%d jobs are left, want the three that were not done: %v", depth.Jobs, err)
	}
	if data, _, ok, err := q.Load(t.Context(), "kept"); err != nil || !ok || string(data) != "kept" {
		t.Errorf("the state is %q, %v, %v", data, ok, err)
	}
	q.Close()
	q, said = telling(t, left)
	defer q.Close()
	if text := said.String(); text != "" {
		t.Errorf("after a proper end it says:\n%s", text)
	}
}

// TestAStartThatWasInterruptedIsNoDamage leaves what the very first start leaves when it is ended before it has made
// everything.
func TestAStartThatWasInterruptedIsNoDamage(t *testing.T) {
	dir := statetest.Dir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if q, err := Open(ctx, Options{Dir: dir}); err == nil {
		q.Close()
		t.Fatal("it opens without time")
	}
	if err := os.MkdirAll(filepath.Join(dir, "jetstream"), 0o700); err != nil {
		t.Fatal(err)
	}
	q, said := telling(t, dir)
	defer q.Close()
	if text := said.String(); text != "" {
		t.Errorf("it says:\n%s", text)
	}
}

// TestStateThatIsGoneIsTold removes what was stored, after a proper end and after a kill.
func TestStateThatIsGoneIsTold(t *testing.T) {
	for name, end := range map[string]func(q *Queue, dir string) string{
		"closed": func(q *Queue, dir string) string { q.Close(); return dir },
		"killed": func(q *Queue, dir string) string { defer q.Close(); return killed(t, dir) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := statetest.Dir(t)
			q, _ := telling(t, dir)
			if err := q.Save(t.Context(), "kept", []byte("kept")); err != nil {
				t.Fatal(err)
			}
			left := end(q, dir)
			blocks, err := filepath.Glob(filepath.Join(left, "jetstream", "*", "streams", "KV_PRERIG_STATE", "msgs", "*.blk"))
			if err != nil || len(blocks) == 0 {
				t.Fatalf("the blocks are %v: %v", blocks, err)
			}
			for _, block := range blocks {
				if err := os.Truncate(block, 0); err != nil {
					t.Fatal(err)
				}
			}
			q, said := telling(t, left)
			defer q.Close()
			if text := said.String(); !strings.Contains(text, "were damaged") || !strings.Contains(text, "STATE") {
				t.Errorf("it says %q", text)
			}
		})
	}
}

// TestAPartThatIsGoneIsTold damages one of the files that states of many pipelines are in.
func TestAPartThatIsGoneIsTold(t *testing.T) {
	for name, damage := range map[string]func(data []byte) []byte{
		"empty":   func([]byte) []byte { return nil },
		"cut":     func(data []byte) []byte { return data[:len(data)/2-1] },
		"zeros":   func(data []byte) []byte { return make([]byte, len(data)) },
		"flipped": func(data []byte) []byte { data[len(data)/2] ^= 0x5a; return data },
	} {
		t.Run(name, func(t *testing.T) {
			dir := statetest.Dir(t)
			q, _ := telling(t, dir)
			for i := range 100 {
				if err := q.Save(t.Context(), fmt.Sprint("state/", i), make([]byte, 100<<10)); err != nil {
					t.Fatal(err)
				}
			}
			q.Close()
			block := filepath.Join(dir, "jetstream", "$G", "streams", "KV_PRERIG_STATE", "msgs", "2.blk")
			data, err := os.ReadFile(block)
			if err == nil {
				err = os.WriteFile(block, damage(data), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			q, said := telling(t, dir)
			defer q.Close()
			if text := said.String(); !strings.Contains(text, "were damaged") || !strings.Contains(text, "KV_PRERIG_STATE") {
				t.Errorf("it says %q", text)
			}
		})
	}
}
