// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"maps"
	"path"
	"slices"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/review"
	"github.com/prerig/prerig/pipeline/review/diff/group"
	"github.com/prerig/prerig/pipeline/review/pairing"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// CompareEnds compares the results of pipelines at the two ends of a range of commits; from names the first. What
// matters is the cluster: an object is paired with itself, whichever pipeline, unit or file renders it (see the package
// pairing). A pipeline that fails at either end has no changes; at both, it has no error either, and is returned in
// still, as are units and releases that fail at both ends.
func (p *Renderer) CompareEnds(ctx context.Context, from string, before,
	after []Result) (c *Comparison, still []Still) {
	c = &Comparison{Pipelines: []PipelineChange{}, noun: "build"}
	all, still := endPairs(before, after)
	var builds []*pairing.Build
	for _, e := range all {
		if e.keepFailed(); e.build != nil {
			builds = append(builds, e.build)
		}
	}
	pairs := pairing.Pair(builds)
	var units []*group.Unit
	notes := objectNotes{}
	for _, e := range all {
		if e.build != nil && len(e.build.Before)+len(e.build.After) == 0 && e.after == nil {
			continue // all of it has another build now
		}
		if len(e.mended) > 0 {
			still = append(still, Still{Build: e.key(), Parts: e.mended, Err: e.before.Built.ReasonsOf(e.mended), Mended: true})
		}
		if _, asBefore := failedParts(e.result(), e.before); e.after != nil && len(asBefore) > 0 {
			still = append(still, Still{Build: e.key(), Parts: asBefore, Err: e.after.Built.ReasonsOf(asBefore)})
		}
		if e.err == nil && e.after != nil {
			c.Remarks = append(c.Remarks, remarksOf(e)...)
		}
		change, found, reviewed := p.compareEnd(ctx, from, e, pairs, notes)
		c.Pipelines = append(c.Pipelines, change)
		units = append(units, found...)
		c.reviewed = append(c.reviewed, reviewed)
	}
	if slices.ContainsFunc(still, func(one Still) bool { return one.Mended }) {
		c.unseen = "what could not be rendered before is not compared"
	}
	moves, replaced := handovers(pairs, all)
	c.Remarks = append(c.Remarks, replaced...)
	c.Moves = movesOf(moves, all)
	c.addUnits(units, notes)
	return c, still
}

// addUnits adds differences to the changes.
func (c *Comparison) addUnits(units []*group.Unit, notes objectNotes) {
	c.Changes = group.Changes(units)
	notes.annotate(c.Changes)
	dangerousFirst(c.Changes)
}

// FirstLook is what is known of the pipelines of the second end before the first one is rendered.
type FirstLook struct {
	// Same are those that are the same at the first end: neither what they read differs there, nor the pipeline. They have
	// the numbers of their objects.
	Same map[string]int
	// Directories are those that Applications of any pipeline are rendered from.
	Directories Directories
	// Gaps are those of Same with units and releases that cannot be rendered, and Others the ones that are not among Same.
	Gaps, Others []Result
}

// Look renders pipelines, and compares what they read with the files of the first end. others are its pipelines, and changed
// the files that differ.
func (p *Renderer) Look(ctx context.Context, entries, others []catalog.Entry, files *tree.Tree, changed []string) FirstLook {
	digests := map[string]string{}
	for _, e := range others {
		digests[e.Key] = e.Digest
	}
	out := FirstLook{Same: map[string]int{}, Directories: Directories{}}
	for _, r := range p.All(ctx, entries) {
		out.Directories.add(r)
		digest, ok := digests[r.Entry.Key]
		isAffected := r.Built == nil || r.Err != nil || reads(r.Built.Record, changed) && reasonAffected(ctx, r.Built, r.Err, files) != ""
		if !ok || digest != r.Entry.Digest || isAffected {
			out.Others = append(out.Others, r)
			continue
		}
		out.Same[r.Entry.Key] = 0
		if response := r.Response(); response != nil {
			out.Same[r.Entry.Key] = len(response.Objects)
			if len(response.NotRendered()) > 0 {
				out.Gaps = append(out.Gaps, r)
			}
		}
	}
	return out
}

// reads reports whether any of some files may be among what was looked at, or below it.
func reads(record tree.Record, files []string) bool {
	seen := map[string]bool{}
	for _, access := range record {
		name := path.Clean(access.Path)
		seen[name] = seen[name] || name != "." || access.Op == tree.OpList
	}
	return slices.ContainsFunc(files, func(name string) bool {
		for at := name; at != "."; at = path.Dir(at) {
			if seen[at] {
				return true
			}
		}
		return seen["."]
	})
}

// AddUntouched records how many pipelines read nothing that differs: they were not rendered.
func (c *Comparison) AddUntouched(pipelines int) { c.Untouched += pipelines }

// AddUnaffected adds pipelines that were not rendered at the first end, because nothing that they read has changed.
func (c *Comparison) AddUnaffected(from string, pipelines map[string]int) {
	for _, key := range slices.Sorted(maps.Keys(pipelines)) {
		c.Pipelines = append(c.Pipelines, PipelineChange{Pipeline: key, Targets: []TargetChange{{Target: key, Against: from, Unchanged: pipelines[key]}}})
		c.reviewed = append(c.reviewed, review.Pipeline{Name: key})
	}
}

// SetUnseen records how many changed files are in nothing that was compared: where nothing else changes, that is not
// known of them.
func (c *Comparison) SetUnseen(files int) {
	if files > 0 {
		c.unseen = countWithNoun(files, "changed file") + " in nothing that was compared"
	}
}

