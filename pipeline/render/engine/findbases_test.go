// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/render/remotebase"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/giturl"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// remotes is a server with two repositories of bases.
type remotes struct {
	server            *gittest.Server
	library, platform *gittest.Repository
	old, commit, top  string // of library, twice, and of platform
	outer             string // of outer, which has a submodule with a submodule
	fetcher           *source.Fetcher
	fetched           int
	allowed           []string
}

func newRemotes(t *testing.T) *remotes {
	t.Helper()
	r := &remotes{server: gittest.New(t), allowed: []string{"library.git", "platform", "outer", "inner", "core"}, fetcher: source.New(source.Options{StateDir: t.TempDir()})}
	r.library = r.server.Repository(t, "library")
	files := map[string]string{
		"kustomization.yaml":               "resources: [base]\n",
		"base/kustomization.yaml":          "resources: [web.yaml]\n" + settings + "- {name: file, files: [app.conf]}\n",
		"base/web.yaml":                    deployment,
		"base/app.conf":                    "version: old\n",
		"overlays/prod/kustomization.yaml": "resources: [../../base]\nnamePrefix: prod-\n",
		"component/kustomization.yaml":     "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {by: component}\n",
		"mesh/kustomization.yaml":          "resources: [mesh.yaml]\n",
		"mesh/mesh.yaml":                   extra,
		"injected/kustomization.yaml":      "resources: [../base]\ntransformers: [../mesh]\n",
		"outside/kustomization.yaml":       "resources: [../../../base]\n",
		"outside/sub/kustomization.yaml":   "resources: [../../../../app]\n",
		"notCloned/kustomization.yaml":     "resources: [../base]\n",
	}
	r.old = r.library.Commit("first", files)
	if err := os.Symlink("overlays/prod", filepath.Join(r.library.Work, "link")); err != nil {
		t.Fatal(err)
	}
	r.commit = r.library.Commit("second", map[string]string{"base/app.conf": "version: new\n"})
	r.platform = r.server.Repository(t, "platform")
	r.top = r.platform.Commit("first", map[string]string{
		"app/kustomization.yaml":      fmt.Sprintf("resources: [\"%s//overlays/prod?ref=%s\"]\nnameSuffix: -app\n", r.library.URL, r.commit),
		"app/deep/kustomization.yaml": fmt.Sprintf("resources: [\"%s//base?ref=%s\"]\nnameSuffix: -deep\n", r.library.URL, r.old),
	})
	// A directory below that names one above it by its URL is no cycle, as each is in a clone of its own.
	r.top = r.platform.Commit("second", map[string]string{
		"app/below/kustomization.yaml": fmt.Sprintf("resources: [\"%s//app?ref=%s\"]\nnamePrefix: below-\n", r.platform.URL, r.top),
	})
	core, inner, outer := r.server.Repository(t, "core"), r.server.Repository(t, "inner"), r.server.Repository(t, "outer")
	core.Commit("first", map[string]string{"kustomization.yaml": "resources: [web.yaml]\n", "web.yaml": deployment})
	inner.Commit("first", map[string]string{"base/kustomization.yaml": "resources: [../core]\nnamePrefix: inner-\n"})
	submodule(inner, core, "core", "../core.git")
	outer.Commit("first", map[string]string{"app/kustomization.yaml": "resources: [../vendor/inner/base]\nnamePrefix: outer-\n"})
	r.outer = submodule(outer, inner, "vendor/inner", inner.URL)
	return r
}

func submodule(r, module *gittest.Repository, at, url string) string {
	r.InWork("-c", "protocol.file.allow=always", "submodule", "add", "-q", module.Bare, at)
	r.InWork("config", "-f", ".gitmodules", "submodule."+at+".url", url)
	return r.Commit("with "+at, nil)
}

// fill puts what changes from one run of the tests to the next into a text.
func (r *remotes) fill(text string) string {
	return strings.NewReplacer("LIBRARY", r.library.URL, "PLATFORM", r.platform.URL, "OLD", r.old, "COMMIT", r.commit, "TOP", r.top, "OUTER", r.outer, "SERVER", r.server.URL).Replace(text)
}

