// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/prerig/prerig/internal/lazyregexp"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/remotebase"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

const repositoryHint = "say where its files are in the tree with spec.build.releases.repositories"

// FindRepository returns the root of a GitRepository's files among those of the source, or why they are not there.
func (s *Set) FindRepository(object *Object) (root string, err error) {
	var repository sourcev1.GitRepository
	if _, err := decodeReleaseType(object, &repository); err != nil {
		return "", err
	}
	if len(repository.Spec.Include) > 0 {
		return "", errorAboutField(object, "spec.include", "is not read: other repositories in this one cannot be found in the tree")
	}
	asked := v1alpha1.GitRef{Branch: defaultBranch}
	if ref := repository.Spec.Reference; ref != nil && *ref != (sourcev1.GitRepositoryRef{}) {
		if ref.SemVer != "" {
			return "", errorAboutField(object, "spec.ref.semver", "cannot be resolved in the tree; %s", repositoryHint)
		}
		asked = v1alpha1.GitRef{Branch: ref.Branch, Tag: ref.Tag, Name: ref.Name, Commit: ref.Commit}
	}
	root, reason := s.findTree(repository.Spec.URL, asked)
	if reason != "" {
		return "", errorAboutField(object, "spec.url", "%s", reason)
	}
	return root, nil
}

// findTree returns the root of a Git repository at the requested ref, or the reason why it is not available.
func (s *Set) findTree(url string, asked v1alpha1.GitRef) (root, reason string) {
	other := ""
	for _, tree := range s.in.Trees {
		if !giturl.Same(tree.URL, withScheme(url)) {
			continue
		}
		if tree.Any || followsRequestedRef(tree.Ref, asked) {
			return tree.Path, ""
		}
		other = fmt.Sprintf("the pipeline follows %s of the repository, and %s is asked for; make them the same, or %s", describeGitRef(tree.Ref), describeGitRef(asked), repositoryHint)
	}
	if other != "" {
		return "", other
	}
	shown := remotebase.Redacted(url)
	if url == "" {
		shown = `""`
	}
	return "", "the repository " + shown + " is none of the pipeline's sources; add it to spec.sources, or " + repositoryHint
}

// shortWithSlash is a URL of ssh without a scheme, and with a slash in the place of the colon.
var shortWithSlash = lazyregexp.New(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+/`)

// withScheme returns a URL in the form that Git knows.
func withScheme(url string) string {
	if shortWithSlash.MatchString(url) {
		return "ssh://" + url
	}
	return url
}

// followsRequestedRef reports whether a source follows the requested ref. The repository's HEAD is assumed to be what
// the source follows, whatever its name: the tree does not contain it.
func followsRequestedRef(source, asked v1alpha1.GitRef) bool {
	switch {
	case asked.Commit != "":
		return asked.Commit == source.Commit
	case asked.Name != "":
		return asked.Name == source.Name || asked.Name == "refs/heads/"+source.Branch || asked.Name == "refs/tags/"+source.Tag
	case asked.Tag != "":
		return asked.Tag == source.Tag
	case asked.Branch != "":
		return asked.Branch == source.Branch
	}
	return source.Tag == "" && source.Commit == "" && source.Name == ""
}

// describeGitRef names a reference in messages.
func describeGitRef(ref v1alpha1.GitRef) string {
	switch {
	case ref.Commit != "":
		return "the commit " + ref.Commit
	case ref.Name != "":
		return ref.Name
	case ref.Tag != "":
		return "the tag " + ref.Tag
	case ref.Branch != "":
		return "the branch " + ref.Branch
	}
	return "HEAD"
}

// findRevision is findTree for the revision of an Application, which may be a branch, a tag or a commit.
func (s *Set) findRevision(url, revision string) (root, reason string) {
	revision = strings.TrimPrefix(strings.TrimPrefix(revision, "refs/heads/"), "refs/tags/")
	if revision == "" || revision == "HEAD" {
		return s.findTree(url, v1alpha1.GitRef{})
	}
	for _, asked := range []v1alpha1.GitRef{{Branch: revision}, {Tag: revision}, {Commit: revision}, {Name: revision}} {
		if root, reason := s.findTree(url, asked); reason == "" {
			return root, ""
		}
	}
	return s.findTree(url, v1alpha1.GitRef{Branch: revision})
}
