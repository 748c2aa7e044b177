// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"

	"github.com/prerig/prerig/pipeline/source/tree"
)

func TestKustomizeFileSystem(t *testing.T) {
	builder := tree.NewBuilder(tree.Limits{})
	for name, content := range map[string]string{
		"apps/shop/kustomization.yaml": "resources: [../../base]\nnamePrefix: shop-\nconfigMapGenerator:\n- {name: c, files: [x=link]}\n",
		"apps/shop/link":               "->real", "apps/shop/real": "value",
		"base/kustomization.yaml": "resources: [cm.yaml]\n",
		"base/cm.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n",
	} {
		mode := tree.File
		if target, ok := strings.CutPrefix(content, "->"); ok {
			mode, content = tree.Link, target
		}
		if err := builder.Add(name, mode, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	fsys := kustomizeFS{r: tree.NewView(builder.Build(), tree.Limits{})}
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fsys, "/apps/shop")
	if err != nil {
		t.Fatal(err)
	}
	text, err := result.AsYaml()
	if err != nil || !strings.Contains(string(text), "name: shop-m") || !strings.Contains(string(text), "x: value") {
		t.Errorf("%s, %v", text, err)
	}
	if err := fsys.WriteFile("/x", nil); err == nil {
		t.Error("writing must be refused")
	}
	found, err := fsys.Glob("/apps/*/kust*")
	if err != nil || len(found) != 1 || found[0] != "/apps/shop/kustomization.yaml" {
		t.Errorf("glob: %v, %v", found, err)
	}
	var walked []string
	err = fsys.Walk("/apps", func(name string, info fs.FileInfo, err error) error {
		if info.IsDir() {
			name += "/"
		}
		walked = append(walked, name)
		return err
	})
	want := []string{"/apps/", "/apps/shop/", "/apps/shop/kustomization.yaml", "/apps/shop/link", "/apps/shop/real"}
	if err != nil || !slices.Equal(walked, want) {
		t.Errorf("walked %v, %v, want %v", walked, err, want)
	}
}
