// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/render/remotebase"
)

// baseOf returns the base that a file is in.
func (k *checkedTree) baseOf(at string) render.Base {
	first, _, _ := strings.Cut(at, "/")
	return k.bases[first]
}

// mountedPath returns the path of a remote base among the files that the renderer sees, relative to the kustomization that names
// it.
func (k *checkedTree) mountedPath(file *reference.File, e reference.Entry) (string, error) {
	parsed, err := remotebase.Parse(e.Value)
	if err == nil {
		_, err = parsed.Commit()
	}
	if err != nil {
		return "", file.RefuseRemote(e, fmt.Errorf("%w; then have the pipeline allow its repository (spec.build.remoteBases), or else copy it into the source", err))
	}
	base, ok := k.bases[render.NewBase(file.In.Name, e.Value).Name]
	if !ok {
		return "", file.RefuseRemote(e, errors.New("a render uses no network: "+reference.AllowHint))
	}
	return relativeRootPath(path.Dir(file.Path)) + path.Join(base.Name, parsed.Directory), nil
}

// relativeRootPath returns the way from a directory up to the root.
func relativeRootPath(dir string) string {
	if dir == "." {
		return ""
	}
	return strings.Repeat("../", strings.Count(dir, "/")+1)
}
