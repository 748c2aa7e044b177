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

	"github.com/prerig/prerig/pipeline/daemon/event"
)

func pipeline(name, source string, annotations ...string) string {
	return fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata:\n  name: %s\n  annotations: {%s}\nspec:\n  source: %s\n",
		name, strings.Join(annotations, ", "), source)
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, files map[string]string) (*Catalog, string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	c, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, dir
}

func TestInvalidPipelinesStopNoOther(t *testing.T) {
	good := "{git: {url: https://h/a}}"
	c, _ := open(t, map[string]string{
		"a.yaml":         pipeline("one", good) + "---\n" + pipeline("two", "{gti: {url: x}}") + "---\n" + pipeline("three", good),
		"b/broken.yaml":  "a: [\n",
		"c.yaml":         pipeline("one", good),
		"README.md":      "nothing",
		".hidden/x.yaml": pipeline("hidden", good),
	})
	got := map[string]string{}
	for _, e := range c.All() {
		got[e.Key] = errorText(e.Err)
	}
	for key, want := range map[string]string{
		"one": "", "three": "", "two": "line 15: spec.source.gti: unknown field, did you mean git?", "b/broken.yaml": "reading b/broken.yaml", "c.yaml#one": "is in a.yaml already",
	} {
		if text, ok := got[key]; !ok || !strings.Contains(text, want) || (want == "") != (text == "") {
			t.Errorf("%s: got %q (%v), want %q", key, text, ok, want)
		}
	}
	if len(got) != 5 {
		t.Errorf("entries: %v", got)
	}
}

func TestMatch(t *testing.T) {
	c, _ := open(t, map[string]string{"p.yaml": strings.Join([]string{
		pipeline("main", "{git: {url: https://git.example.com/org/app.git, ref: {branch: main}}}"),
		pipeline("default", "{git: {url: git@git.example.com:org/app}}"),
		pipeline("tag", "{git: {url: https://git.example.com/org/app, ref: {tag: v1}}}"),
		pipeline("pinned", "{git: {url: https://git.example.com/org/app, ref: {commit: "+strings.Repeat("a", 40)+"}}}"),
		pipeline("other", "{git: {url: https://git.example.com/org/other, ref: {branch: main}}}", "prerig.dev/flux-source: GitRepository/flux-system/other"),
		pipeline("image", "{oci: {url: oci://Registry.example.com/team/app, ref: {tag: prod}}}"),
		pipeline("hub", "{oci: {url: oci://index.docker.io/team/app}}"),
		pipeline("digest", "{oci: {url: oci://registry.example.com/team/app, ref: {digest: 'sha256:"+strings.Repeat("a", 64)+"'}}}"),
	}, "---\n")})
	url := "https://git.example.com/org/app"
	for name, tc := range map[string]struct {
		change event.Change
		want   []string
	}{
		"branch":             {event.Change{Git: &event.GitChange{URLs: []string{"ssh://git@git.example.com/Org/App.git"}, Ref: "refs/heads/main"}}, []string{"default", "main"}},
		"another branch":     {event.Change{Git: &event.GitChange{URLs: []string{url}, Ref: "refs/heads/x"}}, []string{"default"}},
		"tag":                {event.Change{Git: &event.GitChange{URLs: []string{url}, Ref: "refs/tags/v1"}}, []string{"tag"}},
		"no ref":             {event.Change{Git: &event.GitChange{URLs: []string{url}}}, []string{"default", "main", "tag"}},
		"deleted":            {event.Change{Git: &event.GitChange{URLs: []string{url}, Ref: "refs/heads/main", Deleted: true}}, nil},
		"another repository": {event.Change{Git: &event.GitChange{URLs: []string{url + "x"}, Ref: "refs/heads/main"}}, nil},
		"image":              {event.Change{OCI: &event.OCIChange{Repository: "registry.example.com/team/app", Host: true, Tag: "prod"}}, []string{"image"}},
		"image by path":      {event.Change{OCI: &event.OCIChange{Repository: "team/app", Tag: "prod"}}, []string{"image"}},
		"image, other tag":   {event.Change{OCI: &event.OCIChange{Repository: "registry.example.com/team/app", Host: true, Tag: "dev"}}, nil},
		"image, other host":  {event.Change{OCI: &event.OCIChange{Repository: "ghcr.io/team/app", Host: true, Tag: "prod"}}, nil},
		"Docker Hub":         {event.Change{OCI: &event.OCIChange{Repository: "docker.io/team/app", Host: true, Tag: "latest"}}, []string{"hub"}},
		"Flux by branch":     {event.Change{Flux: &event.FluxChange{Kind: "GitRepository", Namespace: "flux-system", Name: "x", Revision: "main@sha1:abc"}}, []string{"default", "main"}},
		"Flux by name":       {event.Change{Flux: &event.FluxChange{Kind: "GitRepository", Namespace: "flux-system", Name: "other", Revision: "main@sha1:abc"}}, []string{"default", "main", "other"}},
		"Flux, OCI":          {event.Change{Flux: &event.FluxChange{Kind: "OCIRepository", Name: "x", Revision: "prod@sha256:abc"}}, []string{"image"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.Match([]event.Change{tc.change})
			if !slices.Equal(got, tc.want) || c.Watches([]event.Change{tc.change}) != (len(tc.want) > 0) {
				t.Error(cmp.Diff(tc.want, got))
			}
		})
	}
}

