// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package remotebase

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"

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

// notCloned is the directory that kustomize assumes if it has not cloned the repository; it shows through if a base
// is the root of its repository.
const notCloned = "notCloned"

// Looks reports whether kustomize treats an entry of resources, components or bases as a directory of a Git
// repository.
func Looks(entry string) bool { return originOf(entry).Repo != "" }

// originOf asks kustomize itself: its note on where an object is from is made with the parser that its loader uses.
func originOf(entry string) *resource.Origin {
	// The prefix has no meaning, but kustomize writes a line about it to standard error. It removes one prefix.
	if isForced(entry) {
		if entry = entry[len(forcedGit):]; isForced(entry) {
			return &resource.Origin{}
		}
	}
	return (&resource.Origin{}).Append(entry)
}

const forcedGit = "git::"

func isForced(entry string) bool {
	return len(entry) >= len(forcedGit) && strings.EqualFold(entry[:len(forcedGit)], forcedGit)
}

// Parse parses an entry of a kustomization. Its errors describe the problem, and never quote the URL.
func Parse(entry string) (*Base, error) {
	if len(entry) > maxURL {
		return nil, fmt.Errorf("its URL is longer than %d bytes", maxURL)
	}
	found := originOf(entry)
	if found.Repo == "" {
		return nil, errors.New("it is not a repository in a form that kustomize accepts, such as https://HOST/ORG/REPO//DIR?ref=COMMIT")
	}
	b := &Base{URL: entry, Repository: found.Repo, Ref: found.Ref, Directory: baseDirectory(entry, found), Submodules: wantsSubmodules(entry)}
	if strings.ContainsFunc(b.Directory, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }) {
		return nil, errors.New("its directory has a character that is not allowed")
	}
	if overHTTP := strings.HasPrefix(b.Repository, "http"); overHTTP && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(b.Directory)) {
		return nil, errors.New("it is a single file; name its directory in the repository, with the commit")
	}
	var err error
	if b.Address, err = giturl.ParseAddress(b.Repository); err != nil {
		return nil, err
	}
	return b, nil
}

// baseDirectory is where in the repository the base is.
func baseDirectory(entry string, found *resource.Origin) string {
	if found.Path != notCloned {
		return path.Clean(found.Path)
	}
	// A directory may have that name.
	entry, _, _ = strings.Cut(entry, "?")
	if strings.HasSuffix(strings.TrimRight(entry, "/"), notCloned) && !strings.HasSuffix(found.Repo, notCloned) {
		return notCloned
	}
	return "."
}

// wantsSubmodules parses ?submodules=, which the parser's exported API does not expose. A value that is not a
// boolean means the default.
func wantsSubmodules(entry string) bool {
	_, query, _ := strings.Cut(entry, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return true
	}
	wanted, err := strconv.ParseBool(values.Get("submodules"))
	return wanted || err != nil
}

var commitRule = lazyregexp.New(`^[0-9a-fA-F]{40}$`)

// Commit returns the commit that the base is pinned to, in lower case, or an error that is ErrUnpinned.
func (b *Base) Commit() (string, error) {
	switch {
	case commitRule.MatchString(b.Ref):
		return strings.ToLower(b.Ref), nil
	case b.Ref == "":
		return "", fmt.Errorf("%w: it has no ref; add ?ref= and the 40 hexadecimal digits of the commit", ErrUnpinned)
	}
	return "", fmt.Errorf("%w: its ref %q is a branch, a tag or a short commit, which can mean something else tomorrow; write the 40 hexadecimal digits of the commit as its ref",
		ErrUnpinned, shortenEntry(b.Ref))
}

func shortenEntry(text string) string {
	if len(text) > 80 {
		return text[:80] + "…"
	}
	return text
}

// OriginPath is the directory as kustomize notes it with objects (buildMetadata: [originAnnotations]).
func (b *Base) OriginPath() string { return originOf(b.URL).Path }

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
