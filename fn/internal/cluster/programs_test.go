// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDigest changes what a program is made of: each change must lead to another build.
func TestDigest(t *testing.T) {
	own := program{name: "charts", pkg: "./charts"}
	module := func(t *testing.T, changed map[string]string) string {
		t.Helper()
		dir := t.TempDir()
		files := map[string]string{"go.mod": "module m", "go.sum": "", "charts/main.go": "package main", "injector/main.go": "package main"}
		for name, content := range changed {
			files[name] = content
		}
		for name, content := range files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	digest := func(t *testing.T, p program, changed map[string]string) string {
		t.Helper()
		d, err := p.digest(module(t, changed))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := digest(t, own, nil)
	for name, c := range map[string]struct {
		program program
		changed map[string]string
		same    bool
	}{
		"nothing":                      {program: own, same: true},
		"its own source":               {program: own, changed: map[string]string{"charts/main.go": "package main // changed"}},
		"another file of its own":      {program: own, changed: map[string]string{"charts/render.go": "package main"}},
		"the source of another":        {program: own, changed: map[string]string{"injector/main.go": "package main // changed"}, same: true},
		"the versions of modules":      {program: own, changed: map[string]string{"go.mod": "module m // changed"}},
		"what the modules' content is": {program: own, changed: map[string]string{"go.sum": "changed"}},
		"the linker's flags":           {program: program{name: "charts", pkg: "./charts", flags: []string{"-X", "a=b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := digest(t, c.program, c.changed); (got == before) != c.same {
				t.Errorf("the digest is %s, and was %s before", got, before)
			}
		})
	}
	missing := program{name: "none", pkg: "./none"}
	if _, err := missing.digest(module(t, nil)); err == nil {
		t.Error("a program without sources has a digest")
	}
}
