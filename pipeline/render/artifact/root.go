// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// HasOwnRoot reports whether the artifact of a kind of source may be of a part of a repository: only what pushes or uploads it
// decides which. That of a GitRepository is the whole repository.
func HasOwnRoot(kind string) bool {
	return kind == "OCIRepository" || kind == "Bucket" || kind == ExternalKind
}

// Root returns the directory of a tree that an artifact has, as far as the tree tells: the one that a command of the repository
// pushes, or the only one that has all of the paths by which Kustomizations read the artifact. directories are those of the
// tree, paths are relative to the artifact, and url is its address, or "".
func Root(r tree.Reader, directories, paths []string, url string) (root string, known bool) {
	if root, known = pushed(r, url); known && slices.Contains(directories, root) {
		return root, true
	}
	var named []string
	for _, one := range paths {
		if one = path.Clean(strings.TrimPrefix(one, "/")); one != "." && !strings.HasPrefix(one, "..") {
			named = append(named, one)
		}
	}
	if len(named) == 0 {
		return "", false
	}
	has := map[string]bool{}
	for _, one := range directories {
		has[one] = true
	}
	var found []string
	for _, at := range directories {
		if !slices.ContainsFunc(named, func(one string) bool { return !has[path.Join(at, one)] }) {
			found = append(found, at)
		}
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// placesOfCommands are the files and directories that the commands of a repository are in.
var placesOfCommands = []string{".github/workflows", ".gitlab-ci.yml", "Makefile", "Taskfile.yml", "Taskfile.yaml", "justfile", "scripts", "hack"}

var (
	pushCommand = lazyregexp.New(`flux push artifact\s+["']?oci://([^\s"']+)((?:[^\n]*\\\n)*[^\n]*)`)
	pathOption  = lazyregexp.New(`(?:--path|-f)[= ]\s*["']?([^\s"'$]+)["']?(?:\s|\\|$)`)
)

// pushed returns the directory that a command pushes to an address, if it is written out.
func pushed(r tree.Reader, url string) (root string, known bool) {
	name := nameOfImage(strings.TrimPrefix(url, "oci://"))
	if name == "" {
		return "", false
	}
	for _, text := range commandTexts(r) {
		for _, command := range pushCommand.FindAllStringSubmatch(text, -1) {
			given := pathOption.FindStringSubmatch(command[2])
			if nameOfImage(command[1]) != name || given == nil {
				continue
			}
			at := path.Clean(given[1])
			if known && at != root {
				return "", false
			}
			root, known = at, true
		}
	}
	return root, known
}

// nameOfImage returns the last part of an address, without the tag.
func nameOfImage(address string) string {
	name, _, _ := strings.Cut(path.Base(address), ":")
	name, _, _ = strings.Cut(name, "@")
	if name == "." || name == "/" || strings.Contains(name, "$") {
		return ""
	}
	return name
}

func commandTexts(r tree.Reader) (out []string) {
	for _, at := range placesOfCommands {
		info, err := r.Lookup(at)
		if err != nil {
			continue
		}
		files := []tree.Info{{Path: at}}
		if info.Dir {
			if files, err = r.List(at); err != nil {
				continue
			}
		}
		for _, one := range files {
			if text, err := r.Read(one.Path); !one.Dir && err == nil {
				out = append(out, string(text))
			}
		}
	}
	return out
}