// fetch allows some repositories.
func (r *remotes) fetch(ctx context.Context, _ string, base *remotebase.Base) (fetched reference.Fetched, err error) {
	if base == nil {
		return fetched, errors.New("remote files are not fetched here")
	}
	url, ok := r.allow(&base.Address)
	if !ok {
		return fetched, reference.ErrNotAllowed
	}
	if fetched.Locked, err = base.Commit(); err != nil {
		return fetched, err
	}
	r.fetched++
	if !base.Submodules {
		fetched.Files, err = r.fetcher.Files(ctx, "", url, nil, fetched.Locked)
		return fetched, err
	}
	fetched.Files, err = r.fetcher.FilesWithSubmodules(ctx, "", url, nil, fetched.Locked, func(url string) (string, *meta.LocalObjectReference, bool) {
		repository, err := giturl.ParseAddress(url)
		if err != nil {
			return "", nil, false
		}
		url, ok := r.allow(&repository)
		return url, nil, ok
	})
	return fetched, err
}

func (r *remotes) allow(base *giturl.Address) (string, bool) {
	var patterns []giturl.Pattern
	for _, name := range r.allowed {
		pattern, err := giturl.ParsePattern(r.server.URL + "/" + name)
		if err != nil {
			return "", false
		}
		patterns = append(patterns, pattern)
	}
	i, url := giturl.Best(patterns, base)
	return url, i >= 0
}

func (r *remotes) render(t *testing.T, files map[string]string) (*render.Response, tree.Record, error) {
	t.Helper()
	request := request("app")
	view := tree.NewView(build(t, files), request.Limits.Read)
	found, reader, err := reference.FindBases(ctx, view, request, r.fetch)
	if err != nil {
		return nil, view.Record(), err
	}
	request.Bases = found
	response, err := pool(t, render.Options{}).Render(ctx, reader, request)
	return response, view.Record(), err
}

