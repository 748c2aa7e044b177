// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// TestArtifactNamesAllSources has a result of three sources: its artifact names each, and has the date of the newest.
func TestArtifactNamesAllSources(t *testing.T) {
	_, r := startRegistry(t)
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	snapshot := &source.Snapshot{URL: "https://git.example.com/apps", Revision: "main@sha1:abc", Date: day(2), Commit: &git.Commit{Subject: "of the apps"}, Mounted: []source.Mounted{
		{MountPath: "platform", Snapshot: &source.Snapshot{URL: "https://git.example.com/platform", Revision: "stable@sha1:def", Date: day(3), Commit: &git.Commit{Subject: "of the platform", Author: "Ada"}}},
		{MountPath: "deploy/values", Snapshot: &source.Snapshot{URL: "oci://registry.example.com/values", Revision: "prod@sha256:123", Date: day(1)}},
	}}
	c := change(t, "apps/shop", "shop", configMap("a", "1"))
	c.Origin = publish.OriginOf(snapshot)
	if c.Origin.Subject != "of the platform" || c.Origin.Author != "Ada" || c.Origin.Revision != "main@sha1:abc" {
		t.Errorf("the origin is %+v", c.Origin)
	}
	if _, err := (&publish.Artifact{Registry: r, Tags: []string{"latest"}}).Publish(ctx, c); err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(r.Repository.Tag("latest"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		oci.AnnotationSource: "https://git.example.com/apps", oci.AnnotationRevision: "main@sha1:abc", oci.AnnotationCreated: "2026-01-03T00:00:00Z",
		"prerig.dev/mounted-sources": "platform https://git.example.com/platform stable@sha1:def\ndeploy/values oci://registry.example.com/values prod@sha256:123",
	} {
		if got := manifest.Annotations[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