// WrittenBuild is the name of what is compared as it is written, as it cannot be rendered.
const WrittenBuild = "not rendered"

// AddWritten adds files of the source that nothing has read which could be rendered: they are compared as they are
// written. owners are what would render them, by their paths.
func (c *Comparison) AddWritten(from string, before, after map[string][]byte, owners map[string]string) {
	files := &pairing.Build{Key: WrittenBuild, Before: before, After: after}
	pairing.Pair([]*pairing.Build{files})
	units, same := group.Compare(files.Before, files.After)
	if len(units) == 0 {
		return
	}
	target := TargetChange{Target: WrittenBuild, Against: from, Unchanged: same}
	for _, u := range units {
		u.Pipeline, u.Target = WrittenBuild, WrittenBuild
		target.count(u)
		if u.Name != u.Path {
			u.Name += " in " + u.Path
		}
	}
	c.Pipelines = append(c.Pipelines, PipelineChange{Pipeline: WrittenBuild, Targets: []TargetChange{target}})
	c.reviewed = append(c.reviewed, review.Pipeline{Name: WrittenBuild, Before: files.Before, After: files.After})
	changes := group.Changes(units)
	for i := range changes {
		for j := range changes[i].Objects {
			o := &changes[i].Objects[j]
			for _, place := range o.Places {
				if owner := owners[place.Path]; owner != "" {
					o.Owner = owner + ", which cannot be rendered"
				}
			}
		}
	}
	c.Changes = append(c.Changes, changes...)
	dangerousFirst(c.Changes)
}

// StillOf returns what cannot be rendered of a result whose build is the same at both ends.
func StillOf(r Result) Still {
	parts := r.Response().NotRendered()
	return Still{Build: r.Entry.Key, Parts: parts, Err: r.Built.ReasonsOf(parts)}
}

// Still is what cannot be rendered at either end.
type Still struct {
	Build string
	// Parts are the units and releases of the build that fail; none if all of it does.
	Parts []string
	Err   error
	// Mended reports whether it could not be rendered at the first end only.
	Mended bool
	// Loose reports whether nothing that a cluster applies leads to it.
	Loose bool
}

// failedParts returns the units and releases of a result that fail, those that did not at the first end apart from
// those that did: of these neither end has objects.
func failedParts(r, first *Result) (now, asBefore []string) {
	response := r.Response()
	if response == nil {
		return nil, nil
	}
	for _, name := range response.NotRendered() {
		if failsIn(first, name) && isSameCauseOf(name, first, r) {
			asBefore = append(asBefore, name)
		} else {
			now = append(now, name)
		}
	}
	return now, asBefore
}

// isSameCauseOf is isSameCause for a unit or release that fails at both ends.
func isSameCauseOf(name string, first, second *Result) bool {
	before, after := first.Built.ReasonsOf([]string{name}), second.Built.ReasonsOf([]string{name})
	return before == nil || after == nil || isSameCause(before, after)
}

// compareEnd compares one pipeline at both ends.
func (p *Renderer) compareEnd(ctx context.Context, from string, e *endPair, pairs pairing.Pairs,
	notes objectNotes) (PipelineChange, []*group.Unit, review.Pipeline) {
	r := e.result()
	one := PipelineChange{Pipeline: r.Entry.Key, Targets: []TargetChange{}, Failed: WithoutHints(e.failed)}
	if r.Snapshot != nil {
		one.Revision = r.Snapshot.Revision
	}
	if e.err != nil {
		one.Error = WithoutHints(e.err.Error())
		return one, nil, ofBuild(r, p.reviewOf(r, one, nil, nil, nil))
	}
	fresh := e.newFindings()
	if err := publish.CheckFindings(r.Entry.Pipeline.Spec.Gates, fresh); err != nil {
		one.Gate = err.Error()
	}
	shown := e.build.Before
	shown = notes.addRenames(e, pairs.Renames, shown)
	notes.addShared(e, pairs.Shared)
	target := TargetChange{Target: r.Entry.Key, Against: from}
	units := p.compareFiles(&target, r, shown, e.build.After)
	e.markKept(&target, units, notes)
	notes.addUnits(e, units)
	if e.after != nil {
		p.checkUpdates(ctx, &target, r, withoutUnsure(e, pairs), e.build.After)
		placeInSource(r, target.Findings)
		if err := publish.CheckFindings(r.Entry.Pipeline.Spec.Gates, target.Findings); err != nil {
			target.Gate = err.Error()
		}
	}
	reviewed := p.reviewOf(r, one, &target, shown, e.build.After)
	target.Findings = append(target.Findings, fresh...)
	one.Targets = append(one.Targets, target)
	reviewed.Stays = notes.stays(e)
	if before := e.before.Response(); before != nil {
		reviewed.Findings.Before, reviewed.Findings.BeforeKnown = before.Results, true
	}
	return one, units, ofBuild(r, reviewed)
}

// ofBuild leaves out of a review what only a pipeline has.
func ofBuild(r *Result, reviewed review.Pipeline) review.Pipeline {
	reviewed.Command = "" // a build has no name that prerig render knows
	if r.Snapshot == nil || r.Snapshot.URL == "" {
		reviewed.Sources = nil
	}
	if r.Entry.Pipeline == nil || len(r.Entry.Pipeline.Spec.Policies) == 0 {
		reviewed.PolicyAfter = ""
	}
	return reviewed
}
