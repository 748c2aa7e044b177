// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"path"
	"strings"

	"github.com/prerig/prerig/pipeline/giturl"
)

// kinds says which kinds of places there are, and which of them an entry names.
func (p Publish) kinds() map[string]bool {
	return map[string]bool{"git": p.Git != nil, "oci": p.OCI != nil}
}

// Reference is the full name of what an entry writes: the branch, or the one that is proposed to it.
func (g *GitPublish) Reference() string {
	name := "refs/heads/" + g.Branch
	if g.Propose != nil {
		name += "-next"
		if g.Propose.ActivePath != "" {
			name += "/" + g.Propose.ActivePath
		}
	}
	return name
}

// SameBranch reports whether two entries write one branch of one repository.
func (g *GitPublish) SameBranch(other *GitPublish) bool {
	return g.Reference() == other.Reference() && giturl.Same(g.URL, other.URL)
}

// Target names an entry of spec.publish in the status.
func (p Publish) Target() string {
	if p.OCI != nil {
		return p.OCI.URL + ":" + p.OCI.firstTag()
	}
	return p.Git.URL + " " + strings.TrimPrefix(p.Git.Reference(), "refs/heads/") + " " + p.Git.Path
}

// Address returns the URL that an entry is published to and the field that holds it, both empty for a kind that has none.
func (p Publish) Address() (field, url string) {
	switch {
	case p.Git != nil:
		return "git.url", p.Git.URL
	case p.OCI != nil:
		return "oci.url", p.OCI.URL
	}
	return "", ""
}

// firstTag is the tag whose content counts.
func (o *OCIPublish) firstTag() string {
	if len(o.Tags) > 0 {
		return o.Tags[0]
	}
	return "latest"
}

// Format returns how the files of an entry are laid out and written, that of the defaults for an entry that says nothing.
func (p Publish) Format() (Layout, Style) {
	switch {
	case p.Git != nil:
		return p.Git.Layout, p.Git.Style
	case p.OCI != nil:
		return p.OCI.Layout, p.OCI.Style
	}
	return LayoutObjects, StyleCanonical
}

// Directory returns where the files are at the place, "" where they are all that it holds.
func (p Publish) Directory() string {
	if p.Git == nil {
		return ""
	}
	return path.Clean(p.Git.Path)
}

// Description names an entry for people.
func (p Publish) Description() string {
	switch {
	case p.OCI != nil && len(p.OCI.Tags) > 0:
		return p.OCI.URL + ", tagged " + strings.Join(p.OCI.Tags, ", ")
	case p.OCI != nil:
		return p.OCI.URL + ", tagged latest"
	case p.Git.Propose != nil:
		return "proposed for branch " + p.Git.Branch + " of " + p.Git.URL + ", in " + p.Git.Path
	}
	return "branch " + p.Git.Branch + " of " + p.Git.URL + ", in " + p.Git.Path
}

// ComparedWith says in words what a difference from what is published compares with.
func (p Publish) ComparedWith() string {
	switch {
	case p.OCI != nil:
		return "artifact " + p.Target()
	case p.Git.Propose != nil:
		return "active branch " + p.Git.Branch + " of " + p.Git.URL + " (what is proposed goes to " + strings.TrimPrefix(p.Git.Reference(), "refs/heads/") + ")"
	}
	return "branch " + p.Git.Branch + " of " + p.Git.URL
}

// Removable reports whether what was published there can be taken away again. What cannot is left as it is.
func (p Publish) Removable() bool { return p.Git != nil }

// NotesRevisions reports whether each revision of the source is to be noted there, also where it changes nothing: GitOps Promoter
// waits for a note for each commit.
func (p Publish) NotesRevisions() bool { return p.Git != nil && p.Git.Propose != nil }

// SamePlace reports whether the next run of a pipeline that moves from one entry to the other moves its files, so that
// nothing is left behind.
func (p Publish) SamePlace(other Publish) bool {
	return p.Git != nil && other.Git != nil && p.Git.SameBranch(other.Git)
}

// Overlaps reports whether two entries can have files in common: they are on one branch, one's directory in the other's.
func (p Publish) Overlaps(other Publish) bool {
	return p.SamePlace(other) && (isWithin(p.Git.Path, other.Git.Path) || isWithin(other.Git.Path, p.Git.Path))
}

func isWithin(dir, name string) bool {
	dir, name = path.Clean(dir), path.Clean(name)
	return dir == "." || dir == name || strings.HasPrefix(name, dir+"/")
}

// WritesItsSource reports whether an entry writes the branch that the source was read from, whose name the revision has.
// Where the source names no branch, that is only known when it has been read.
func (p Publish) WritesItsSource(source Source, revision string) bool {
	if p.Git == nil || source.Git == nil || source.Git.Ref != (GitRef{}) || !giturl.Same(source.Git.URL, p.Git.URL) {
		return false
	}
	name, _, _ := strings.Cut(revision, "@")
	return p.Git.Reference() == "refs/heads/"+name
}
