// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"path"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// MountedSource is a further source: its mountPath, and exactly one of the other fields.
type MountedSource struct {
	// MountPath is the directory in the tree of the pipeline's source that contains the files, relative to its
	// root. The source must not have any files at this path. It names the source wherever revisions are reported.
	MountPath string `json:"mountPath"`
	// Git is a Git repository.
	Git *GitSource `json:"git,omitempty"`
	// OCI is an artifact in a registry, as Flux makes them.
	OCI *OCISource `json:"oci,omitempty"`
	// Dir is a local directory, for development. The daemon refuses it unless it was started with permission.
	Dir *DirSource `json:"dir,omitempty"`
}

// Source returns where the files come from.
func (m MountedSource) Source() Source { return Source{Git: m.Git, OCI: m.OCI, Dir: m.Dir} }

// URL returns the URL of a repository or an artifact, or the path of a directory; "" where the source names none.
func (s Source) URL() string {
	switch {
	case s.Git != nil:
		return s.Git.URL
	case s.OCI != nil:
		return s.OCI.URL
	case s.Dir != nil:
		return s.Dir.Path
	}
	return ""
}

// NamedSource is one of a pipeline's sources.
type NamedSource struct {
	// Field is its field, such as spec.source or spec.sources[0].
	Field string
	// MountPath of a further source, "" for spec.source.
	MountPath string
	Source
}

// AllSources returns the sources of a pipeline, spec.source first.
func (p *RenderPipeline) AllSources() []NamedSource {
	all := []NamedSource{{Field: "spec.source", Source: p.Spec.Source}}
	for i, mounted := range p.Spec.Sources {
		all = append(all, NamedSource{Field: sourceField(i), MountPath: mounted.MountPath, Source: mounted.Source()})
	}
	return all
}

func sourceField(i int) string { return fmt.Sprintf("spec.sources[%d]", i) }

// maxSources bounds the further sources of a pipeline: each is asked for at every look.
const maxSources = 16

// mountPathRule has no characters that mean something in a revision, a flag or a shell.
var mountPathRule = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$`)

func (v *validator) checkSources(p *RenderPipeline) {
	p.Spec.Source.validate(v, "spec.source")
	if len(p.Spec.Sources) > maxSources {
		v.addError("spec.sources", "must not have more than %d elements", maxSources)
		return
	}
	for i, mounted := range p.Spec.Sources {
		mounted.Source().validate(v, sourceField(i))
		v.checkMountPath(sourceField(i)+".mountPath", mounted.MountPath, p.Spec.Sources[:i])
	}
}

// checkMountPath checks where a source is mounted, which is neither in nor around the place of an earlier one.
func (v *validator) checkMountPath(at, value string, earlier []MountedSource) {
	switch {
	case value == "":
		v.addError(at, "must be given: the directory in the tree of spec.source where the files are to be")
		return
	case len(value) > 255 || !mountPathRule.MatchString(value) || strings.HasSuffix(value, "/") || path.Clean(value) != value:
		v.addError(at, "must be a directory below the root, each part of letters, digits, '_', '-' and '.' and none beginning with '-' or '.', found %q", value)
		return
	}
	for i, other := range earlier {
		if isWithin(other.MountPath, value) || isWithin(value, other.MountPath) {
			v.addError(at, "is, holds, or is in the mountPath of %s; sources are mounted beside each other", sourceField(i))
		}
	}
}

// ownBranchOf returns the field of a source that reads a branch of a repository, or "" if none does.
func (p *RenderPipeline) ownBranchOf(url, branch string) string {
	for _, source := range p.AllSources() {
		if source.Git != nil && giturl.Same(url, source.Git.URL) && source.Git.Ref.namesBranch(branch) {
			return source.Field
		}
	}
	return ""
}
