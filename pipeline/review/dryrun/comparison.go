// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/review"
	"github.com/prerig/prerig/pipeline/review/diff/group"
)

// Comparison is what would change, over all pipelines.
type Comparison struct {
	// Pipelines has one entry for each that was compared.
	Pipelines []PipelineChange `json:"pipelines"`
	// Changes are the differences, each once, the most common first; deletions that take other objects or data along
	// are before all.
	Changes []group.Change `json:"changes"`
	// Remarks are effects that the changes of objects do not show, between the two ends of a range of commits.
	Remarks []Remark `json:"remarks,omitempty"`
	// Moves are objects that another build or unit renders than before.
	Moves []Move `json:"moves,omitempty"`
	// Untouched is how many builds were not rendered, as they read nothing that differs.
	Untouched int `json:"untouched,omitempty"`
	// Notes are warnings and informations about the comparison: what is not rendered, and what it does not show.
	Notes []string `json:"notes,omitempty"`

	reviewed []review.Pipeline
	noun     string
	unseen   string // what the comparison does not show

	textLines int // of each change in Text, 0 for all
}

// pipelineNoun is what the output calls a pipeline.
func (c *Comparison) pipelineNoun() string { return cmp.Or(c.noun, "pipeline") }

// PipelineChange counts what would change of one pipeline.
type PipelineChange struct {
	Pipeline string `json:"pipeline"`
	Revision string `json:"revision,omitempty"`
	// Targets has one entry for each place that it is published to.
	Targets []TargetChange `json:"targets"`
	// Error is the reason why it could not be rendered, Gate the reason why the result would be rejected
	// everywhere.
	Error string `json:"error,omitempty"`
	Gate  string `json:"gate,omitempty"`
	// Failed is the reason why parts of it could not be rendered, which keep what is published.
	Failed string `json:"failed,omitempty"`
}

// TargetChange counts what would change at one place. The counts are of objects, and of files where these hold none.
type TargetChange struct {
	// Target is named as in the status of the pipeline, Against is what it was compared with, in words.
	Target  string `json:"target"`
	Against string `json:"against"`
	// Objects that are added, modified, deleted and equal.
	Added     int `json:"added"`
	Modified  int `json:"modified"`
	Deleted   int `json:"deleted"`
	Unchanged int `json:"unchanged"`
	// Orphaned are no longer rendered, and nothing deletes them.
	Orphaned int `json:"orphaned,omitempty"`
	// Error is the reason why it could not be compared, Gate the reason why the result would be rejected here.
	Error string `json:"error,omitempty"`
	Gate  string `json:"gate,omitempty"`
	// Findings are about changes that the API server would reject, or drop silently.
	Findings result.Results `json:"findings,omitempty"`
}

// Empty reports whether the comparison has no changes.
func (c *Comparison) Empty() bool { return len(c.Changes)+len(c.Remarks) == 0 }

// Failed reports whether any pipeline could not be compared, or would be refused.
func (c *Comparison) Failed() bool {
	for _, p := range c.Pipelines {
		if p.Error != "" || p.Gate != "" || p.Failed != "" {
			return true
		}
		for _, t := range p.Targets {
			if t.Error != "" || t.Gate != "" {
				return true
			}
		}
	}
	return false
}

// Compare renders pipelines and finds what differs from what is published, at every place of each; or, where dir is not
// "", from a directory that the results were written to before.
func (p *Renderer) Compare(ctx context.Context, entries []catalog.Entry, dir string) *Comparison {
	type compared struct {
		change PipelineChange
		units  []*group.Unit
		review []review.Pipeline
	}
	all := forEachPipeline(ctx, p, entries, func(ctx context.Context, e catalog.Entry) compared {
		r := Result{Entry: e, compares: true}
		r.Err = p.renderResult(ctx, &r)
		change, units, reviewed := p.compareOne(ctx, &r, dir)
		return compared{change, units, reviewed}
	})
	c := &Comparison{Pipelines: []PipelineChange{}}
	var units []*group.Unit
	for _, one := range all {
		c.Pipelines = append(c.Pipelines, one.change)
		units = append(units, one.units...)
		c.reviewed = append(c.reviewed, one.review...)
	}
	c.Changes = group.Changes(units)
	dangerousFirst(c.Changes)
	return c
}

