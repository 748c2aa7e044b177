// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"

	"sigs.k8s.io/kustomize/api/resource"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/remotebase"
)

// restoreOrigins puts repositories back into the notes on where an object is from and which files changed it, which kustomize
// writes when a kustomization asks for them (buildMetadata): it has seen directories where it would have made clones.
func (k *checkedTree) restoreOrigins(object *resource.Resource) error {
	if len(k.bases) == 0 {
		return nil
	}
	origin, err := object.GetOrigin()
	if err != nil {
		return err
	}
	if origin != nil && k.locateOrigin(origin) {
		if err := object.SetOrigin(origin); err != nil {
			return err
		}
	}
	steps, err := object.GetTransformations()
	if err != nil {
		return err
	}
	changed := false
	for _, step := range steps {
		changed = k.locateOrigin(step) || changed
	}
	if !changed {
		return nil
	}
	if err := object.ClearTransformations(); err != nil {
		return err
	}
	for _, step := range steps {
		if err := object.AddTransformation(step); err != nil {
			return err
		}
	}
	return nil
}

// locateOrigin writes the repository into the origin of what comes from a base, and reports whether it did.
func (k *checkedTree) locateOrigin(origin *resource.Origin) bool {
	changed := false
	for _, at := range []*string{&origin.Path, &origin.ConfiguredIn} {
		i := strings.Index(*at, render.BasePrefix)
		if i < 0 {
			continue
		}
		name, rest, _ := strings.Cut((*at)[i:], "/")
		parsed, err := remotebase.Parse(k.bases[name].URL)
		if err != nil {
			continue
		}
		if parsed.Directory == "." {
			// kustomize includes the made-up name of its clone in the path of files at the root of a repository.
			rest = strings.TrimSuffix(parsed.OriginPath()+"/"+rest, "/")
		}
		*at, origin.Repo, origin.Ref = rest, parsed.Repository, parsed.Ref
		changed = true
	}
	return changed
}
