// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/prerig/prerig/pipeline/render/remotebase"
)

// Base is a remote base whose repository was fetched beforehand. The renderer sees its files in a directory of the root
// that no list shows.
//
// kustomize makes a clone of its own for every mention of a base, and a base that is named below another one is not the
// same to it. So there is one directory for each URL and each place where it is named, all reading the same objects.
type Base struct {
	// Name of the directory.
	Name string `json:"name"`
	// In is the Name of the base whose files name this one, "" for the source.
	In string `json:"in,omitempty"`
	// URL as the kustomization has it. It holds the commit.
	URL string `json:"url"`
}

const basePrefix = ".prerig-base-"

// newBase returns the base that a kustomization names.
func newBase(in, url string) Base {
	sum := sha256.Sum256([]byte(in + "\x00" + url))
	return Base{Name: basePrefix + hex.EncodeToString(sum[:10]), In: in, URL: url}
}

// String names the base in messages.
func (b Base) String() string {
	parsed, err := remotebase.Parse(b.URL)
	if err != nil {
		return remotebase.Redacted(b.URL)
	}
	return remotebase.Redacted(parsed.Repository) + "@" + parsed.Ref
}

// baseOf returns the base that a file is in.
func (k *checkedTree) baseOf(at string) Base {
	first, _, _ := strings.Cut(at, "/")
	return k.bases[first]
}

const allowHint = "copy it into the source, or have the pipeline allow its repository (spec.build.remoteBases)"

// mountedPath returns the path of a remote base among the files that the renderer sees, relative to the kustomization that names
// it.
func (k *checkedTree) mountedPath(file *kustomizationFile, e listEntry) (string, error) {
	parsed, err := remotebase.Parse(e.value)
	if err == nil {
		_, err = parsed.Commit()
	}
	if err != nil {
		return "", file.refuseRemote(e, fmt.Errorf("%w; then have the pipeline allow its repository (spec.build.remoteBases), or else copy it into the source", err))
	}
	base, ok := k.bases[newBase(file.in.Name, e.value).Name]
	if !ok {
		return "", file.refuseRemote(e, errors.New("a render uses no network: "+allowHint))
	}
	return fromRoot(path.Dir(file.at)) + path.Join(base.Name, parsed.Directory), nil
}

// fromRoot returns the way from a directory up to the root.
func fromRoot(dir string) string {
	if dir == "." {
		return ""
	}
	return strings.Repeat("../", strings.Count(dir, "/")+1)
}
