// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// largestApplier is the most that is read of a file to look for appliers, in bytes: others are lists of manifests.
const largestApplier = 64 << 10

// The groups and kinds of the objects by which Flux and Argo CD apply a directory.
const (
	fluxGroup = "kustomize.toolkit.fluxcd.io"
	argoGroup = "argoproj.io"

	fluxKustomization = "Flux Kustomization"
	argoApplication   = "Argo CD Application"
)

// addAppliers adds the objects of a file that have Flux or Argo CD patch a directory of the repository. Both read paths
// from the root of a repository, which is taken to be this one if it has the directory.
func (t *tree) addAppliers(path string, entry fs.DirEntry) {
	info, err := entry.Info()
	if err != nil || !info.Mode().IsRegular() || info.Size() > largestApplier {
		return
	}
	data, err := os.ReadFile(path)
	content := string(data)
	// Most files are others, and reading them as YAML would take longer than the injection.
	if err != nil || !strings.Contains(content, fluxGroup) && !strings.Contains(content, argoGroup) {
		return
	}
	for _, one := range parseText(t.display(path), content) {
		apiVersion, _ := one.obj["apiVersion"].(string)
		group, _, _ := strings.Cut(apiVersion, "/")
		spec, _ := one.obj["spec"].(map[string]any)
		if spec == nil {
			continue
		}
		switch {
		case group == fluxGroup && one.obj["kind"] == "Kustomization":
			fields := maps.Clone(spec)
			fields["namespace"] = spec["targetNamespace"]
			t.addApplier(fluxKustomization, one, spec["path"], fields, "spec")
		case group == argoGroup && one.obj["kind"] == "Application":
			source, _ := spec["source"].(map[string]any)
			t.addApplier(argoApplication, one, source["path"], source["kustomize"], "spec", "source", "kustomize")
			sources, _ := spec["sources"].([]any)
			for i, item := range sources {
				source, _ := item.(map[string]any)
				t.addApplier(argoApplication, one, source["path"], source["kustomize"], "spec", "sources", i,
					"kustomize")
			}
		}
	}
}

// addApplier adds one that applies a path. fields are those that a kustomization has as well, and at is their place.
func (t *tree) addApplier(kind string, from text, path, fields any, at ...any) {
	name, ok := path.(string)
	own, _ := fields.(map[string]any)
	if !ok || own["patches"] == nil {
		return
	}
	from.obj, from.at = own, at
	dir := filepath.Join(t.root, filepath.FromSlash(name))
	t.appliers = append(t.appliers, &kustomization{text: from, dir: dir, name: t.display(dir), applier: kind})
}

// appliedResources returns the wanted files that an applier builds from. Of a directory without a kustomization, Flux
// applies the files and the kustomizations below it.
func (t *tree) appliedResources(a *kustomization, wanted map[string]bool) (out []resource) {
	through := []*kustomization{a}
	base := t.found[a.dir]
	switch {
	case base != nil:
		return t.resources(base, wanted, through)
	case a.applier != fluxKustomization:
		return nil
	}
	for _, k := range t.inOrder() {
		if isBelow(a.dir, k.dir) {
			out = append(out, t.resources(k, wanted, through)...)
		}
	}
	for file := range wanted {
		if isBelow(a.dir, file) && t.found[filepath.Dir(file)] == nil {
			out = append(out, resource{file: file, by: through})
		}
	}
	return out
}

// isBelow reports whether a path is below a directory.
func isBelow(dir, path string) bool {
	below, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(below)
}