func (p *Renderer) compareOne(ctx context.Context, r *Result,
	dir string) (PipelineChange, []*group.Unit, []review.Pipeline) {
	one := PipelineChange{Pipeline: r.Entry.Key, Targets: []TargetChange{}}
	if r.Snapshot != nil {
		one.Revision = r.Snapshot.Revision
	}
	if r.Err != nil {
		one.Error = r.Err.Error()
		return one, nil, []review.Pipeline{p.reviewOf(r, one, nil, nil, nil)}
	}
	if r.Gate != nil {
		one.Gate = r.Gate.Error()
	}
	if err := r.Built.UnitError(); err != nil {
		one.Failed = err.Error()
	}
	if dir != "" {
		return p.compareDir(ctx, one, r, dir)
	}
	var units []*group.Unit
	var reviewed []review.Pipeline
	for _, to := range r.Entry.Pipeline.Spec.Publish {
		target := TargetChange{Target: to.Target(), Against: to.ComparedWith()}
		after, err := p.filesForTarget(ctx, r, to)
		var before publish.Holding
		if err == nil {
			before, err = p.readPublished(ctx, r, to, after)
		}
		if err != nil {
			target.Error = err.Error()
		} else {
			objects := publish.KeepFailed(after, before.Files, r.Built.Response)
			units = append(units, p.compareFiles(&target, r, before.Files, after)...)
			refused := before.Refused
			if refused == nil {
				refused = before.Gate(publish.Gate(r.Entry.Pipeline.Spec.Gates, objects), objects)
			}
			if refused != nil {
				target.Gate = refused.Error()
			}
			p.checkUpdates(ctx, &target, r, before.Files, after)
		}
		if p.KeepFiles {
			reviewed = addPlace(reviewed, p.reviewOf(r, one, &target, before.Files, after), target.Target)
		}
		one.Targets = append(one.Targets, target)
	}
	return one, units, reviewed
}

// compareDir compares with a directory: prerig render writes into it what the first place gets.
func (p *Renderer) compareDir(ctx context.Context, one PipelineChange, r *Result,
	dir string) (PipelineChange, []*group.Unit, []review.Pipeline) {
	target := TargetChange{Target: filepath.Join(dir, filepath.FromSlash(r.Path)), Against: "directory " + dir}
	before, err := readDirectory(target.Target)
	if err != nil {
		target.Error = err.Error()
		reviewed := []review.Pipeline{p.reviewOf(r, one, &target, nil, nil)}
		one.Targets = append(one.Targets, target)
		return one, nil, reviewed
	}
	publish.KeepFailed(r.Files, before, r.Built.Response)
	units := p.compareFiles(&target, r, before, r.Files)
	p.checkUpdates(ctx, &target, r, before, r.Files)
	one.Targets = append(one.Targets, target)
	if !p.KeepFiles {
		return one, units, nil
	}
	return one, units, []review.Pipeline{p.reviewOf(r, one, &target, before, r.Files)}
}

// checkUpdates finds what the API server would reject of the changes.
func (p *Renderer) checkUpdates(ctx context.Context, target *TargetChange, r *Result, before, after map[string][]byte) {
	found, err := p.Builder.CheckUpdates(ctx, r.Entry.Pipeline, r.Snapshot.Tree, before, after)
	if err != nil {
		target.Error = err.Error()
		return
	}
	publish.PlaceFindings(r.Entry.Pipeline.Spec, found, r.Built.Objects, nil)
	target.Findings = publish.WithoutKnown(found, r.Built.Results)
	if err := publish.CheckFindings(r.Entry.Pipeline.Spec.Gates, target.Findings); err != nil && target.Gate == "" {
		target.Gate = err.Error()
	}
}

// compareFiles finds what differs, and counts it.
func (p *Renderer) compareFiles(target *TargetChange, r *Result, before, after map[string][]byte) []*group.Unit {
	units, same := group.Compare(before, after)
	target.Unchanged = same
	for _, u := range units {
		u.Pipeline, u.Target = r.Entry.Key, target.Target
		target.count(u)
	}
	return units
}

// count counts a difference.
func (t *TargetChange) count(u *group.Unit) {
	switch u.Kind {
	case group.Added:
		t.Added++
	case group.Deleted:
		t.Deleted++
	default:
		t.Modified++
	}
}
