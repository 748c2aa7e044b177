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

// mountedPath returns the path of a remote base or file among the files that kustomize sees, relative to the kustomization that names
// it.
func (k *checkedTree) mountedPath(file *reference.File, e reference.Entry) (string, error) {
	base, ok := k.bases[render.NewBase(file.In.Name, e.Value).Name]
	if remotebase.IsFile(e.Value) && ok {
		return k.remoteFile(path.Dir(file.Path), base)
	}
	parsed, err := remotebase.Parse(e.Value)
	switch {
	case !ok:
		return "", file.RefuseRemote(e, errors.New("a render uses no network: "+reference.AllowHint))
	case err != nil:
		return "", file.RefuseRemote(e, err)
	}
	return relativeRootPath(path.Dir(file.Path)) + path.Join(base.Name, parsed.Directory), nil
}

// remoteFile puts a file of HTTP beside the kustomization that names it, so that the load restrictor permits it, as kustomize does.
func (k *checkedTree) remoteFile(dir string, base render.Base) (string, error) {
	content, err := k.Reader.Read(path.Join(base.Name, render.BaseFile))
	if err != nil {
		return "", err
	}
	if err := checkAliases(content); err != nil {
		return "", fmt.Errorf("%s: %w", base, err)
	}
	name := k.virtualName(render.BaseFile)
	k.virtual[render.CleanPath(path.Join(dir, name))], k.names[name] = content, base.String()
	return name, nil
}

// relativeRootPath returns the way from a directory up to the root.
func relativeRootPath(dir string) string {
	if dir == "." {
		return ""
	}
	return strings.Repeat("../", strings.Count(dir, "/")+1)
}
