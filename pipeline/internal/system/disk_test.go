// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"

	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDiskFullForAWhile fills the disk of the state directory: events are refused, so that their senders know, and once
// there is room again the newest commit is rendered.
func TestDiskFullForAWhile(t *testing.T) {
	dir := smallDisk(t)
	f := prepare(t, map[string]string{"web.yaml": pipelineYAML("web", "URL", "  interval: 3s\n")})
	f.c.State = filepath.Join(dir, "s")
	f.c.NATS.AckWait = 2 * time.Second
	f.c.Listen, f.c.Admin.Listen = free(t), free(t)
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:0")})
	f.start()
	t.Cleanup(func() { f.stop() })
	const file = "web/shop/deployment-web.yaml"
	f.shows(file, "image: web:0")

	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	refused, pushes := 0, 1 // each is answered late
	if full() {
		pushes = 2
	}
	for n := 1; n <= pushes; n++ {
		commit := f.repository.Commit(fmt.Sprint(n), map[string]string{"apps/web/web.yaml": deployment("web", fmt.Sprintf("web:%d", n))})
		if f.push(commit) == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused == 0 {
		t.Error("all events were stored on a full disk")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	f.eventually("waiting for the newest commit", func() string {
		if got := f.rendered(file); !strings.Contains(got, fmt.Sprintf("image: web:%d", pushes)) {
			return got
		}
		return ""
	})
	last := f.repository.Commit("last", map[string]string{"apps/web/web.yaml": deployment("web", "web:3")})
	f.eventually("waiting for an event to be stored", func() string {
		body, err := json.Marshal(map[string]any{"git": map[string]any{"urls": []string{f.repository.URL}, "ref": "refs/heads/main"}})
		if err != nil {
			t.Fatal(err)
		}
		if status, err := post(f.hooks, body, last); err != nil || status != http.StatusAccepted && status != http.StatusOK {
			return fmt.Sprint(status, err)
		}
		return ""
	})
	f.shows(file, "image: web:3")
	t.Logf("%d of %d events were refused", refused, pushes)
}

// smallDisk is a file system of 48 MB. Only root can have one.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=48m"); err != nil {
		t.Skipf("LEFT OUT: a full disk needs a small file system, and this user cannot mount one: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// TestKilledWhileTheDiskIsFull fills the disk of the state directory again and again while the daemon is killed: it may
// end, be killed in the middle of a write, or be started where nothing can be written. Git hosts send their events once.
func TestKilledWhileTheDiskIsFull(t *testing.T) {
	dir := smallDisk(t)
	c := newChaos(t, sized(size{20, 4, 3}), "  interval: 5s\n")
	c.c.State = filepath.Join(dir, "s")
	c.patience = 3 * time.Second // it may not come up for as long as the disk is full
	c.serve(c.c, false)
	stop := make(chan struct{})
	var group sync.WaitGroup
	times := 0
	group.Go(func() {
		filler := filepath.Join(dir, "filler")
		wait := 300 * time.Millisecond // soon the first time, as few pushes take little more than a second
		for on := true; ; on = !on {
			select {
			case <-stop:
				_ = os.Remove(filler)
				return
			case <-time.After(wait):
			}
			if on {
				fill(t, filler)
				times++
				wait = time.Duration(300+rand.IntN(1200)) * time.Millisecond
			} else {
				_ = os.Remove(filler)
				wait = time.Duration(1000+rand.IntN(5000)) * time.Millisecond
			}
		}
	})
	finish := sync.OnceFunc(func() { close(stop); group.Wait() })
	defer finish()
	c.quiet = finish
	c.run()
	if times == 0 {
		t.Error("the disk was never full")
	}
	t.Logf("the disk was full %d times", times)
}

// fill writes until nothing fits any more.
func fill(t *testing.T, name string) {
	t.Helper()
	out, err := os.Create(name)
	if err != nil {
		t.Error(err)
		return
	}
	defer out.Close()
	for size := 1 << 20; size > 0; {
		if _, err := out.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}
