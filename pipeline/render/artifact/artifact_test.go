// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/render/artifact"
	"github.com/prerig/prerig/pipeline/source/tree"
)

func treeOf(t *testing.T, files map[string]string) tree.Reader {
	t.Helper()
	b := tree.NewBuilder(tree.Limits{})
	for name, text := range files {
		if err := b.Add(name, tree.File, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return tree.NewView(b.Build(), tree.Limits{})
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// contents returns the files of a tree.
func contents(t *testing.T, files tree.Reader) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(tree.FS(files), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.Read(name)
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestArtifactsHaveTheFilesOfSourceWatcher compares with the answers of Flux's own builder.
func TestArtifactsHaveTheFilesOfSourceWatcher(t *testing.T) {
	var in struct {
		Files map[string]string
		Cases map[string][]any
	}
	var answers map[string]map[string]string
	read(t, "testdata/cases.yaml", &in)
	read(t, "testdata/answers.json", &answers)
	if len(in.Cases) != len(answers) {
		t.Errorf("%d cases, and %d answers", len(in.Cases), len(answers))
	}
	repository := treeOf(t, in.Files)
	for name, steps := range in.Cases {
		g, err := artifact.Read(map[string]any{"spec": map[string]any{
			"sources":   []any{map[string]any{"alias": "repo", "kind": "GitRepository", "name": "flux-system"}},
			"artifacts": []any{map[string]any{"name": "one", "copy": steps}},
		}}, "flux-system")
		if err != nil {
			t.Fatal(err)
		}
		files, err := g.Open("one", func(artifact.Source) (tree.Reader, error) { return repository, nil }, nil)
		want := answers[name]
		switch {
		case want == nil && err == nil:
			t.Errorf("%s: source-watcher fails, and the artifact has %v", name, contents(t, files))
		case want != nil && err != nil:
			t.Errorf("%s: %v", name, err)
		case want != nil:
			if got := contents(t, files); !maps.Equal(got, want) {
				text, _ := json.MarshalIndent(got, "", "  ")
				t.Errorf("%s:\n%s", name, text)
			}
		}
	}
}

// TestArtifactsOfAPathPattern: each directory makes an artifact, with a name in lower case.
func TestArtifactsOfAPathPattern(t *testing.T) {
	g, err := artifact.Read(map[string]any{"spec": map[string]any{
		"sources":     []any{map[string]any{"alias": "repo", "kind": "GitRepository", "name": "flux-system"}},
		"pathPattern": "@repo/apps/{app}/envs/{env}",
		"artifacts":   []any{map[string]any{"name": "{app}-{env}", "copy": []any{map[string]any{"from": "@repo/apps/{app}/envs/{env}/**", "to": "@artifact/{env}/"}}}},
	}}, "flux-system")
	if err != nil {
		t.Fatal(err)
	}
	repository := treeOf(t, map[string]string{"apps/Auth/envs/prod/a.yaml": "a", "apps/web/envs/dev/b.yaml": "b", "apps/web/envs/dev/sub/c.yaml": "c", "apps/web/d.yaml": "d"})
	open := func(artifact.Source) (tree.Reader, error) { return repository, nil }
	for name, want := range map[string]map[string]string{
		"auth-prod": {"prod/a.yaml": "a"}, "web-dev": {"dev/b.yaml": "b", "dev/sub/c.yaml": "c"}, "Auth-prod": nil, "web-prod": nil, "other": nil,
	} {
		files, err := g.Open(name, open, nil)
		switch {
		case want == nil && !errors.Is(err, artifact.ErrNotMade):
			t.Errorf("%s: %v", name, err)
		case want != nil && (err != nil || !maps.Equal(contents(t, files), want)):
			t.Errorf("%s: %v", name, err)
		}
	}
	files, err := g.Open("web-dev", open, nil)
	if err != nil || !slices.Equal(files.Origins("dev"), []string{"apps/web/envs/dev", "apps/web/envs/dev/sub"}) {
		t.Errorf("%v, %v", files, err)
	}
	if got := g.Directories("web-dev"); !slices.Equal(got, []string{"apps/*/envs/*"}) {
		t.Errorf("%v", got)
	}
}
