// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// watching has a catalog watched until the test ends.
func watching(t *testing.T, c *Catalog, touched func(string), further ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Watch(ctx, touched, further...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// appears waits for a pipeline.
func appears(t *testing.T, c *Catalog, key string) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, ok := c.Get(key); ok {
			return
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("the pipeline %s is not read", key)
		}
	}
}

func TestADirectoryBehindALinkIsReadAndWatched(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "pipelines")
	source := "{git: {url: https://h/a}}"
	write(t, dir, map[string]string{"a.yaml": pipeline("one", source)})
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	c, err := Open(link, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := c.Get("one"); !ok || e.File != "a.yaml" {
		t.Fatalf("entries: %+v", c.All())
	}
	watching(t, c, func(string) {})
	time.Sleep(50 * time.Millisecond) // for the watch to begin
	write(t, dir, map[string]string{"b.yaml": pipeline("two", source)})
	appears(t, c, "two")
}

// TestADirectoryThatIsNeverQuietIsRead has something write to it all the time that is no pipeline.
func TestADirectoryThatIsNeverQuietIsRead(t *testing.T) {
	source := "{git: {url: https://h/a}}"
	c, dir := open(t, map[string]string{"a.yaml": pipeline("one", source)})
	watching(t, c, func(string) {})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				_ = os.WriteFile(filepath.Join(dir, "app.log"), fmt.Append(nil, i), 0o600)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	time.Sleep(50 * time.Millisecond)
	write(t, dir, map[string]string{"b.yaml": pipeline("two", source)})
	appears(t, c, "two")
}

// TestAPipelineThatMovesToAnotherDirectoryHasChanged is about one whose source is named relative to its file.
func TestAPipelineThatMovesToAnotherDirectoryHasChanged(t *testing.T) {
	relative, git := pipeline("relative", "{dir: {path: app}}"), pipeline("git", "{git: {url: https://h/a}}")
	c, dir := open(t, map[string]string{"a/r.yaml": relative, "a/g.yaml": git})
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"b/r.yaml": relative, "b/g.yaml": git})
	if changed, err := c.Reload(); err != nil || !slices.Equal(changed, []string{"relative"}) {
		t.Errorf("changed: %v, %v", changed, err)
	}
}

// TestPoliciesThatNoSignTellsOfAreSeen has their directory made after it was to be watched, and behind a link that is set to
// another one.
func TestPoliciesThatNoSignTellsOfAreSeen(t *testing.T) {
	c, _ := open(t, map[string]string{"a.yaml": pipeline("one", "{git: {url: https://h/a}}")})
	c.rescan = 50 * time.Millisecond
	parent := t.TempDir()
	policies := filepath.Join(parent, "policies")
	touched := make(chan string, 100)
	checked := c.Status().Checked
	watching(t, c, func(dir string) { touched <- dir }, policies)
	for begin := time.Now(); c.Status().Checked.Equal(checked); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatal("the directory is not read again")
		}
	}
	expect := func(what string) {
		t.Helper()
		select {
		case <-touched:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: not seen", what)
		}
		for quiet := false; !quiet; { // one change may be seen in two steps
			select {
			case <-touched:
			case <-time.After(500 * time.Millisecond):
				quiet = true
			}
		}
	}
	write(t, parent, map[string]string{"first/mesh.yaml": "1", "second/mesh.yaml": "2"})
	for _, version := range []string{"first", "second"} {
		next := filepath.Join(parent, "next")
		if err := os.Symlink(version, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, policies); err != nil {
			t.Fatal(err)
		}
		expect("the link to the " + version)
	}
	write(t, parent, map[string]string{"second/mesh.yaml": "3"})
	expect("a file behind the link")
	if err := os.Remove(policies); err != nil {
		t.Fatal(err)
	}
	expect("the end of the link")
}

// TestKnownFilesAreNotReadAnew: what is remembered of a directory is what reading all of it anew would give, whatever happens to its
// files in between.
func TestKnownFilesAreNotReadAnew(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	valid := func(name string) string { return pipeline(name, "{git: {url: https://h/a}}") }
	for i := range 30 {
		put(fmt.Sprintf("%02d/p.yaml", i), valid(fmt.Sprint("p", i)))
	}
	var known parsedFiles
	for _, step := range []func(){
		func() {},
		func() {},
		func() { put("03/p.yaml", valid("renamed")) },
		func() { put("04/p.yaml", "kind: RenderPipeline\nspec: {nothing: 1}\n") },
		func() {
			put("04/p.yaml", valid("p4")+"---\n"+valid("p4b")+"---\nkind: RenderPipeline\nspec: {nothing: 1}\n")
		},
		func() { _ = os.Rename(filepath.Join(dir, "05"), filepath.Join(dir, "99")) },
		func() { _ = os.RemoveAll(filepath.Join(dir, "06")) },
		func() { put("06/p.yaml", valid("p6")) },
		func() { put("06/p.yaml", "{") },
	} {
		step()
		got, err := known.readDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		want, err := new(parsedFiles).readDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		describe := func(all []Entry) (out []string) {
			for _, e := range all {
				out = append(out, fmt.Sprint(e.Key, " ", e.File, " ", e.Digest, " ", e.Err))
			}
			return out
		}
		if d := cmp.Diff(describe(want), describe(got)); d != "" {
			t.Error(d)
		}
	}
	before := known.byName["00/p.yaml"].entries[0].Pipeline
	if again, err := known.readDir(dir); err != nil || again[0].Pipeline != before {
		t.Errorf("a file that is as it was is read anew: %v", err)
	}
}

// TestLinesOfMessagesInAFileOfMany: they are those of the file.
func TestLinesOfMessagesInAFileOfMany(t *testing.T) {
	text := pipeline("a", "{git: {url: https://h/a}}") + "---\n"
	bad := "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: b}\nspec: {wrong: 1}\n"
	entries := Parse("p.yaml", []byte(text+bad))
	want := fmt.Sprintf("%d", strings.Count(text, "\n")+4)
	if len(entries) != 2 || entries[1].Err == nil || !strings.Contains(entries[1].Err.Error(), want) {
		t.Fatalf("the message does not name line %s: %v", want, entries)
	}
}
