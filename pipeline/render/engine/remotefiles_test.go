// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/render/remotebase"
	"github.com/prerig/prerig/pipeline/source/chart"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// fetchNow fetches what servers have now, as kustomize does.
func (r *remotes) fetchNow(ctx context.Context, entry string, base *remotebase.Base) (fetched reference.Fetched, err error) {
	if base != nil {
		url, _ := r.allow(&base.Address)
		if fetched.Locked, _, err = r.fetcher.Resolve(ctx, "", url, nil, cmp.Or(base.Ref, "HEAD")); err == nil {
			fetched.Files, err = r.fetcher.Files(ctx, "", url, nil, fetched.Locked)
		}
		return fetched, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, entry, nil)
	if err != nil {
		return fetched, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fetched, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return fetched, err
	}
	builder := tree.NewBuilder(tree.Limits{})
	err = builder.Add(render.BaseFile, tree.File, content)
	return reference.Fetched{Files: builder.Build(), Locked: chart.DigestOf(content)}, err
}

// Bases by a branch, a tag or nothing, and files over HTTP, are built as kustomize builds them.
func TestLockedRemotesAsKustomize(t *testing.T) {
	r := newRemotes(t)
	r.library.InWork("tag", "v1", r.old)
	r.library.InWork("push", "-q", "origin", "v1")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: remote}\ndata: {a: b}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: remote}\n"
		if strings.HasSuffix(request.URL.Path, "patch.yaml") {
			text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {c: d}\n"
		}
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	own := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {a: b}\n"
	for name, files := range map[string]map[string]string{
		"branch":    {"app/kustomization.yaml": "resources: [\"LIBRARY//base?ref=main\"]\nnamePrefix: x-\n"},
		"tag":       {"app/kustomization.yaml": "resources: [\"LIBRARY//base?ref=v1\"]\nbuildMetadata: [originAnnotations]\n"},
		"no ref":    {"app/kustomization.yaml": "resources: [LIBRARY//base]\nbuildMetadata: [originAnnotations]\n"},
		"file":      {"app/kustomization.yaml": "resources: [FILES/x.yaml, own.yaml]\nnameSuffix: -s\n", "app/own.yaml": own},
		"patches":   {"app/kustomization.yaml": "resources: [own.yaml]\npatches: [{path: \"FILES/patch.yaml?raw=true\"}]\n", "app/own.yaml": own},
		"below":     {"app/kustomization.yaml": "resources: [../other]\nnamespace: shop\n", "other/kustomization.yaml": "resources: [FILES/x.yaml]\ncommonLabels: {a: b}\n"},
		"one twice": {"app/kustomization.yaml": "resources: [one, two]\n", "app/one/kustomization.yaml": "resources: [FILES/x.yaml]\nnamePrefix: a-\n", "app/two/kustomization.yaml": "resources: [FILES/x.yaml]\nnamePrefix: b-\n"},
	} {
		t.Run(name, func(t *testing.T) {
			filled := map[string]string{}
			for path, text := range files {
				filled[path] = strings.ReplaceAll(r.fill(text), "FILES", server.URL)
			}
			want, err := realKustomize(t, filled, "app")
			if err != nil {
				t.Fatal(err)
			}
			request := request("app")
			view := tree.NewView(build(t, filled), request.Limits.Read)
			found, reader, err := reference.FindBases(ctx, view, request, r.fetchNow)
			if err != nil {
				t.Fatal(err)
			}
			request.Bases = found
			got, err := pool(t, render.Options{}).Render(ctx, reader, request)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(want, text(got)); diff != "" || want == "" {
				t.Errorf("(-kustomize +got):\n%s", diff)
			}
		})
	}
}

// A remote base cannot read files of the source by its generators where the load restrictor is off.
func TestRemoteBaseDoesNotReadTheSource(t *testing.T) {
	r := newRemotes(t)
	r.library.Commit("generators", map[string]string{
		"thief/kustomization.yaml": "generators: [generator.yaml]\n",
		"thief/generator.yaml":     "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: loot}\nfiles: [../../app/secret.txt]\n",
	})
	request := request("app")
	request.LoadRestrictor = "LoadRestrictionsNone"
	view := tree.NewView(build(t, map[string]string{
		"app/kustomization.yaml": r.fill("resources: [\"LIBRARY//thief?ref=main\"]\n"), "app/secret.txt": "s3cr3t\n",
	}), request.Limits.Read)
	found, reader, err := reference.FindBases(ctx, view, request, r.fetchNow)
	if err != nil {
		t.Fatal(err)
	}
	request.Bases = found
	if got, err := pool(t, render.Options{}).Render(ctx, reader, request); err == nil || !strings.Contains(err.Error(), "generators, transformers and validators of a remote base are not run") {
		t.Errorf("got %v, %v", got, err)
	}
}