// withBases are sources with remote bases in all forms and places.
var withBases = map[string]map[string]string{
	"two slashes":       {"app/kustomization.yaml": "resources: [\"LIBRARY//base?ref=COMMIT\"]\nnamePrefix: x-\n"},
	"path after .git":   {"app/kustomization.yaml": "resources:\n- LIBRARY/base?ref=OLD # pinned\n"},
	"root":              {"app/kustomization.yaml": "resources: [\"LIBRARY?ref=COMMIT\"]\n"},
	"git:: in front":    {"app/kustomization.yaml": "resources: [\"git::LIBRARY//base?ref=COMMIT\"]\n"},
	"other queries":     {"app/kustomization.yaml": "resources: [\"LIBRARY//base?timeout=90s&submodules=false&version=COMMIT\"]\n"},
	"upper case":        {"app/kustomization.yaml": "Resources: [\"LIBRARY//base?ref=COMMIT\"]\n"},
	"block and quotes":  {"app/kustomization.yaml": "resources:\n- >-\n  LIBRARY//base?ref=COMMIT\n- 'PLATFORM//app?ref=TOP'\n"},
	"legacy bases":      {"app/kustomization.yaml": "bases: [\"LIBRARY//base?ref=COMMIT\"]\n"},
	"below, and inside": {"app/kustomization.yaml": "resources: [\"LIBRARY//overlays/prod?ref=COMMIT\"]\n"},
	"link inside":       {"app/kustomization.yaml": "resources: [\"LIBRARY//link?ref=COMMIT\"]\n"},
	"component": {"app/kustomization.yaml": "resources: [cm.yaml]\ncomponents: [\"LIBRARY//component?ref=COMMIT\"]\n",
		"app/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\n"},
	"in a base of a base": {"app/kustomization.yaml": "resources: [../mid]\n", "mid/kustomization.yaml": "resources: [../base]\nnamePrefix: mid-\n",
		"base/kustomization.yaml": "resources: [\"LIBRARY//base?ref=COMMIT\"]\npatches:\n- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: web}\n    spec: {replicas: 7}\n"},
	"one remote on another": {"app/kustomization.yaml": "resources: [\"PLATFORM//app?ref=TOP\"]\n"},
	"two commits of one":    {"app/kustomization.yaml": "resources: [\"PLATFORM//app?ref=TOP\", \"PLATFORM//app/deep?ref=TOP\"]\n"},
	"above itself by URL":   {"app/kustomization.yaml": "resources: [\"PLATFORM//app/below?ref=TOP\"]\n"},
	"the same in two layers": {"app/kustomization.yaml": "resources: [../a, ../b]\n", "a/kustomization.yaml": "namePrefix: a-\nresources: [\"LIBRARY//base?ref=COMMIT\"]\n",
		"b/kustomization.yaml": "namePrefix: b-\nresources: [\"LIBRARY//base?ref=COMMIT\"]\n"},
	"function in a remote base": {"app/kustomization.yaml": "resources: [\"LIBRARY//injected?ref=COMMIT\"]\nnameSuffix: -s\n"},
	"remote policy":             {"app/kustomization.yaml": "resources: [web.yaml]\ntransformers: [\"LIBRARY//mesh?ref=COMMIT\"]\n" + settings, "app/web.yaml": deployment},
	"where it is from": {"app/kustomization.yaml": "resources: [\"LIBRARY//overlays/prod?ref=COMMIT\", ../other]\nbuildMetadata: [originAnnotations, transformerAnnotations]\nnamePrefix: p-\n",
		"other/kustomization.yaml": "resources: [\"PLATFORM//app/deep?ref=TOP\"]\n"},
	"where the root is from":  {"app/kustomization.yaml": "resources: [\"LIBRARY?ref=COMMIT\"]\nbuildMetadata: [originAnnotations, transformerAnnotations]\n"},
	"a name of kustomize's":   {"app/kustomization.yaml": "resources: [\"LIBRARY//notCloned?ref=COMMIT\"]\nbuildMetadata: [originAnnotations]\n"},
	"submodules":              {"app/kustomization.yaml": "resources: [\"SERVER/outer.git//app?ref=OUTER\"]\n"},
	"kustomization by a link": {"app/kustomization.yaml": "->real.yaml", "app/real.yaml": "resources: [\"LIBRARY//base?ref=COMMIT\"]\ntransformers: [mesh.yaml]\n", "app/mesh.yaml": extra},
}

func TestRemoteBasesAsKustomize(t *testing.T) {
	r := newRemotes(t)
	for name, files := range withBases {
		t.Run(name, func(t *testing.T) {
			filled := map[string]string{}
			for path, text := range files {
				filled[path] = r.fill(text)
			}
			want, err := realKustomize(t, filled, "app")
			if err != nil {
				t.Fatal(err)
			}
			got, record, err := r.render(t, filled)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, text(got)); diff != "" {
				t.Error(diff)
			}
			if want == "" || strings.Contains(text(got), ".prerig-") {
				t.Errorf("got %s", text(got))
			}
			for _, access := range record {
				if strings.Contains(access.Path, ".prerig-base") {
					t.Errorf("the record of the source has %v", access)
				}
			}
			for _, decision := range got.Decisions {
				if strings.Contains(decision.Layer, ".prerig-") {
					t.Errorf("a decision has the layer %s", decision.Layer)
				}
			}
			// The commit is in the file that names it, and that is in the record.
			for path, text := range filled {
				if strings.HasSuffix(path, "kustomization.yaml") && strings.Contains(text, r.commit) {
					changed := map[string]string{}
					for name, content := range filled {
						changed[name] = content
					}
					changed[path] = strings.ReplaceAll(text, r.commit, r.old)
					if _, affected := record.Affected(build(t, changed)); !affected {
						t.Errorf("another commit in %s is not noticed", path)
					}
				}
			}
			if _, affected := record.Affected(build(t, filled)); affected {
				t.Error("the same source is affected")
			}
		})
	}
}

