// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/server"
)

// contents returns a digest of every file below directories, with the time of its last change.
func contents(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			out[path] = fmt.Sprintf("%s %x", info.ModTime(), sha256.Sum256(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestAnEventThatNobodyWatchesCostsNothing sends events through the daemon's door: what no pipeline follows is answered,
// but neither stored nor looked at, not on the disk and not at the Git server.
func TestAnEventThatNobodyWatchesCostsNothing(t *testing.T) {
	b := newBed(t, 1, branches)
	s, err := server.New(server.Options{
		Catalog: b.planner.Catalog, Store: b.store, Queue: b.queue, Planner: b.planner, Log: b.planner.Log, Version: "test",
		Receivers: []event.Receiver{{Name: "git", Provider: event.Generic, Insecure: true}},
		Delivery:  func(string, string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	send := func(id, url, ref string) (int, string) {
		body := fmt.Sprintf(`{"git": {"urls": [%q], "ref": %q, "after": %q}}`, url, ref, id)
		r := httptest.NewRequest(http.MethodPost, "/hook/git", strings.NewReader(body))
		r.Header.Set("X-Request-Id", id)
		w := httptest.NewRecorder()
		s.Hooks().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	dirs := []string{b.queueDir, b.state}
	before := contents(t, dirs...)
	for deadline := time.Now().Add(time.Minute); ; { // until the queue has written all that it was given before
		time.Sleep(500 * time.Millisecond)
		now := contents(t, dirs...)
		if maps.Equal(before, now) {
			break
		}
		before = now
		if time.Now().After(deadline) {
			t.Fatal("the disk does not come to rest")
		}
	}
	asked := b.git.Requests.Load()
	for i := range 50 {
		for _, one := range [][2]string{{"https://elsewhere.example.com/apps.git", "refs/heads/main"}, {b.repository.URL, "refs/heads/topic"}, {b.repository.URL, "refs/tags/v1"}} {
			if code, body := send(fmt.Sprint(one, i), one[0], one[1]); code != http.StatusOK || !strings.Contains(body, "unwatched") {
				t.Fatalf("%v: answered with %d: %s", one, code, body)
			}
		}
	}
	if now := contents(t, dirs...); !maps.Equal(before, now) {
		t.Errorf("the disk was written to: %v\n%v", before, now)
	}
	if n := b.git.Requests.Load(); n != asked {
		t.Errorf("the Git server was asked %d times", n-asked)
	}
	// One that is watched does all of that.
	if code, body := send("watched", b.repository.URL, "refs/heads/main"); code != http.StatusAccepted {
		t.Fatalf("answered with %d: %s", code, body)
	}
	if maps.Equal(before, contents(t, dirs...)) {
		t.Error("an event was answered before it was stored")
	}
}
