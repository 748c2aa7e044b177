// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// shared holds the objects of several trees, as a mirror does.
type shared map[string][]tree.Entry

func (s shared) Tree(id string) ([]tree.Entry, error) {
	entries, ok := s[id]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return entries, nil
}

func (s shared) Blob(id string, _ int64) ([]byte, error) { return []byte(id), nil }

// add stores a directory of files, links ("->target") and submodules ("@commit"), and gives its ID.
func (s shared) add(files map[string]string) string {
	sub, entries := map[string]map[string]string{}, []tree.Entry{}
	for name, content := range files {
		if first, rest, deep := strings.Cut(name, "/"); deep {
			if sub[first] == nil {
				sub[first] = map[string]string{}
			}
			sub[first][rest] = content
			continue
		}
		entry := tree.Entry{Name: name, ID: content}
		if target, ok := strings.CutPrefix(content, "->"); ok {
			entry.Mode, entry.ID = tree.Link, target
		} else if strings.HasPrefix(content, "@") {
			entry.Mode = tree.Submodule
		}
		entries = append(entries, entry)
	}
	for name, below := range sub {
		entries = append(entries, tree.Entry{Name: name, Mode: tree.Dir, ID: s.add(below)})
	}
	slices.SortFunc(entries, func(a, b tree.Entry) int { return strings.Compare(a.Name, b.Name) })
	id := fmt.Sprint("tree ", entries)
	s[id] = entries
	return id
}

func TestChangesTouchARecord(t *testing.T) {
	files := map[string]string{
		"apps/a/app.yaml": "1", "apps/b/app.yaml": "1", "base/b.yaml": "1", "other/x": "1", "link": "->base", "deep/link": "->../apps/a", "module": "@1",
	}
	read := func(v *tree.View, names ...string) {
		for _, name := range names {
			if list, ok := strings.CutSuffix(name, "/"); ok {
				_, _ = v.List(list)
			} else {
				_, _ = v.Read(name)
			}
		}
	}
	for name, test := range map[string]struct {
		reads  []string
		change map[string]string // an empty content removes
		touch  bool
	}{
		"nothing changes":                      {reads: []string{"apps/a/app.yaml"}},
		"another file":                         {reads: []string{"apps/a/app.yaml"}, change: map[string]string{"apps/b/app.yaml": "2", "other/x": "2"}},
		"the file":                             {reads: []string{"apps/a/app.yaml"}, change: map[string]string{"apps/a/app.yaml": "2"}, touch: true},
		"the file goes":                        {reads: []string{"apps/a/app.yaml"}, change: map[string]string{"apps/a/app.yaml": ""}, touch: true},
		"a file that was looked for":           {reads: []string{"apps/a/kustomization.yml"}, change: map[string]string{"apps/a/kustomization.yml": "1"}, touch: true},
		"a directory that was looked for":      {reads: []string{"apps/c/kustomization.yml"}, change: map[string]string{"apps/c/app.yaml": "1"}, touch: true},
		"a file beside one that was read":      {reads: []string{"apps/a/app.yaml"}, change: map[string]string{"apps/a/more.yaml": "1"}},
		"a file in a list":                     {reads: []string{"apps/a/"}, change: map[string]string{"apps/a/more.yaml": "1"}, touch: true},
		"a file goes from a list":              {reads: []string{"other/"}, change: map[string]string{"other/x": "", "other/y": "1"}, touch: true},
		"content in a list":                    {reads: []string{"apps/a/"}, change: map[string]string{"apps/a/app.yaml": "2"}},
		"a file below a list":                  {reads: []string{"apps/"}, change: map[string]string{"apps/a/more.yaml": "2"}},
		"behind a link":                        {reads: []string{"link/b.yaml"}, change: map[string]string{"base/b.yaml": "2"}, touch: true},
		"beside a link's target":               {reads: []string{"link/b.yaml"}, change: map[string]string{"base/c.yaml": "2"}},
		"a list behind a link":                 {reads: []string{"deep/link/"}, change: map[string]string{"apps/a/more.yaml": "2"}, touch: true},
		"a link":                               {reads: []string{"link/b.yaml"}, change: map[string]string{"link": "->apps/a"}, touch: true},
		"a link in a list":                     {reads: []string{"deep/"}, change: map[string]string{"deep/link": "->../apps/b"}, touch: true},
		"what a link in a list leads to":       {reads: []string{"deep/"}, change: map[string]string{"apps/a/app.yaml": ""}, touch: true},
		"a file instead of a directory":        {reads: []string{"base/b.yaml"}, change: map[string]string{"base/b.yaml": "", "base": "1"}, touch: true},
		"a directory instead of a file":        {reads: []string{"other/x"}, change: map[string]string{"other/x": "", "other/x/y": "1"}, touch: true},
		"with dots":                            {reads: []string{"apps/b/../a/app.yaml"}, change: map[string]string{"apps/a/app.yaml": "2"}, touch: true},
		"a directory that was only gone by":    {reads: []string{"apps/b/../a/app.yaml"}, change: map[string]string{"apps/b/app.yaml": "2"}},
		"the directory that was gone by, gone": {reads: []string{"apps/b/../a/app.yaml"}, change: map[string]string{"apps/b/app.yaml": ""}, touch: true},
		"a submodule moves":                    {reads: []string{"module"}, change: map[string]string{"module": "@2"}, touch: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := shared{}
			before := tree.New(s, s.add(files))
			view := tree.NewView(before, tree.Limits{})
			read(view, test.reads...)
			changed := maps.Clone(files)
			for name, content := range test.change {
				changed[name] = content
				if content == "" {
					delete(changed, name)
				}
			}
			after := before.Next(s.add(changed))
			record := view.Record()
			_, affected, at := record.Look(before)
			if affected || at == nil {
				t.Fatalf("the tree that was read: affected %v, footprint %v", affected, at)
			}
			changes, ok := after.Since(before.ID())
			if !ok {
				t.Fatal("the trees were not compared")
			}
			if got := changes.Touch(at); got != test.touch {
				t.Errorf("touches %v, want %v", got, test.touch)
			}
			if reason, affected := record.Affected(after); affected && !test.touch {
				t.Errorf("affected: %s", reason)
			}
		})
	}
}

