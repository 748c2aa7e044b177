// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/review"
	"github.com/prerig/prerig/pipeline/review/diff/group"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// CompareEnds compares the results of pipelines at the two ends of a range of commits; from names the first. A pipeline
// that has a result at one end only is compared with nothing. One that fails at both ends for the same reason has no
// changes, and no error: it is returned in still, as are units and releases that fail at both ends.
func (p *Renderer) CompareEnds(ctx context.Context, from string, before,
	after []Result) (c *Comparison, still []Still) {
	earlier := map[string]*Result{}
	for i := range before {
		earlier[before[i].Entry.Key] = &before[i]
	}
	c = &Comparison{Pipelines: []PipelineChange{}, noun: "build"}
	var units []*group.Unit
	seen := map[string]bool{}
	add := func(r *Result, old, now map[string][]byte, failure error) {
		first := earlier[r.Entry.Key]
		if failure == nil && now != nil {
			c.Remarks = append(c.Remarks, keepInCluster(first, r, old, now)...)
			c.Remarks = append(c.Remarks, remarksOf(first, r)...)
		}
		change, found, reviewed := p.compareEnd(ctx, from, r, first, old, now, failure)
		if _, asBefore := failedParts(r, first); now != nil && len(asBefore) > 0 {
			still = append(still, Still{r.Entry.Key, asBefore, r.Built.ReasonsOf(asBefore)})
		}
		c.Pipelines = append(c.Pipelines, change)
		units = append(units, found...)
		reviewed.Command = "" // a build has no name that prerig render knows
		if r.Snapshot == nil || r.Snapshot.URL == "" {
			reviewed.Sources = nil
		}
		if r.Entry.Pipeline == nil || len(r.Entry.Pipeline.Spec.Policies) == 0 {
			reviewed.PolicyAfter = ""
		}
		c.reviewed = append(c.reviewed, reviewed)
	}
	for i := range after {
		r, old := &after[i], earlier[after[i].Entry.Key]
		seen[r.Entry.Key] = true
		switch {
		case old == nil:
			add(r, nil, r.Files, r.Err)
		case r.Err != nil && old.Err != nil && r.Err.Error() == old.Err.Error():
			still = append(still, Still{Build: r.Entry.Key, Err: r.Err})
		case r.Err == nil && old.Err != nil:
			add(r, nil, r.Files, fmt.Errorf("it could not be rendered at %s, and can be now: %w", from, old.Err))
		default:
			add(r, old.Files, r.Files, r.Err)
		}
	}
	for i := range before {
		if r := &before[i]; !seen[r.Entry.Key] && r.Err == nil {
			add(r, r.Files, nil, nil)
		}
	}
	c.Changes = group.Changes(units)
	destroyedFirst(c.Changes)
	return c, still
}

// Unaffected renders pipelines, and returns those that are the same with other files: neither what they read differs
// there, nor the pipeline. They are returned by their keys, with how many objects they have.
func (p *Renderer) Unaffected(ctx context.Context, entries, others []catalog.Entry, files *tree.Tree) map[string]int {
	digests := map[string]string{}
	for _, e := range others {
		digests[e.Key] = e.Digest
	}
	same := map[string]int{}
	for _, r := range p.All(ctx, entries) {
		digest, ok := digests[r.Entry.Key]
		if !ok || digest != r.Entry.Digest || r.Built == nil || r.Err != nil ||
			reasonAffected(ctx, r.Built, r.Err, files) != "" {
			continue
		}
		same[r.Entry.Key] = 0
		if r.Built.Response != nil {
			same[r.Entry.Key] = len(r.Built.Objects)
		}
	}
	return same
}

// AddUnaffected adds pipelines that were not rendered at the first end, because nothing that they read has changed.
func (c *Comparison) AddUnaffected(from string, pipelines map[string]int) {
	for _, key := range slices.Sorted(maps.Keys(pipelines)) {
		c.Pipelines = append(c.Pipelines, PipelineChange{Pipeline: key, Targets: []TargetChange{{Target: key, Against: from, Unchanged: pipelines[key]}}})
		c.reviewed = append(c.reviewed, review.Pipeline{Name: key})
	}
}

// SetUnseen records how many changed files are in nothing that was compared, and how many builds fail in full or in part at both ends: where
// nothing else changes, that is not known of them.
func (c *Comparison) SetUnseen(files, builds int) {
	var parts []string
	if files > 0 {
		parts = append(parts, countWithNoun(files, "changed file")+" in nothing that was compared")
	}
	if builds > 0 && c.Empty() {
		parts = append(parts, countWithNoun(builds, c.pipelineNoun())+" not rendered in full, as before")
	}
	c.unseen = strings.Join(parts, ", ")
}

// shownParts is how many units and releases an error names.
const shownParts = 5

// Still is what cannot be rendered at either end.
type Still struct {
	Build string
	// Parts are the units and releases of the build that fail; none if all of it does.
	Parts []string
	Err   error
}

// failedParts returns the units and releases of a result that fail, those that did not at the first end apart from
// those that did: of these neither end has objects.
func failedParts(r, first *Result) (now, asBefore []string) {
	if r.Built == nil || r.Built.Response == nil {
		return nil, nil
	}
	for _, name := range r.Built.NotRendered() {
		if first != nil && first.Built != nil && first.Built.Response != nil &&
			slices.Contains(first.Built.NotRendered(), name) {
			asBefore = append(asBefore, name)
		} else {
			now = append(now, name)
		}
	}
	return now, asBefore
}

func (p *Renderer) compareEnd(ctx context.Context, from string, r, first *Result, old, now map[string][]byte,
	failure error) (PipelineChange, []*group.Unit, review.Pipeline) {
	one := PipelineChange{Pipeline: r.Entry.Key, Targets: []TargetChange{}}
	if r.Snapshot != nil {
		one.Revision = r.Snapshot.Revision
	}
	if failure != nil {
		one.Error = failure.Error()
		return one, nil, p.reviewOf(r, one, nil, nil, nil)
	}
	if r.Gate != nil {
		one.Gate = r.Gate.Error()
	}
	if now != nil {
		if failed, _ := failedParts(r, first); len(failed) > 0 {
			one.Failed = fmt.Sprintf("not rendered any more: %s: %v", foreign.List(failed, shownParts),
				r.Built.ReasonsOf(failed))
			publish.KeepFailed(now, old, r.Built.Response)
		}
	}
	target := TargetChange{Target: r.Entry.Key, Against: from}
	units := p.compareFiles(&target, r, old, now)
	if now != nil {
		p.checkUpdates(ctx, &target, r, old, now)
	}
	one.Targets = append(one.Targets, target)
	reviewed := p.reviewOf(r, one, &target, old, now)
	if first != nil && first.Built != nil && first.Built.Response != nil {
		reviewed.Findings.Before, reviewed.Findings.BeforeKnown = first.Built.Results, true
	}
	return one, units, reviewed
}
