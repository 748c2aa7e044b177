// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"context"

	"github.com/prerig/prerig/fn/result"
)

// Limits of the bodies of pull requests, in characters.
const (
	LimitGitHub      = 65_536
	LimitGitLab      = 1_048_576
	LimitBitbucket   = 32_768
	LimitAzureDevOps = 4_000
	// LimitGitea is Prerig's own limit for Gitea and Forgejo, which have none.
	LimitGitea = 1_048_576
	// Unlimited is for the whole.
	Unlimited = 0
)

// Change is what one pull request, or one run of prerig diff, is about.
type Change struct {
	// Pipelines are the changed pipelines, in display order. Unchanged ones may be among them.
	Pipelines []Pipeline
	// Noun is what a pipeline is called; "" means pipeline.
	Noun string
	// Whole is where to find the whole if it does not fit: an http or https URL, which becomes a link, or words. ""
	// means that the commands of the pipelines reproduce it.
	Whole string
	// Unseen is what the comparison does not show, such as "1 changed file in nothing that was compared", or "".
	Unseen string
	// Remarks are effects that the differences of objects do not show, a sentence each.
	Remarks []string
}

func (c Change) noun() string { return cmp.Or(c.Noun, "pipeline") }

// Pipeline is one pipeline of a change, at one place.
type Pipeline struct {
	// Name is the key, NAMESPACE/NAME or NAME; it includes a place if several places differ.
	Name string
	// Sources are the first source and the mounted ones.
	Sources []Source
	// Before and After are the files as they are published, by their paths; After is empty where the pipeline is
	// removed.
	Before, After map[string][]byte
	// Stays has why objects that are no longer rendered stay in the cluster, by the paths of their files.
	Stays map[string]string
	// Findings of lint and of the gates.
	Findings Findings
	// Refused is the reason why the result would not be published, or "" if it would.
	Refused string
	// NotCompared is the reason why a comparison is impossible: it could not be rendered, or what is published
	// could not be read. Before and After are then empty. It is "" if both are known.
	NotCompared string
	// Command makes After again.
	Command string
	// PolicyBefore and PolicyAfter are digests of the policies, ToolBefore and ToolAfter versions of Prerig; "" where
	// that is not known.
	PolicyBefore, PolicyAfter string
	ToolBefore, ToolAfter     string
}

// Source is one source of a pipeline.
type Source struct {
	// URL of the repository, MountPath of a further source.
	URL, MountPath string
	// Before and After are its revisions.
	Before, After Revision
}

// Revision is one commit or artifact of a source. All but the first may be "".
type Revision struct {
	// Revision as Flux writes it.
	Revision string
	// Author and Subject of the commit.
	Author, Subject string
}

// Findings are results before and after. Only new ones are shown.
type Findings struct {
	Before, After result.Results
	// BeforeKnown reports whether Before lists all findings about the previous files, by the rules used for After.
	// If not, the previous files are linted as they are, and findings about unchanged objects are omitted.
	BeforeKnown bool
}

// Body returns the review of a change in Markdown of at most limit characters, counted in bytes, which are never
// fewer; Unlimited means all of it, with every name. whole reports whether the body is complete except for names
// beyond the first of many, which are counted; otherwise the body lists what was omitted, and where it is. If the
// limit is too small for the summary, Body returns as much of the summary as fits.
//
// The error is that of ctx, or of the preparation of the engine.
func Body(ctx context.Context, c Change, limit int) (body string, whole bool, err error) {
	r, err := readReviewChange(ctx, c)
	if err != nil {
		return "", false, err
	}
	r.all = limit == Unlimited
	body, whole = layoutWithin(r.allSections(), limit, r.change.wholeLocation())
	return body, whole, nil
}
