// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package news looks for releases that are newer than those that files of the repository name, and writes them into the files.
package news

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Place is a file that names releases, and the pattern of a place in it: its first group is a Go module or the URL of a
// repository, its second a list of releases in quotes.
type Place struct {
	File    string
	Pattern *regexp.Regexp
}

// Places are those that Update writes.
var Places = []Place{
	{
		"pipeline/render/engine/apiserver/definitions/generate/sources.go",
		regexp.MustCompile(`\{?"[a-z-]+", "([^" ]+/[^" ]+)", (?:apache|mit), \[\]string\{([^}]*)\}`),
	},
}

// Found is a release that is newer than those in a file.
type Found struct {
	File, Source string
	// Known is the newest release in the file, Newest the newest of all.
	Known, Newest string
	// Problem is set where the releases could not be listed.
	Problem error
}

// Lister returns the releases of a module or repository.
type Lister func(ctx context.Context, source string) ([]string, error)

var quoted = regexp.MustCompile(`"(v[0-9][^"]*)"`)

// Update looks at each place below root. A newer patch replaces the last release of its minor, a newer minor is added.
func Update(ctx context.Context, root string, places []Place, list Lister) ([]Found, error) {
	var out []Found
	for _, place := range places {
		name := filepath.Join(root, place.File)
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		written := place.Pattern.ReplaceAllFunc(text, func(match []byte) []byte {
			groups := place.Pattern.FindSubmatch(match)
			found := Found{File: place.File, Source: string(groups[1])}
			var known []string
			for _, m := range quoted.FindAllSubmatch(groups[2], -1) {
				known = append(known, string(m[1]))
			}
			found.Known = known[len(known)-1]
			releases, err := list(ctx, found.Source)
			if err != nil {
				found.Problem = err
				out = append(out, found)
				return match
			}
			found.Newest = Newest(releases)
			if found.Newest == "" || Newest([]string{found.Known, found.Newest}) == found.Known {
				return match
			}
			out = append(out, found)
			if minorOf(found.Newest) == minorOf(found.Known) {
				known = known[:len(known)-1]
			}
			changed := `"` + strings.Join(append(known, found.Newest), `", "`) + `"`
			return bytes.Replace(match, groups[2], []byte(changed), 1)
		})
		if !bytes.Equal(written, text) {
			if err := os.WriteFile(name, written, 0o644); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// Newest returns the newest release among versions, "" for none. Pre-releases are none.
func Newest(versions []string) string {
	var newest *semver.Version
	for _, text := range versions {
		v, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))
		if err == nil && v.Prerelease() == "" && (newest == nil || v.GreaterThan(newest)) {
			newest = v
		}
	}
	if newest == nil {
		return ""
	}
	return "v" + newest.String()
}

func minorOf(release string) string { return release[:strings.LastIndex(release, ".")] }

// List asks the module proxy, or the Git server, for the releases of a source.
func List(ctx context.Context, source string) ([]string, error) {
	args := []string{"go", "list", "-m", "-versions", source}
	if strings.HasPrefix(source, "https://") {
		args = []string{"git", "ls-remote", "--tags", "--refs", source, "v*"}
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the releases of %s: %w: %s", source, err, bytes.TrimSpace(stderr.Bytes()))
	}
	var out []string
	for word := range strings.FieldsSeq(string(text)) {
		out = append(out, strings.TrimPrefix(word, "refs/tags/"))
	}
	return out, nil
}
