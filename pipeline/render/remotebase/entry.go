// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package remotebase

import (
	"net/url"
	"path"
	"strconv"
	"strings"
)

// parsedEntry is what kustomize reads from an entry that names a directory of a Git repository.
type parsedEntry struct {
	// repository is what git clones, ref what it checks out, and directory is in the repository, "." for its root.
	repository, ref, directory string
	submodules                 bool
}

const forcedGit = "git::"

// parseEntry parses an entry of a kustomization as kustomize does, and reports whether it names a repository (source:
// internal/git/repospec.go of sigs.k8s.io/kustomize/api v0.21).
func parseEntry(entry string) (parsedEntry, bool) {
	if path.IsAbs(entry) {
		return parsedEntry{}, false
	}
	location, query, _ := strings.Cut(entry, "?")
	location, _ = cutPrefixFold(location, forcedGit)
	host, rest, ok := splitHost(location)
	if !ok {
		return parsedEntry{}, false
	}
	repository, directory, ok := splitRepository(rest, host == "file://")
	if !ok || repository == "" {
		return parsedEntry{}, false
	}
	if inside := path.Clean(strings.TrimPrefix(directory, "/")); inside == ".." || strings.HasPrefix(inside, "../") {
		return parsedEntry{}, false
	}
	parsed := parsedEntry{repository: host + repository, directory: strings.TrimPrefix(path.Join("/", directory), "/"), submodules: true}
	if parsed.directory == "" {
		parsed.directory = "."
	}
	if values, err := url.ParseQuery(query); err == nil {
		if parsed.ref = values.Get("ref"); parsed.ref == "" {
			parsed.ref = values.Get("version")
		}
		if wanted, err := strconv.ParseBool(values.Get("submodules")); err == nil {
			parsed.submodules = wanted
		}
	}
	return parsed, true
}

// splitHost splits a location behind its scheme, user and host. Without a scheme, only a host of GitHub or one with a user is accepted.
func splitHost(location string) (host, rest string, ok bool) {
	var scheme string
	for _, prefix := range []string{"ssh://", "https://", "http://", "file://"} {
		if rest, ok := cutPrefixFold(location, prefix); ok {
			scheme, location = prefix, rest
			break
		}
	}
	if scheme == "file://" {
		return scheme, location, true
	}
	user, location := cutUser(location)
	lower := strings.ToLower(location)
	onGitHub := strings.HasPrefix(lower, "github.com/") || strings.HasPrefix(lower, "github.com:")
	likeSCP := scheme == "" && (user != "" || onGitHub)
	if scheme == "" && !likeSCP {
		return "", "", false
	}
	separator := strings.IndexByte(location, '/')
	if colon := strings.IndexByte(location, ':'); likeSCP && (separator < 0 || colon > 0 && colon < separator) {
		separator = colon
	}
	host = location
	if separator >= 0 {
		host, rest = location[:separator+1], location[separator+1:]
	}
	switch {
	case host == "":
		return "", "", false
	case onGitHub && (scheme == "ssh://" || user != ""):
		return user + "github.com:", rest, true
	case onGitHub:
		return "https://github.com/", rest, true
	default:
		return scheme + user + host, rest, true
	}
}

// cutUser splits a location behind a user name and its @.
func cutUser(location string) (user, rest string) {
	name, rest, found := strings.Cut(location, "@")
	for i, c := range name {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return "", location
		}
	}
	if !found || name == "" {
		return "", location
	}
	return name + "@", rest
}

// splitRepository splits the path of a location between the repository and the directory in it: behind the element that follows _git, at
// two slashes, behind .git, or otherwise behind two elements; a repository in a file has all of them.
func splitRepository(location string, isFile bool) (repository, directory string, ok bool) {
	if before, after, found := strings.Cut(location, "_git/"); found {
		name, directory, _ := strings.Cut(after, "/")
		return before + "_git/" + name, directory, true
	}
	if before, after, found := strings.Cut(location, "//"); found {
		return before, after, true
	}
	if before, after, found := strings.Cut(location, ".git"); found {
		return before + ".git", after, true
	}
	if isFile {
		return location, "", true
	}
	parts := strings.SplitN(location, "/", 3)
	if len(parts) < 2 {
		return "", "", false
	}
	return parts[0] + "/" + parts[1], strings.Join(parts[2:], "/"), true
}

// cutPrefixFold cuts a prefix in lower case from a text that may have it in any case.
func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) >= len(prefix) && strings.ToLower(text[:len(prefix)]) == prefix {
		return text[len(prefix):], true
	}
	return text, false
}
