// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/git"
)

// TestContentsAreThoseOfOnePipeline reads what two pipelines have published to a branch: each has its own files, at
// each commit.
func TestContentsAreThoseOfOnePipeline(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	targets := newTargets(repositories{store: git.NewStore(t.TempDir(), git.DefaultLimits())})
	revisions := map[string]string{}
	publishAs := func(name, content string) {
		t.Helper()
		to := v1alpha1.Publish{Git: &v1alpha1.GitPublish{URL: repository.URL, Branch: "rendered", Path: name}}
		target, err := targets.Open(ctx, "shop", to)
		if err != nil {
			t.Fatal(err)
		}
		p := place{t: t, Interface: target}
		revisions[name+content] = p.publish(
			publish.Change{
				Pipeline: "shop/" + name,
				Files:    map[string][]byte{"a.yaml": []byte(content)},
				Tool:     "test",
			},
		).Revision
	}
	publishAs("web", "one")
	publishAs("cart", "secret")
	publishAs("web", "two")
	for _, fresh := range []bool{false, true} {
		if fresh { // nothing of the branch is in the mirror
			targets = newTargets(repositories{store: git.NewStore(t.TempDir(), git.DefaultLimits())})
		}
		for _, content := range []string{"one", "two"} {
			to := v1alpha1.Publish{Git: &v1alpha1.GitPublish{URL: repository.URL, Branch: "rendered", Path: "web"}}
			p := &v1alpha1.RenderPipeline{Metadata: v1alpha1.Metadata{Name: "web", Namespace: "shop"}}
			found, err := targets.Contents(ctx, p, to, revisions["web"+content])
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{"web/a.yaml"}; !slices.Equal(found.Names, want) {
				t.Fatalf("the files are %q", found.Names)
			}
			if text, err := found.Read("web/a.yaml"); err != nil || string(text) != content {
				t.Errorf("at %s: %q, %v", content, text, err)
			}
			for _, others := range []string{"cart/a.yaml", "web/../cart/a.yaml", ".prerig", ""} {
				if text, err := found.Read(others); !errors.Is(err, publish.ErrNoFile) {
					t.Errorf("%q: %q, %v", others, text, err)
				}
			}
		}
	}
}
