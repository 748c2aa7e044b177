// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDigest changes what a program is made of: each change must lead to another build.
func TestDigest(t *testing.T) {
	own := program{name: "charts", pinned: goMod, pkg: "./charts"}
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
		d, err := p.inputDigest(module(t, changed))
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
		"the linker's flags":           {program: program{name: "charts", pinned: goMod, pkg: "./charts", flags: []string{"-X", "a=b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := digest(t, c.program, c.changed); (got == before) != c.same {
				t.Errorf("the digest is %s, and was %s before", got, before)
			}
		})
	}
	older := map[string]string{"clusters/1/go.mod": "module m // older", "clusters/1/go.sum": ""}
	if got := digest(t, program{name: "charts", pinned: "clusters/1/go.mod", pkg: "./charts"}, older); got == before {
		t.Errorf("the digest of an older version is %s too", got)
	}
	missing := program{name: "none", pinned: goMod, pkg: "./none"}
	if _, err := missing.inputDigest(module(t, nil)); err == nil {
		t.Error("a program without sources has a digest")
	}
}

// TestOlderKubernetesIsWhatIsPinned compares the versions that clusters are told with those that they are built of.
func TestOlderKubernetesIsWhatIsPinned(t *testing.T) {
	versions := map[string]string{"": KubernetesVersion}
	maps.Copy(versions, otherKubernetes)
	dirs, err := os.ReadDir(filepath.Join("..", "upstream", "kubernetes", "clusters"))
	if err != nil || len(dirs) != len(otherKubernetes) {
		t.Errorf("%d versions are pinned, and %d known: %v", len(dirs), len(otherKubernetes), err)
	}
	for minor, version := range versions {
		file := filepath.Join("..", "upstream", "kubernetes", "go.mod")
		if minor != "" {
			file = filepath.Join("..", "upstream", "kubernetes", "clusters", minor, "go.mod")
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "k8s.io/kubernetes "+version) {
			t.Errorf("%s does not require Kubernetes %s", file, version)
		}
	}
	if _, err := (Builder{Kubernetes: "1.2"}).Build(t.Context()); err == nil || !strings.Contains(err.Error(), "1.34") {
		t.Errorf("building what is not pinned: %v", err)
	}
}
