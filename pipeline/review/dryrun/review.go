// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/review"
)

// reviewOf converts a result at one place for a review.
func (p *Renderer) reviewOf(r *Result, one PipelineChange, target *TargetChange, before,
	after map[string][]byte) review.Pipeline {
	out := review.Pipeline{Name: r.Entry.Key, NotCompared: one.Error, Refused: one.Gate}
	if target != nil {
		out.NotCompared = firstText(out.NotCompared, prefixTarget(target.Target, target.Error))
		out.Refused = firstText(out.Refused, prefixTarget(target.Target, target.Gate))
	}
	if out.NotCompared == "" {
		out.Before, out.After = before, after
	}
	if r.Snapshot == nil || r.Response() == nil {
		return out
	}
	origin := publish.OriginOf(r.Snapshot)
	first := review.Source{URL: origin.URL, After: review.Revision{Revision: origin.Revision, Author: origin.Author, Subject: origin.Subject}}
	out.Sources = append(out.Sources, first)
	out.Command = "prerig render " + r.Entry.Key
	if isDirectoryRevision(origin.Revision) {
		out.Command += " --source ."
	} else {
		out.Command += " --revision " + origin.Revision
	}
	for _, mounted := range origin.Mounted {
		out.Sources = append(out.Sources, review.Source{URL: mounted.URL, MountPath: mounted.MountPath, After: review.Revision{Revision: mounted.Revision}})
		if !isDirectoryRevision(mounted.Revision) {
			out.Command += " --revision " + mounted.MountPath + "=" + mounted.Revision
		}
	}
	out.Findings = review.Findings{After: r.Built.Results}
	if target != nil {
		out.Findings.After = slices.Concat(r.Built.Results, target.Findings)
	}
	out.PolicyAfter, out.ToolAfter = r.Built.Request.PolicyDigest(), p.Builder.Version
	return out
}

func isDirectoryRevision(revision string) bool { return strings.HasPrefix(revision, "dir@") }

func firstText(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// addPlace adds a pipeline at one more place, unless another place has the same changes, or the same reason for not
// being compared.
func addPlace(all []review.Pipeline, one review.Pipeline, target string) []review.Pipeline {
	equal := func(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }
	for i := range all {
		if all[i].NotCompared == one.NotCompared && equal(all[i].Before, one.Before) && equal(all[i].After, one.After) {
			all[i].Refused = firstText(all[i].Refused, one.Refused)
			return all
		}
	}
	if len(all) > 0 {
		one.Name += " at " + target
	}
	return append(all, one)
}

// Review returns the comparison for the body of a pull request or a comment. The Renderer must have been configured
// to keep the data for it.
func (c *Comparison) Review() review.Change {
	return review.Change{Pipelines: c.reviewed, Noun: c.pipelineNoun(), Unseen: c.unseen, Remarks: c.remarkLines()}
}