// refusedBases are refused with the line, and what to do.
var refusedBases = map[string]struct {
	files map[string]string
	want  []string
}{
	"branch": {map[string]string{"app/kustomization.yaml": "resources:\n- LIBRARY//base?ref=main\n"},
		[]string{"app/kustomization.yaml:2: resources", "not pinned to a commit", `"main"`}},
	"no ref":              {map[string]string{"app/kustomization.yaml": "resources: [LIBRARY//base]\n"}, []string{"kustomization.yaml:1", "it has no ref"}},
	"short commit":        {map[string]string{"app/kustomization.yaml": "resources: [\"LIBRARY//base?ref=abcdef0\"]\n"}, []string{"short commit"}},
	"not allowed":         {map[string]string{"app/kustomization.yaml": "\ncomponents: [\"SERVER/other.git?ref=COMMIT\"]\n"}, []string{"kustomization.yaml:2: components", "not allowed", "spec.build.remoteBases"}},
	"not allowed, nested": {map[string]string{"app/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [\"https://git.example.com/org/repo?ref=COMMIT\"]\n"}, []string{"b/kustomization.yaml:1", "not allowed"}},
	"file":                {map[string]string{"app/kustomization.yaml": "resources:\n- SERVER/raw/COMMIT/web.yaml\n"}, []string{"kustomization.yaml:2", "remote files are not fetched here"}},
	"patch":               {map[string]string{"app/kustomization.yaml": "patches: [{path: \"LIBRARY//base?ref=COMMIT\"}]\n"}, []string{"kustomization.yaml:1", "and a directory of a Git repository under resources"}},
	"out of a repository": {map[string]string{"app/kustomization.yaml": "resources: [\"LIBRARY//outside?ref=COMMIT\"]\n"}, []string{"library.git@COMMIT/outside/kustomization.yaml:1", "leads out of the repository"}},
	"into the source":     {map[string]string{"app/kustomization.yaml": "resources: [\"LIBRARY//outside/sub?ref=COMMIT\"]\n"}, []string{"outside/sub/kustomization.yaml:1", "leads out of the repository"}},
	"out of the source":   {map[string]string{"app/kustomization.yaml": "resources: [../../app2]\n", "app2/kustomization.yaml": "namePrefix: x\n"}, []string{"kustomization.yaml:1", "leads out of the source"}},
	"no such directory":   {map[string]string{"app/kustomization.yaml": "resources: [\"LIBRARY//none?ref=COMMIT\"]\n"}, []string{"library.git@COMMIT/none"}},
	"alias":               {map[string]string{"app/kustomization.yaml": "commonAnnotations: {from: &u \"LIBRARY//base?ref=COMMIT\"}\nresources: [*u]\n"}, []string{"anchor or an alias"}},
	"alias of a list":     {map[string]string{"app/kustomization.yaml": "components: &l [\"LIBRARY//base?ref=COMMIT\"]\nresources: *l\n"}, []string{"anchor or an alias"}},
	"merge key":           {map[string]string{"app/kustomization.yaml": "<<: {resources: [\"LIBRARY//base?ref=COMMIT\"]}\n"}, []string{"cannot be followed"}},
	"by a name of ours":   {map[string]string{"app/kustomization.yaml": "resources: [../.prerig-base-0123456789/base]\n"}, []string{"not a name that a source can use"}},
	"no such commit":      {map[string]string{"app/kustomization.yaml": "resources: [\"LIBRARY//base?ref=0123456789012345678901234567890123456789\"]\n"}, []string{"kustomization.yaml:1", "fetching the remote base"}},
	"submodule left out":  {map[string]string{"app/kustomization.yaml": "resources: [\"SERVER/outer.git//app?ref=OUTER&submodules=false\"]\n"}, []string{"outer.git@OUTER/vendor/inner", "inside a Git submodule"}},
	"password":            {map[string]string{"app/kustomization.yaml": "resources: [\"https://me:s3cr3t@git.example.com/org/repo?ref=COMMIT\"]\n"}, []string{"credentials belong"}},
}