// TestWhatIsNotTouchedIsNotAffected compares the short way with the long one on trees made at random, with links.
func TestWhatIsNotTouchedIsNotAffected(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	names := []string{"a", "b", "c"}
	random := func() string {
		parts := make([]string, 1+r.IntN(3))
		for i := range parts {
			parts[i] = names[r.IntN(len(names))]
		}
		return strings.Join(parts, "/")
	}
	// put keeps a name from being a file and a directory.
	put := func(files map[string]string, name string) {
		for other := range files {
			if other == name || strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
				delete(files, other)
			}
		}
		switch r.IntN(6) {
		case 0:
		case 1:
			files[name] = "->" + strings.Repeat("../", strings.Count(name, "/")) + random()
		default:
			files[name] = fmt.Sprint(r.IntN(3))
		}
	}
	short := 0
	for round := range 3000 {
		s, files := shared{}, map[string]string{}
		for range 8 {
			put(files, random())
		}
		at := tree.New(s, s.add(files))
		view := tree.NewView(at, tree.Limits{})
		for range 4 {
			switch name := random(); r.IntN(3) {
			case 0:
				_, _ = view.Lookup(name)
			case 1:
				_, _ = view.Read(path.Join(name, "..", names[r.IntN(3)]))
			default:
				_, _ = view.List(name)
			}
		}
		record := view.Record()
		_, affected, print := record.Look(at)
		if affected {
			t.Fatalf("round %d: a tree differs from itself", round)
		}
		first := at.ID()
		// The footprint is that of the first tree all along, as long as nothing touches it.
		for step := range 4 {
			put(files, random())
			at = at.Next(s.add(files))
			changes, ok := at.Since(first)
			if !ok {
				t.Fatalf("round %d: the trees were not compared", round)
			}
			if print == nil || changes.Touch(print) {
				break
			}
			if reason, affected := record.Affected(at); affected {
				t.Fatalf("round %d, step %d: not touched, but affected: %s\n%v\n%v", round, step, reason, record, files)
			}
			short, first = short+1, at.ID()
		}
	}
	if short < 1000 {
		t.Errorf("only %d comparisons took the short way", short)
	}
}

func TestNoShortWay(t *testing.T) {
	s := shared{}
	files := map[string]string{"out": "->../x", "a": "1"}
	at := tree.New(s, s.add(files))
	view := tree.NewView(at, tree.Limits{})
	_, _ = view.Read("out")
	if _, _, print := view.Record().Look(at); print != nil {
		t.Error("there is a footprint of what could not be read")
	}
	if _, affected, print := (tree.Record{}).Look(at); !affected || print != nil {
		t.Error("an empty record is not affected")
	}
	if _, ok := at.Since("tree that is gone"); ok {
		t.Error("a tree was compared with one that is not there")
	}
	mounted := at.WithMounts(map[string]*tree.Tree{"m": at})
	if _, ok := mounted.Since(at.ID()); ok {
		t.Error("a tree with submodules was compared")
	}
	for i := range 11_000 {
		files[fmt.Sprint("new", i)] = "1"
	}
	if _, ok := at.Next(s.add(files)).Since(at.ID()); ok {
		t.Error("very many changes were compared")
	}
}
