// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"path"
	"strings"

	"github.com/prerig/prerig/pipeline/source/gitname"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

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

func (g *GitPublish) shortReference() string { return strings.TrimPrefix(g.Reference(), "refs/heads/") }

// BranchKey is equal for all ways to write the URL of a repository. A reference is a full one.
func BranchKey(url, reference string) string { return giturl.Normal(url) + "\n" + reference }

func (g *GitPublish) describeTarget() string { return g.URL + " " + g.shortReference() + " " + g.Path }

// IsSameBranch reports whether what was published to a target went to the branch of this entry, at whichever path.
func (p Publish) IsSameBranch(target string) bool {
	if p.Git == nil {
		return false
	}
	url, rest, _ := strings.Cut(target, " ")
	reference, _, ok := strings.Cut(rest, " ")
	return ok && BranchKey(url, "refs/heads/"+reference) == BranchKey(p.Git.URL, p.Git.Reference())
}

func (g *GitPublish) url() string { return g.URL }

func (g *GitPublish) describeForUsers() string {
	branch := "branch " + g.Branch + " of " + g.URL + ", in " + g.Path
	switch {
	case g.Propose != nil:
		return "proposed for " + branch
	case g.PullRequest != nil:
		return "by pull request to " + branch
	}
	return branch
}

func (g *GitPublish) describeComparisonBase() string {
	branch := "branch " + g.Branch + " of " + g.URL
	if g.Propose != nil {
		return "active " + branch + " (what is proposed goes to " + g.shortReference() + ")"
	}
	return branch
}

func (g *GitPublish) layoutAndStyle() (Layout, Style) { return g.Layout, g.Style }

func (g *GitPublish) publishDirectory() string { return path.Clean(g.Path) }

func (g *GitPublish) isRemovable() bool { return true }

func (g *GitPublish) recordsSourceRevisions() bool { return g.Propose != nil }

// claimedPlaces implements publishKind. A pipeline owns one set of files on a branch, so that each of two entries would
// remove what the other has written, in every run.
func (g *GitPublish) claimedPlaces() []Place {
	if g.Branch == "" {
		return nil
	}
	directory := path.Clean(g.Path)
	return []Place{{
		Key: BranchKey(g.URL, g.Reference()), Path: directory, field: "git.path",
		conflictMessage: func(who string) string {
			return directory + " of branch " + g.Branch + " is, holds, or is in a directory of " + who + "; use another path or branch"
		},
		duplicateField: "git.branch", duplicateMessage: "is the branch of spec.publish[%d] already, and a pipeline publishes to a branch once; use another " +
			"branch, or a second pipeline for the other path",
	}}
}

func (g *GitPublish) setDefaults(p *RenderPipeline) {
	source := p.Spec.Source.Git
	if g.URL == "" && source != nil {
		g.URL = source.URL
	}
	if g.SecretRef == nil && source != nil && g.URL == source.URL {
		g.SecretRef = source.SecretRef
	}
	setDefault(&g.Layout, LayoutObjects)
	setDefault(&g.Style, StyleCanonical)
	switch {
	case g.Path != "":
	case g.Propose != nil && g.Propose.ActivePath != "":
		g.Path = g.Propose.ActivePath
	case g.Propose != nil:
		g.Path = "."
	default:
		g.Path = p.Metadata.Name
	}
	if g.Author == nil {
		g.Author = &Author{Name: "Prerig", Email: "prerig@prerig.dev"}
	}
	if g.Signing != nil {
		setDefault(&g.Signing.Format, SigningAuto)
	}
	if g.PullRequest != nil {
		g.PullRequest.setDefaults(g, p)
	}
}

func (g *GitPublish) check(v *validator, at string, p *RenderPipeline) {
	if g.URL == "" {
		v.addError(at+".url", "must be given, as the source is not a Git repository")
	} else {
		v.addProblems(at+".url", giturl.Check(g.URL))
	}
	if g.Branch == "" {
		v.addError(at+".branch", "must be given")
	} else {
		v.addProblems(at+".branch", writtenBranchProblems(g.Branch))
	}
	v.checkWrittenPath(at+".path", g.Path)
	if clean := path.Clean(g.Path); g.Propose == nil && clean == "." {
		v.addError(at+".path", "must be a directory below the root")
	} else if first, _, _ := strings.Cut(clean, "/"); gitname.Key(first) == ".prerig" {
		v.addError(at+".path", "must not be below .prerig")
	}
	if g.Branch != "" && g.Propose == nil {
		switch field := p.ownBranchOf(g.URL, g.Branch); field {
		case "":
		case "spec.source":
			v.addError(at+".branch", "is the source's own branch: every commit would start the next run")
		default:
			v.addError(at+".branch", "is the branch of %s: every commit would start the next run", field)
		}
	}
	v.checkFormat(at, g.Layout, g.Style)
	if g.Signing != nil {
		v.checkEnum(at+".signing.format", string(g.Signing.Format), "Auto", "OpenPGP", "SSH")
	}
	if g.Attestation != nil && g.Attestation.SecretRef.Name == "" {
		v.addError(at+".attestation.secretRef.name", "must name the secret with the key")
	}
	if g.Propose != nil && len(p.Spec.Sources) > 0 {
		v.addError(at+".propose", "cannot be used with spec.sources: GitOps Promoter knows one source commit for each result, and would not promote a change of another source")
	}
	if g.Propose != nil && g.Propose.ActivePath != "" {
		v.checkWrittenPath(at+".propose.activePath", g.Propose.ActivePath)
		if err := gitname.CheckBranch(g.shortReference()); err != nil && g.Branch != "" {
			v.addError(at+".propose.activePath", "is a part of the branch that is proposed: %s", err)
		}
		if path.Clean(g.Path) != path.Clean(g.Propose.ActivePath) {
			v.addError(at+".path", "must be the activePath of propose")
		}
	}
	if g.PullRequest != nil {
		g.PullRequest.checkPullRequest(v, at+".pullRequest", g, p)
	}
	if author := g.Author; author != nil && (strings.ContainsAny(author.Name+author.Email, "<>") || gitname.CheckText(author.Name+author.Email) != nil) {
		v.addError(at+".author", "must not contain <, >, a line break or another invisible character")
	}
}

// namesBranch reports whether the reference names a branch. What it does not name is only known when the repository is read.
func (r GitRef) namesBranch(branch string) bool {
	return r.Branch == branch || r.Name == "refs/heads/"+branch
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
