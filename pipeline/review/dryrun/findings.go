// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/review/diff/group"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// findings returns what is found about changes, those that several places have in common once, errors first.
func (c *Comparison) findings() (out result.Results) {
	seen := map[string]bool{}
	for _, p := range c.Pipelines {
		for _, t := range p.Targets {
			for _, one := range t.Findings {
				if key := one.String(); !seen[key] {
					seen[key], out = true, append(out, one)
				}
			}
		}
	}
	out.Sort()
	return out
}

// findingLines returns a line for each finding, those with one cause together: the same message about the same field.
func (c *Comparison) findingLines() (out []string) {
	alike := map[string]result.Results{}
	var order []string
	for _, one := range c.findings() {
		key := string(one.Severity) + "\x00" + one.Message
		if one.Field != nil {
			key += "\x00" + one.Field.Path
		}
		if one.ResourceRef == nil {
			key = one.String()
		}
		if alike[key] == nil {
			order = append(order, key)
		}
		alike[key] = append(alike[key], one)
	}
	for _, key := range order {
		text := alike[key][0].String()
		var names []string
		for _, one := range alike[key][1:] {
			names = append(names, one.ResourceRef.String())
		}
		if len(names) > 0 {
			text += fmt.Sprintf("; the same in %s: %s", countWithNoun(len(names), "more object"), foreign.List(names, shownParts))
		}
		out = append(out, text)
	}
	return out
}

// newFindings returns the warnings and errors about the objects of the second end that the first one does not have.
func (e *endPair) newFindings() (out result.Results) {
	after := e.after.Response()
	if after == nil {
		return nil
	}
	placeInSource(e.after, after.Results)
	out = slices.DeleteFunc(slices.Clone(after.Results), func(one result.Result) bool {
		code := one.Tags[result.TagCode]
		return one.Severity == result.Info || code == "" || code == render.CodeVariableKept || render.IsOfFailed(one)
	})
	if before := e.before.Response(); before != nil {
		out = publish.WithoutKnown(out, before.Results)
	}
	for i := range out {
		if out[i].Tags[result.TagCode] == render.CodeVariableMissing { // the change has left it without a value
			out[i].Severity = result.Error
			out[i].Tags = maps.Clone(out[i].Tags)
			delete(out[i].Tags, render.TagUnit) // the unit is rendered all the same
		}
	}
	return out
}

// placeInSource changes findings that have the file of a result, so that they have that of the source, or none where
// the build makes the object.
func placeInSource(r *Result, found result.Results) {
	if r.Snapshot == nil || r.Snapshot.Tree == nil || r.Response() == nil {
		return
	}
	files := tree.NewView(r.Snapshot.Tree, tree.Limits{})
	for i := range found {
		if found[i].File == nil || found[i].ResourceRef == nil {
			continue
		}
		if _, err := files.Lookup(found[i].File.Path); err == nil {
			continue
		}
		found[i].File = nil
		ref := found[i].ResourceRef
		for _, o := range r.Built.Objects {
			if o.Source.Path != "" && o.Kind == ref.Kind && o.Namespace == ref.Namespace && o.Name == ref.Name {
				found[i].File = &result.File{Path: o.Source.Path, Line: o.Source.Line}
			}
		}
	}
}

// destroyedBy returns what the deletion of a change's objects also destroys, or "" if it destroys only these.
func destroyedBy(c group.Change) string {
	if c.Kind != group.Deleted {
		return ""
	}
	for _, o := range c.Objects {
		kind, _, _ := strings.Cut(o.Name, " ")
		for _, apiGroup := range []string{"", "apiextensions.k8s.io"} {
			if why := (gate.Identity{Group: apiGroup, Kind: kind}).Destroys(); why != "" {
				return why
			}
		}
	}
	return ""
}

// dangersOf returns the dangers of a change, each once.
func dangersOf(c group.Change) (out []string) {
	for _, o := range c.Objects {
		for _, text := range o.Dangers {
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// dangerousFirst moves changes with dangers to the front, before them the deletions that take something along.
func dangerousFirst(changes []group.Change) {
	rank := func(c group.Change) int {
		switch {
		case destroyedBy(c) != "":
			return 0
		case len(dangersOf(c)) > 0:
			return 1
		case c.Kind == group.Orphaned:
			return 2
		}
		return 3
	}
	slices.SortStableFunc(changes, func(a, b group.Change) int { return rank(a) - rank(b) })
}
