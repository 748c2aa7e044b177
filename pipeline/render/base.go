// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/prerig/prerig/pipeline/render/remotebase"
)

// Base is a remote base whose repository, or a remote file whose content, was fetched before the render. The renderer sees its files
// in a directory of the root that no listing shows.
//
// kustomize makes a separate clone for every mention of a base, and treats a base that is named below another one
// as distinct. So each pair of URL and referring place gets its own directory, all backed by the same objects.
type Base struct {
	// Name of the directory.
	Name string `json:"name"`
	// In is the Name of the base whose files name this one, "" for the source.
	In string `json:"in,omitempty"`
	// URL as the kustomization has it.
	URL string `json:"url"`
	// Locked is the commit of the repository, or the digest of the file.
	Locked string `json:"locked,omitempty"`
}

// BaseFile is the name of a remote file in its directory.
const BaseFile = "remote.yaml"

// WantedBase is a remote base or file that a build turned out to need.
type WantedBase struct {
	Base
	// Where is the file and line that names it, with the field.
	Where string `json:"where"`
}

// MissingBase is a remote base or file that cannot be had.
type MissingBase struct {
	// Name is that of the Base.
	Name string `json:"name"`
	// Reason is why, and what to do.
	Reason string `json:"reason"`
}

// BasePrefix begins the names of the directories of remote bases.
const BasePrefix = ".prerig-base-"

// NewBase returns the base that a kustomization names by a URL; in is the Name of the base that the kustomization is in, "" for the source.
func NewBase(in, url string) Base {
	sum := sha256.Sum256([]byte(in + "\x00" + url))
	return Base{Name: BasePrefix + hex.EncodeToString(sum[:10]), In: in, URL: url}
}

// String names the base in messages.
func (b Base) String() string {
	parsed, err := remotebase.Parse(b.URL)
	if err != nil || parsed.Ref == "" {
		return remotebase.Redacted(b.URL)
	}
	return remotebase.Redacted(parsed.Repository) + "@" + parsed.Ref
}
