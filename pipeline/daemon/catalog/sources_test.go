// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/daemon/event"
)

// TestMatchSeveralSources has events about each of a pipeline's sources find it, and no others.
func TestMatchSeveralSources(t *testing.T) {
	const sources = "{git: {url: https://git.example.com/org/app, ref: {branch: main}}}\n  sources:\n" +
		"  - {mountPath: platform, git: {url: https://git.example.com/org/platform, ref: {branch: stable}}}\n" +
		"  - {mountPath: values, oci: {url: oci://registry.example.com/org/values, ref: {tag: prod}}}\n" +
		"  - {mountPath: fixed, git: {url: https://git.example.com/org/fixed, ref: {commit: '1111111111111111111111111111111111111111'}}}"
	c, _ := open(t, map[string]string{"p.yaml": strings.Join([]string{
		pipeline("several", sources, "prerig.dev/flux-source: GitRepository/flux-system/app"),
		pipeline("one", "{git: {url: https://git.example.com/org/app, ref: {branch: main}}}"),
	}, "---\n")})
	git := func(name, ref string) event.Change {
		return event.Change{Git: &event.GitChange{URLs: []string{"https://git.example.com/org/" + name + ".git"}, Ref: "refs/heads/" + ref}}
	}
	flux := func(kind, name, revision string) event.Change {
		return event.Change{Flux: &event.FluxChange{Kind: kind, Namespace: "flux-system", Name: name, Revision: revision}}
	}
	for name, tc := range map[string]struct {
		change event.Change
		want   []string
	}{
		"its own source":             {git("app", "main"), []string{"one", "several"}},
		"a mounted one":              {git("platform", "stable"), []string{"several"}},
		"another branch of it":       {git("platform", "main"), nil},
		"a mounted artifact":         {event.Change{OCI: &event.OCIChange{Repository: "registry.example.com/org/values", Host: true, Tag: "prod"}}, []string{"several"}},
		"another tag":                {event.Change{OCI: &event.OCIChange{Repository: "registry.example.com/org/values", Host: true, Tag: "dev"}}, nil},
		"a commit that never moves":  {git("fixed", "main"), nil},
		"Flux, by name":              {flux("GitRepository", "app", "main@sha1:abc"), []string{"one", "several"}},
		"Flux, another of the kind":  {flux("GitRepository", "x", "main@sha1:abc"), []string{"one"}},
		"Flux, mounted, by branch":   {flux("GitRepository", "platform", "stable@sha1:abc"), []string{"several"}},
		"Flux, the mounted artifact": {flux("OCIRepository", "values", "prod@sha256:abc"), []string{"several"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.Match([]event.Change{tc.change}); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestMountedDirectoriesOfAPipelineInGit have no file that they could be relative to.
func TestMountedDirectoriesOfAPipelineInGit(t *testing.T) {
	for path, want := range map[string]bool{"values": true, "/srv/values": false} {
		entries := Parse("p.yaml", []byte(pipeline("p", "{git: {url: https://h/a}}\n  sources: [{mountPath: v, dir: {path: "+path+"}}]")), noRelativeDir)
		if refused := len(entries) == 1 && entries[0].Err != nil && strings.Contains(entries[0].Err.Error(), "spec.sources[0].dir.path: must be absolute"); refused != want {
			t.Errorf("%s: got %+v", path, entries)
		}
	}
}
