// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// ownRepository is the Git repository that a directory is in. Methods are for nil, too, which is none.
type ownRepository struct {
	root string
	urls []string
}

// findOwnRepository returns the repository of a directory, nil where it is in none.
func findOwnRepository(dir string) *ownRepository {
	local, err := git.OpenLocal(dir)
	if err != nil {
		return nil
	}
	root, err := local.Root()
	if err != nil {
		return nil
	}
	return &ownRepository{root: root, urls: local.URLs()}
}

// reachableRemoteURL returns the URL of the first remote that a daemon can reach, without credentials in it.
func (r *ownRepository) reachableRemoteURL() (string, error) {
	if r == nil {
		return "", errors.New("the current directory is not in a Git repository; specify the URL of the source")
	}
	for _, one := range r.urls {
		clean := withoutCredentials(one)
		if len(giturl.Check(clean)) == 0 {
			return clean, nil
		}
	}
	return "", errors.New("this repository has no remote that a daemon could reach (https://, http://, ssh:// or user@host:path); specify the URL of the source")
}

// withoutCredentials is the URL without a user and a password, which https URLs of remotes may have.
func withoutCredentials(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil || u.Scheme == "ssh" {
		return raw
	}
	u.User = nil
	return u.String()
}

// isSource reports whether the source of a pipeline is this repository: "." or the URL of one of its remotes.
func (r *ownRepository) isSource(source string) bool {
	if r == nil {
		return false
	}
	return source == "." || slices.ContainsFunc(r.urls, func(url string) bool { return giturl.Same(url, source) })
}

// pathFromRoot returns the path of a file from the root of the repository.
func (r *ownRepository) pathFromRoot(name string) (string, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	dir, base := filepath.Split(absolute)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		absolute = filepath.Join(real, base)
	}
	rel, err := filepath.Rel(r.root, absolute)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is not in the repository at %s, which the pipeline renders", name, r.root)
	}
	return filepath.ToSlash(rel), nil
}

// relativeRootPath returns the way from the current directory to the root of the repository.
func (r *ownRepository) relativeRootPath() string {
	here, err := filepath.Abs(".")
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(here); err == nil {
		here = real
	}
	rel, err := filepath.Rel(here, r.root)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(rel)
}
