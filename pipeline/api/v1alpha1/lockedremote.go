// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"strings"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// LockedBase is a repository that kustomizations name as a remote base by a branch or tag.
type LockedBase struct {
	// Repository is the URL of the repository in one form for all ways to write it: https:// (http:// for plain HTTP), without .git
	// at its end.
	Repository string `json:"repository" yaml:"repository"`
	// Ref is the branch or tag, as kustomizations name it. It is omitted for the default branch.
	Ref string `json:"ref,omitempty" yaml:"ref,omitempty"`
	// Commit that it resolved to, 40 hexadecimal digits.
	Commit string `json:"commit" yaml:"commit"`
}

// String names the base in messages.
func (b LockedBase) String() string {
	return b.Repository + " " + cmp.Or(b.Ref, "HEAD") + " at " + b.Commit
}

// LockedFile is a file that kustomizations load over HTTP.
type LockedFile struct {
	// URL of the file, as kustomizations write it.
	URL string `json:"url" yaml:"url"`
	// Digest of the file, sha256: and 64 hexadecimal digits.
	Digest string `json:"digest" yaml:"digest"`
}

// String names the file in messages.
func (f LockedFile) String() string { return f.URL + " with " + f.Digest }

// FindBase returns the lock entry for a repository and a ref, which is empty for the default branch, or nil if none exists.
func (l *ChartLock) FindBase(repository giturl.Address, ref string) *LockedBase {
	for i, one := range l.Spec.Bases {
		if one.Repository == repository.String() && one.Ref == ref {
			return &l.Spec.Bases[i]
		}
	}
	return nil
}

// FindFile returns the lock entry for a URL, or nil if none exists.
func (l *ChartLock) FindFile(url string) *LockedFile {
	for i, one := range l.Spec.Files {
		if one.URL == url {
			return &l.Spec.Files[i]
		}
	}
	return nil
}

func (l *ChartLock) validateLockedRemotes(ps *strict.Problems) {
	bases := map[LockedBase]int{}
	for i, base := range l.Spec.Bases {
		at := func(key string) []any { return []any{"spec", "bases", i, key} }
		if address, err := giturl.ParseAddress(base.Repository); err != nil || address.String() != base.Repository {
			ps.Add(at("repository"), "must be a repository such as https://HOST/ORG/REPO, as prerig lock writes it")
		}
		if strings.ContainsFunc(base.Ref, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			ps.Add(at("ref"), "%q is not a branch or tag", base.Ref)
		}
		if !commitRule.MatchString(base.Commit) {
			ps.Add(at("commit"), "%q is not a commit, 40 hexadecimal digits", base.Commit)
		}
		key := LockedBase{Repository: base.Repository, Ref: base.Ref}
		if first, twice := bases[key]; twice {
			ps.Add(at("ref"), "spec.bases[%d] locks the same ref", first)
		}
		bases[key] = i
	}
	files := map[string]int{}
	for i, file := range l.Spec.Files {
		at := func(key string) []any { return []any{"spec", "files", i, key} }
		if !strings.HasPrefix(file.URL, "https://") && !strings.HasPrefix(file.URL, "http://") {
			ps.Add(at("url"), "must be a URL with https:// or http://")
		}
		if !digestRule.MatchString(file.Digest) {
			ps.Add(at("digest"), "%q is not a digest, sha256: and 64 hexadecimal digits", file.Digest)
		}
		if first, twice := files[file.URL]; twice {
			ps.Add(at("url"), "spec.files[%d] locks the same file", first)
		}
		files[file.URL] = i
	}
}
