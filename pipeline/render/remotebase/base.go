// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package remotebase

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// Base is an entry of a kustomization that names a directory of a Git repository.
type Base struct {
	// URL is the URL as written in the kustomization.
	URL string
	// Repository is the repository that kustomize would clone, Ref the ref that it would check out, Directory the
	// directory in it, "." for the root.
	Repository, Ref, Directory string
	// Submodules reports whether kustomize would check out the repository's submodules. It does so by default.
	Submodules bool

	// Address is the repository as it is compared with the list of allowed ones.
	Address giturl.Address
}

// ErrUnpinned is the cause of errors about bases that are not pinned to a commit.
var ErrUnpinned = errors.New("it is not pinned to a commit")

// maxURL bounds what is looked at.
const maxURL = 2048

// notCloned is how kustomize notes the root of a repository that it has not cloned.
const notCloned = "notCloned"

// Looks reports whether kustomize treats an entry of resources, components or bases as a directory of a Git
// repository.
func Looks(entry string) bool {
	_, ok := parseEntry(entry)
	return ok
}

// Parse parses an entry of a kustomization. Its errors describe the problem, and never quote the URL.
func Parse(entry string) (*Base, error) {
	if len(entry) > maxURL {
		return nil, fmt.Errorf("its URL is longer than %d bytes", maxURL)
	}
	found, ok := parseEntry(entry)
	if !ok {
		return nil, errors.New("it is not a repository in a form that kustomize accepts, such as https://HOST/ORG/REPO//DIR?ref=COMMIT")
	}
	b := &Base{URL: entry, Repository: found.repository, Ref: found.ref, Directory: found.directory, Submodules: found.submodules}
	if strings.ContainsFunc(b.Directory, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }) {
		return nil, errors.New("its directory has a character that is not allowed")
	}
	if IsFile(entry) {
		return nil, errors.New("it is a single file")
	}
	var err error
	if b.Address, err = giturl.ParseAddress(b.Repository); err != nil {
		return nil, err
	}
	return b, nil
}

var commitRule = lazyregexp.New(`^[0-9a-fA-F]{40}$`)

// Commit returns the commit that the base is pinned to, in lower case, or an error that is ErrUnpinned.
func (b *Base) Commit() (string, error) {
	switch {
	case commitRule.MatchString(b.Ref):
		return strings.ToLower(b.Ref), nil
	case b.Ref == "":
		return "", fmt.Errorf("%w: it has no ref", ErrUnpinned)
	}
	return "", fmt.Errorf("%w: its ref %q is a branch, a tag or a short commit", ErrUnpinned, shortenEntry(b.Ref))
}

func shortenEntry(text string) string {
	if len(text) > 80 {
		return text[:80] + "…"
	}
	return text
}

// OriginPath is the directory as kustomize notes it with objects (buildMetadata: [originAnnotations]).
func (b *Base) OriginPath() string {
	if b.Directory == "." {
		return notCloned
	}
	return b.Directory
}

// Redacted returns an entry without user, password and query, for messages.
func Redacted(entry string) string {
	entry, query, _ := strings.Cut(entry, "?")
	if i := strings.LastIndexByte(entry, '@'); i >= 0 {
		scheme := ""
		if j := strings.Index(entry, "://"); j >= 0 && j < i {
			scheme = entry[:j+3]
		}
		// The user of ssh is no secret, and part of the name that people know; that of https may be a token.
		if user := entry[len(scheme):i]; !giturl.IsUserName(user) || scheme != "" && scheme != "ssh://" {
			entry = scheme + entry[i+1:]
		}
	}
	if values, err := url.ParseQuery(query); err == nil {
		for _, key := range []string{"ref", "version"} {
			if ref := values.Get(key); ref != "" {
				return shortenEntry(entry) + "?" + key + "=" + shortenEntry(ref)
			}
		}
	}
	return shortenEntry(entry)
}
