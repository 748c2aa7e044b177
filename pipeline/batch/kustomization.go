// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"path/filepath"
	"strings"
)

// leavePatches finds the files that a kustomization among the files uses as something else than a resource. A patch looks
// like a workload and is not one: a sidecar in it would be put on top of another one, or on the wrong object.
func (b *Batch) leavePatches() {
	uses := map[string]string{}
	for _, f := range b.Files {
		if f.Input.Stdin() {
			continue
		}
		switch filepath.Base(f.Input.Path) {
		case "kustomization.yaml", "kustomization.yml", "Kustomization":
		default:
			continue
		}
		for _, d := range f.docs {
			obj, err := d.Object()
			if err != nil {
				continue // kustomize will tell; here it is only a document that is passed on
			}
			for _, name := range notResources(obj) {
				path := filepath.Join(filepath.Dir(f.Input.Path), name)
				if _, known := uses[path]; !known {
					uses[path] = f.Input.Path
				}
			}
		}
	}
	for _, f := range b.Files {
		if by, ok := uses[filepath.Clean(f.Input.Path)]; ok {
			f.LeftAlone = "a patch or configuration of " + by + ", not a resource"
		}
	}
}

// notResources gives the files that a kustomization reads for another purpose than to put them out.
func notResources(k map[string]any) []string {
	var names []string
	add := func(v any) {
		if s, ok := v.(string); ok && !strings.Contains(s, "\n") { // the fields take inline text as well
			names = append(names, s)
		}
	}
	for _, field := range []string{"patchesStrategicMerge", "transformers", "generators", "validators", "configurations"} {
		list, _ := k[field].([]any)
		for _, v := range list {
			add(v)
		}
	}
	for _, field := range []string{"patches", "patchesJson6902", "replacements"} {
		list, _ := k[field].([]any)
		for _, v := range list {
			if m, ok := v.(map[string]any); ok {
				add(m["path"])
			}
		}
	}
	return names
}
