// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"errors"
	"io/fs"
	"path"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// KptfileName is the name of the file that makes a directory a package of kpt.
const KptfileName = "Kptfile"

// KustomizationNames returns the names that a file with a kustomization may have, in the order in which kustomize tries them.
func KustomizationNames() []string {
	return []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}
}

// BuildType returns how a request is built. For Auto, the files of the directory decide.
func BuildType(files tree.Reader, request render.Request) (v1alpha1.BuildType, error) {
	if request.Type != v1alpha1.BuildAuto && request.Type != "" {
		return request.Type, nil
	}
	for _, name := range append(KustomizationNames(), KptfileName) {
		_, err := files.Lookup(path.Join(request.Path, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", err
		case name == KptfileName:
			return v1alpha1.BuildKpt, nil
		default:
			return v1alpha1.BuildKustomize, nil
		}
	}
	return v1alpha1.BuildPlain, nil
}
