// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
)

func TestStale(t *testing.T) {
	at := func(url, branch, path string) v1alpha1.Publish {
		return v1alpha1.Publish{Git: &v1alpha1.GitPublish{URL: url, Branch: branch, Path: path}}
	}
	const url, other = "https://git.example.com/config.git", "https://git.example.com/other.git"
	proposed := at(url, "rendered", "a")
	proposed.Git.Propose = &v1alpha1.Propose{}
	artifact := v1alpha1.Publish{OCI: &v1alpha1.OCIPublish{URL: "oci://registry.example.com/a"}}
	for name, tc := range map[string]struct {
		known      status.Registration
		now, want  []v1alpha1.Publish
		registered bool
	}{
		"nothing known": {now: []v1alpha1.Publish{at(url, "rendered", "a")}},
		"another path":  {known: status.Registration{Publish: []v1alpha1.Publish{at(url, "rendered", "a")}}, now: []v1alpha1.Publish{at(url, "rendered", "b")}, registered: true},
		"the URL written otherwise": {known: status.Registration{Publish: []v1alpha1.Publish{at(url, "rendered", "a")}},
			now: []v1alpha1.Publish{at("https://git.example.com/config", "rendered", "a")}, registered: true},
		"another branch": {known: status.Registration{Publish: []v1alpha1.Publish{at(url, "rendered", "a")}},
			now: []v1alpha1.Publish{at(url, "elsewhere", "a")}, want: []v1alpha1.Publish{at(url, "rendered", "a")}},
		"another repository": {known: status.Registration{Publish: []v1alpha1.Publish{at(url, "rendered", "a")}},
			now: []v1alpha1.Publish{at(other, "rendered", "a")}, want: []v1alpha1.Publish{at(url, "rendered", "a")}},
		"proposed now": {known: status.Registration{Publish: []v1alpha1.Publish{at(url, "rendered", "a")}},
			now: []v1alpha1.Publish{proposed}, want: []v1alpha1.Publish{at(url, "rendered", "a")}},
		"an artifact stays": {known: status.Registration{Publish: []v1alpha1.Publish{artifact}}, registered: true},
		"not dealt with yet, and left twice": {
			known: status.Registration{Publish: []v1alpha1.Publish{at(url, "new", "a")}, Left: []v1alpha1.Publish{at(url, "old", "a"), at(url, "old", "b")}},
			now:   []v1alpha1.Publish{at(url, "new", "a")}, want: []v1alpha1.Publish{at(url, "old", "a")}, registered: true},
		"back where it was": {known: status.Registration{Publish: []v1alpha1.Publish{at(url, "new", "a")}, Left: []v1alpha1.Publish{at(url, "old", "a")}},
			now: []v1alpha1.Publish{at(url, "old", "a")}, want: []v1alpha1.Publish{at(url, "new", "a")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, publish.Stale(tc.known, tc.now)); diff != "" {
				t.Error(diff)
			}
			p := &v1alpha1.RenderPipeline{Spec: v1alpha1.RenderPipelineSpec{Publish: tc.now}}
			if got := isRegistered(tc.known, p); got != tc.registered {
				t.Errorf("registered: %v", got)
			}
		})
	}
}