func TestWatch(t *testing.T) {
	source := "{git: {url: https://h/a}}"
	c, dir := open(t, map[string]string{"a.yaml": pipeline("one", source)})
	changes := make(chan []string, 10)
	c.OnChange(func(keys []string) { changes <- keys })
	further := t.TempDir()
	touched := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Watch(ctx, func(dir string) { touched <- dir }, further) }()
	time.Sleep(50 * time.Millisecond) // for the watch to begin; a change before it is found at the next reload
	expect := func(want ...string) {
		t.Helper()
		select {
		case got := <-changes:
			if !slices.Equal(got, want) {
				t.Errorf("changed: %v, want %v", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("no change was seen, want %v", want)
		}
	}
	write(t, dir, map[string]string{"sub/b.yaml": pipeline("two", source)})
	expect("two")
	write(t, dir, map[string]string{"sub/b.yaml": pipeline("two", "{git: {url: https://h/b}}")})
	expect("two")
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	expect("one")
	write(t, further, map[string]string{"mesh.yaml": "x"})
	select {
	case got := <-touched:
		if got != further {
			t.Errorf("touched %s", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("the further directory was not seen")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(pipeline("one", "{git: {url: https://h/a}}")))
	f.Add([]byte("a: [\n---\nb"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, e := range Parse("f", data) {
			if (e.Err == nil) == (e.Pipeline == nil) || e.Key == "" {
				t.Errorf("entry %+v", e)
			}
		}
	})
}

// TestMatchIsRememberedForOneIndex: the same change finds the same, also of another commit, and what is new after a reload.
func TestMatchIsRememberedForOneIndex(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.yaml": pipeline("a", "{git: {url: https://h/a, ref: {branch: main}}}")})
	c, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	match := func(ref, commit string, deleted bool) []string {
		return c.Match([]event.Change{{Git: &event.GitChange{URLs: []string{"https://h/a"}, Ref: ref, After: commit, Deleted: deleted}}})
	}
	for _, commit := range []string{"1", "1", "2"} {
		if got := match("refs/heads/main", commit, false); !slices.Equal(got, []string{"a"}) {
			t.Errorf("got %v", got)
		}
	}
	if got := match("refs/heads/other", "1", false); len(got) != 0 {
		t.Errorf("another branch: %v", got)
	}
	if got := match("refs/heads/main", "1", true); len(got) != 0 {
		t.Errorf("a branch that is gone: %v", got)
	}
	if len(c.index.matched) != 3 {
		t.Errorf("%d changes are remembered", len(c.index.matched))
	}
	write(t, dir, map[string]string{"b.yaml": pipeline("b", "{git: {url: https://h/a}}")})
	if _, err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := match("refs/heads/main", "1", false); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("after a reload: %v", got)
	}
	for i := range maxMatched {
		if match(fmt.Sprint("refs/heads/", i), "1", false); len(c.index.matched) > maxMatched {
			t.Fatal("what is remembered grows without an end")
		}
	}
}
