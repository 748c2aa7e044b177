// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/review/dryrun"
)

// TestDiffOfAPathThatMoves publishes, changes where to, and compares what the difference says with what the next run does.
func TestDiffOfAPathThatMoves(t *testing.T) {
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	objects := func(namespace string, names ...string) (out string) {
		for _, name := range names {
			out += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s%s}\n", name, namespace)
		}
		return out
	}
	five := objects("", "a", "b", "c", "d", "e")
	artifact := `oci: {url: "oci://` + strings.TrimPrefix(images.URL, "http://") + `/x", insecure: true, layout: `
	for name, tc := range map[string]struct {
		from, to      string // entries of spec.publish
		before, after string // the source
		want          string // added, modified, deleted, unchanged
		removed       []string
		refused       string
	}{
		"to a path beside":     {"git: {branch: rendered, path: old}", "git: {branch: rendered, path: new}", five, five, "5 0 5 0", []string{"../old/configmap-a.yaml", "../old/configmap-b.yaml", "../old/configmap-c.yaml", "../old/configmap-d.yaml", "../old/configmap-e.yaml"}, ""},
		"to a path below":      {"git: {branch: rendered, path: old}", "git: {branch: rendered, path: old/new}", objects("", "a"), objects("", "a"), "1 0 1 0", []string{"../configmap-a.yaml"}, ""},
		"to the path above":    {"git: {branch: rendered, path: old/new}", "git: {branch: rendered, path: old}", objects("", "a"), objects("", "a"), "1 0 1 0", []string{"new/configmap-a.yaml"}, ""},
		"to a path of the old": {"git: {branch: rendered, path: shop}", "git: {branch: rendered, path: new}", objects("", "a"), objects(", namespace: shop", "a"), "1 0 1 0", []string{"../shop/configmap-a.yaml"}, ""},
		"without most of it":   {"git: {branch: rendered, path: old}", "git: {branch: rendered, path: new}", five, objects("", "a"), "1 0 5 0", []string{"../old/configmap-a.yaml", "../old/configmap-b.yaml", "../old/configmap-c.yaml", "../old/configmap-d.yaml", "../old/configmap-e.yaml"}, "4 of 5 published objects would be deleted"},
		"into one file":        {artifact + "Objects}", artifact + "Single}", five, five, "5 0 5 0", []string{"configmap-a.yaml", "configmap-b.yaml", "configmap-c.yaml", "configmap-d.yaml", "configmap-e.yaml"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			repository := gittest.New(t).Repository(t, "config")
			pipelines := t.TempDir()
			configure := func(place string) {
				text := "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web}\nspec:\n  source: {git: {url: " + repository.URL +
					", ref: {branch: main}}}\n  build: {path: apps}\n  publish: [{" + place + "}]\n"
				if err := os.WriteFile(filepath.Join(pipelines, "web.yaml"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			publish := func() (message string) {
				t.Helper()
				// It ends before the pipeline's file changes: it would publish what the difference is to tell of.
				state, _, stop := serveUntil(t, pipelines)
				defer stop()
				_, out, problems := prerig(t, "daemon", "reconcile", "--all", "--wait", "--state", state)
				return out + problems
			}
			configure(tc.from)
			repository.Commit("first", map[string]string{"apps/all.yaml": tc.before})
			if out := publish(); !strings.Contains(out, "Ready") {
				t.Fatal(out)
			}
			configure(tc.to)
			if tc.after != tc.before {
				repository.Commit("second", map[string]string{"apps/all.yaml": tc.after})
			}
			code, out, problems := prerig(t, "diff", "--pipelines", pipelines, "-o", "json")
			var c dryrun.Comparison
			if err := json.Unmarshal([]byte(out), &c); err != nil {
				t.Fatal(err, problems)
			}
			got := c.Pipelines[0].Targets[0]
			if counts := fmt.Sprintf("%d %d %d %d", got.Added, got.Modified, got.Deleted, got.Unchanged); counts != tc.want {
				t.Errorf("the difference counts %s, want %s", counts, tc.want)
			}
			if (tc.refused == "") != (got.Gate == "") || !strings.Contains(got.Gate, tc.refused) || (code == 2) != (tc.refused != "") {
				t.Errorf("exit code %d, refused: %q", code, got.Gate)
			}
			var removed []string
			for _, change := range c.Changes {
				for _, o := range change.Objects {
					if change.Kind == "deleted" {
						removed = append(removed, o.Places[0].Path)
					}
				}
			}
			if !cmp.Equal(removed, tc.removed) {
				t.Error(cmp.Diff(tc.removed, removed))
			}
			_, out, _ = prerig(t, "diff", "--pipelines", pipelines)
			if strings.HasPrefix(tc.removed[0], "../") && !strings.Contains(out, "at "+tc.removed[0]+", outside of the path that it is published to now") {
				t.Errorf("the text does not say where:\n%s", out)
			}
			// The next run does what was said.
			done := publish()
			if tc.refused != "" {
				if !strings.Contains(done, tc.refused) {
					t.Errorf("the run says %s", done)
				}
				return
			}
			if code, out, _ := prerig(t, "diff", "--pipelines", pipelines); code != 0 {
				t.Errorf("after the run: exit code %d\n%s\n%s", code, done, out)
			}
			if _, to, isBranch := strings.Cut(tc.to, "path: "); isBranch {
				var want []string
				for _, name := range tc.removed {
					want = append(want, path.Join(strings.TrimSuffix(to, "}"), name))
				}
				gone := repository.Git("diff", "--name-only", "--no-renames", "--diff-filter=D", "rendered~1", "rendered")
				if !cmp.Equal(strings.Fields(gone), want) {
					t.Error(cmp.Diff(want, strings.Fields(gone)))
				}
			}
		})
	}
}
