// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/tree"
)

func TestCompact(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	files := map[string]string{}
	for i := range 250 {
		files[fmt.Sprintf("d%d/f%d", i%10, i)] = fmt.Sprint("content ", i)
	}
	repository.Commit("first", files)
	m, err := NewStore(t.TempDir(), DefaultLimits()).Mirror(repository.URL)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := NewRemote(repository.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	var last *Commit
	for i := range 6 {
		repository.Commit("next", map[string]string{"d1/f1": strings.Repeat(fmt.Sprint(i), 100), fmt.Sprintf("new%d", i): "x"})
		if last, err = m.Fetch(context.Background(), remote, Ref{}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(pattern string) int {
		found, _ := filepath.Glob(filepath.Join(m.dir, "objects", pattern))
		return len(found)
	}
	if count("pack/*.pack") != 1 || count("[0-9a-f][0-9a-f]/*") < 10 {
		t.Fatalf("%d packs, %d single objects", count("pack/*.pack"), count("[0-9a-f][0-9a-f]/*"))
	}
	// Nothing is old enough.
	if err := m.compact(time.Now().Add(-time.Hour)); err != nil || count("[0-9a-f][0-9a-f]/*") < 10 {
		t.Errorf("%d single objects, %v", count("[0-9a-f][0-9a-f]/*"), err)
	}
	if err := m.compact(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if count("pack/*.pack") != 1 || count("[0-9a-f][0-9a-f]/*") != 0 {
		t.Errorf("%d packs, %d single objects", count("pack/*.pack"), count("[0-9a-f][0-9a-f]/*"))
	}
	clear(m.trees)
	for name, want := range map[string]string{"d1/f1": strings.Repeat("5", 100), "d2/f2": "content 2", "new5": "x"} {
		if got, err := tree.NewView(m.Tree(last), tree.Limits{}).Read(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// And the next fetch is still a small one.
	repository.Commit("after", map[string]string{"d1/f1": "after"})
	if _, err := m.Fetch(context.Background(), remote, Ref{}); err != nil || count("[0-9a-f][0-9a-f]/*") != 4 {
		t.Errorf("%d single objects, %v", count("[0-9a-f][0-9a-f]/*"), err)
	}
}
