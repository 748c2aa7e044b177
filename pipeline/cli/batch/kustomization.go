// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
)

// kustomizationIndex knows the files that kustomizations use other than as resources. A patch looks like a workload
// but is not: a sidecar in it would be merged over another one, or into the wrong object.
type kustomizationIndex struct {
	uses map[string]string // the path of the kustomization by the absolute path of what it uses
	seen map[string]bool   // directories that were looked into, and those above them
}

// kustomizationNames are the names that kustomize looks for.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// largestKustomization is the most that is read of one, in bytes. Theirs is a list of names.
const largestKustomization = 1 << 20

// kustomizationUsingFile returns the kustomization that uses the file other than as a resource; empty if none does. It
// searches for kustomizations in the directory of the file and its parents up to the root of the repository, so that
// the result does not depend on the named directory.
func (k *kustomizationIndex) kustomizationUsingFile(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	for dir := filepath.Dir(absolute); !k.seen[dir]; dir = filepath.Dir(dir) {
		k.readDirectory(dir)
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || filepath.Dir(dir) == dir {
			break
		}
	}
	return k.uses[absolute]
}

// readDirectory reads the kustomization in a directory, if any.
func (k *kustomizationIndex) readDirectory(dir string) {
	if k.seen == nil {
		k.uses, k.seen = map[string]string{}, map[string]bool{}
	}
	k.seen[dir] = true
	for _, name := range kustomizationNames {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > largestKustomization {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			continue // kustomize reports the error
		}
		k.addUses(dir, path, data)
	}
}

// addUses notes what a kustomization uses.
func (k *kustomizationIndex) addUses(dir, path string, data []byte) {
	file, err := manifest.Parse(path, data)
	if err != nil {
		return // kustomize reports the error
	}
	for _, d := range file.Docs {
		obj, err := d.Object()
		if err != nil {
			continue
		}
		for _, name := range notResources(obj) {
			used := filepath.Join(dir, name)
			if _, known := k.uses[used]; !known {
				k.uses[used] = path
			}
		}
	}
}

// notResources returns the files that a kustomization reads for another purpose than to put them out.
func notResources(k map[string]any) []string {
	var names []string
	add := func(v any) {
		if s, ok := v.(string); ok && !strings.Contains(s, "\n") { // the fields take inline text as well
			names = append(names, s)
		}
	}
	each := func(field string, do func(map[string]any)) {
		list, _ := k[field].([]any)
		for _, v := range list {
			if m, ok := v.(map[string]any); ok {
				do(m)
			}
		}
	}
	for _, field := range []string{"patchesStrategicMerge", "transformers", "generators", "validators", "configurations"} {
		list, _ := k[field].([]any)
		for _, v := range list {
			add(v)
		}
	}
	for _, field := range []string{"patches", "patchesJson6902", "replacements"} {
		each(field, func(m map[string]any) { add(m["path"]) })
	}
	for _, field := range []string{"configMapGenerator", "secretGenerator"} {
		each(field, func(m map[string]any) {
			list, _ := m["files"].([]any)
			for _, v := range list {
				if s, ok := v.(string); ok {
					add(s[strings.Index(s, "=")+1:]) // it may be written as KEY=FILE
				}
			}
		})
	}
	for _, field := range []string{"helmCharts", "helmChartInflationGenerator"} {
		each(field, func(m map[string]any) { add(m["valuesFile"]) })
	}
	return names
}
