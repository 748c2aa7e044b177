// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package flux_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"
	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/render/engine/flux"
	"github.com/prerig/prerig/pipeline/source/dir"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// ofFlux returns the files of a directory that source-controller puts into an artifact, by Flux's own package.
func ofFlux(t *testing.T, root, ignore string) (out []string) {
	t.Helper()
	domain := strings.Split(root, string(filepath.Separator))
	patterns, err := sourceignore.LoadIgnorePatterns(root, domain)
	if err != nil {
		t.Fatal(err)
	}
	patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(ignore), domain)...)
	matcher := sourceignore.NewDefaultMatcher(nil, domain)
	if len(patterns) > 0 {
		matcher = gitignore.NewMatcher(slices.Concat(sourceignore.VCSPatterns(domain), patterns))
	}
	err = filepath.WalkDir(root, func(at string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || matcher.Match(strings.Split(at, string(filepath.Separator)), false) {
			return err
		}
		name, err := filepath.Rel(root, at)
		out = append(out, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// An artifact has the files that it has in Flux.
func TestArtifactHasTheFilesOfFlux(t *testing.T) {
	files := []string{
		"app/a.yaml", "app/.sops.yaml", "app/logo.png", "app/deep/b.yaml", "app/deep/.gitignore", ".github/ci.yaml", ".gitlab-ci.yml",
		"docs/guide.yaml", "docs/keep.yaml", "infra/docs/x.yaml", "infra/secret.txt",
	}
	for name, test := range map[string]struct {
		ignores map[string]string
		spec    string
	}{
		"defaults":      {},
		"a file":        {ignores: map[string]string{".sourceignore": "# no docs\n/docs/\n*.txt\n"}},
		"what is kept":  {ignores: map[string]string{".sourceignore": "/*\n!/app\n"}},
		"nested files":  {ignores: map[string]string{".sourceignore": "*.txt\n", "app/.sourceignore": "deep/\n", "app/deep/.sourceignore": "!b.yaml\n"}},
		"the object":    {spec: "/*\n!/infra\n"},
		"both":          {ignores: map[string]string{".sourceignore": "/docs/*\n"}, spec: "!/docs/keep.yaml\napp/**/b.yaml\n"},
		"a rooted name": {spec: "docs/\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(at, text string) {
				at = filepath.Join(root, at)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, one := range files {
				write(one, "x\n")
			}
			for at, text := range test.ignores {
				write(at, text)
			}
			read, err := dir.Read(root, tree.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			artifact := flux.NewArtifact(tree.NewView(read, tree.Limits{}), ".", test.spec)
			var found []string
			for _, one := range slices.Concat(files, slices.Collect(maps.Keys(test.ignores))) {
				if _, err := artifact.Lookup(one); err == nil {
					found = append(found, one)
				}
			}
			slices.Sort(found)
			want := ofFlux(t, root, test.spec)
			slices.Sort(want)
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("(-Flux +found):\n%s", diff)
			}
		})
	}
}