func TestRemoteBasesRefused(t *testing.T) {
	r := newRemotes(t)
	for name, tc := range refusedBases {
		t.Run(name, func(t *testing.T) {
			filled := map[string]string{}
			for path, text := range tc.files {
				filled[path] = r.fill(text)
			}
			response, record, err := r.render(t, filled)
			if err == nil {
				t.Fatalf("it was rendered: %s", text(response))
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), r.fill(want)) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), ".prerig-base-") && name != "by a name of ours" {
				t.Errorf("got %v", err)
			}
			if _, affected := record.Affected(build(t, map[string]string{"app/kustomization.yaml": "namePrefix: mended\n"})); !affected {
				t.Error("nothing that mends it is noticed")
			}
		})
	}
}

// A renderer that meets what was not fetched refuses it, whatever the reason.
func TestRemoteBaseThatWasNotFetched(t *testing.T) {
	r := newRemotes(t)
	files := map[string]string{"app/kustomization.yaml": r.fill("resources:\n- LIBRARY//base?ref=COMMIT\n")}
	_, _, err := renderFiles(t, files, request("app"))
	if err == nil || !strings.Contains(err.Error(), "app/kustomization.yaml:2: resources") || !strings.Contains(err.Error(), "spec.build.remoteBases") {
		t.Errorf("got %v", err)
	}
	if r.fetched > 0 {
		t.Error("it was fetched")
	}
}

// A submodule of a base is fetched only where its repository is allowed, and missed only where it is needed.
func TestSubmoduleThatIsNotAllowed(t *testing.T) {
	r := newRemotes(t)
	r.allowed = []string{"outer", "inner"}
	_, _, err := r.render(t, map[string]string{"app/kustomization.yaml": r.fill("resources: [\"SERVER/outer.git//app?ref=OUTER\"]\n")})
	if err == nil || !strings.Contains(err.Error(), r.fill("outer.git@OUTER/vendor/inner/core")) || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("got %v", err)
	}
}

// What a kustomization makes the finder do is bounded.
func TestFindBasesIsBounded(t *testing.T) {
	limits := render.DefaultLimits()
	find := func(files map[string]string, fetch reference.Fetch) error {
		_, _, err := reference.FindBases(ctx, tree.NewView(build(t, files), limits.Read), request("app"), fetch)
		return err
	}
	var many strings.Builder
	many.WriteString("resources:\n")
	commit := strings.Repeat("a", 40)
	for i := range 300 {
		fmt.Fprintf(&many, "- https://git.example.com/org/r%d?ref=%s\n", i, commit)
	}
	empty := build(t, map[string]string{"kustomization.yaml": "namePrefix: x\n"})
	err := find(map[string]string{"app/kustomization.yaml": many.String()}, func(context.Context, string, *remotebase.Base) (reference.Fetched, error) {
		return reference.Fetched{Files: empty}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "number of remote bases is over the limit of 200") {
		t.Errorf("got %v", err)
	}
	// A server that gives something else than the commit it was asked for could go on for ever.
	n := 0
	err = find(map[string]string{"app/kustomization.yaml": "resources: [\"https://git.example.com/org/r?ref=" + commit + "\"]\n"}, func(context.Context, string, *remotebase.Base) (reference.Fetched, error) {
		n++
		files := map[string]string{"kustomization.yaml": fmt.Sprintf("resources: [\"https://git.example.com/org/r%d?ref=%s\"]\n", n, commit)}
		return reference.Fetched{Files: build(t, files)}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "one below the other is over the limit of 10") {
		t.Errorf("got %v", err)
	}
	none := func(context.Context, string, *remotebase.Base) (reference.Fetched, error) {
		return reference.Fetched{}, errors.New("nothing is to be fetched")
	}
	for want, text := range map[string]string{
		"size of app/kustomization.yaml": "resources: [x.yaml]\n# " + strings.Repeat("x", 1<<20),
		"excessive aliasing":             "x: &x [" + strings.Repeat("a,", 1000) + "]\n" + strings.Repeat("resources: *x\n", 1000),
	} {
		if err := find(map[string]string{"app/kustomization.yaml": text}, none); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	cycle := map[string]string{"app/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../app, ../b, .]\n"}
	if err := find(cycle, func(context.Context, string, *remotebase.Base) (reference.Fetched, error) {
		return reference.Fetched{}, errors.New("nothing is to be fetched")
	}); err != nil {
		t.Errorf("got %v", err)
	}
}
