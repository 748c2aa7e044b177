// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestFetchAll mounts a repository with a submodule in another one, at the newest revisions and at given ones.
func TestFetchAll(t *testing.T) {
	server := gittest.New(t)
	library := server.Repository(t, "library")
	library.Commit("library", map[string]string{"base.yaml": "base"})
	platform := server.Repository(t, "platform")
	first := platform.Commit("first", map[string]string{"p": "one", "up": "x"})
	platform.InWork("-c", "protocol.file.allow=always", "submodule", "add", "-q", library.Bare, "vendor/library")
	platform.InWork("config", "-f", ".gitmodules", "submodule.vendor/library.url", "../library.git")
	second := platform.Commit("with a submodule", map[string]string{"p": "two"})
	apps := server.Repository(t, "apps")
	own := apps.Commit("apps", map[string]string{"deploy/a": "app"})
	p := &v1alpha1.RenderPipeline{Spec: v1alpha1.RenderPipelineSpec{
		Source:  v1alpha1.Source{Git: &v1alpha1.GitSource{URL: apps.URL}},
		Sources: []v1alpha1.MountedSource{{MountPath: "deploy/platform", Git: &v1alpha1.GitSource{URL: platform.URL, Submodules: true}}},
	}}
	shared := source.Share(source.New(source.Options{StateDir: t.TempDir()}))
	snapshot, err := source.FetchAll(ctx, shared, source.Scope{}, p.AllSources(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"deploy/a": "app", "deploy/platform/p": "two", "deploy/platform/vendor/library/base.yaml": "base"} {
		if got := read(t, snapshot, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	revisions := snapshot.Revisions()
	if len(revisions) != 2 || revisions[""] != "main@sha1:"+own || revisions["deploy/platform"] != "main@sha1:"+second || !revisions.Complete(p.AllSources()) {
		t.Errorf("the revisions are %v", revisions)
	}
	if mounted := snapshot.Mounted[0].Snapshot; snapshot.Resolved.IsZero() || mounted.Resolved.Before(snapshot.Resolved) || snapshot.URL != apps.URL || snapshot.Digest != own {
		t.Errorf("looked at %s, its source at %s; %+v", snapshot.Resolved, mounted.Resolved, snapshot)
	}
	revisions["deploy/platform"] = "main@sha1:" + first
	if snapshot, err = source.FetchAll(ctx, shared, source.Scope{}, p.AllSources(), revisions); err != nil || read(t, snapshot, "deploy/platform/p") != "one" {
		t.Errorf("at the first revision: %v", err)
	}
	p.Spec.Source.Git.URL += "-gone"
	p.Spec.Sources[0].Git.Ref.Branch = "gone"
	if _, err = source.FetchAll(ctx, shared, source.Scope{}, p.AllSources(), nil); err == nil || !strings.Contains(err.Error(), "apps.git-gone") ||
		!strings.Contains(err.Error(), "spec.sources[0], the source at deploy/platform: ") {
		t.Errorf("got %v", err)
	}
	p.Spec.Source.Git.URL = apps.URL
	p.Spec.Sources[0].Git.Ref.Branch, p.Spec.Sources[0].MountPath = "main", "deploy/a"
	if _, err = source.FetchAll(ctx, shared, source.Scope{}, p.AllSources(), nil); !errors.Is(err, tree.ErrOccupied) {
		t.Errorf("got %v", err)
	}
}
