// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/lint/baseline"
	"github.com/prerig/prerig/fn/result"
)

// finding is one that pipelines and objects have in common.
type finding struct {
	severity      result.Severity
	code, message string
	// names of the objects, and at the same with the file and line of the first finding about each.
	names, at []string
}

// newFindingsSection shows new findings, the same once.
func (r *review) newFindingsSection() section {
	s := section{title: "New findings", what: "finding"}
	var all []*finding
	found := map[string]*finding{}
	for i := range r.change.Pipelines {
		for _, one := range r.newFindingsOf(&r.change.Pipelines[i]) {
			code := one.Tags[result.TagCode]
			key := string(one.Severity) + "\x00" + code + "\x00" + one.Message
			f := found[key]
			if f == nil {
				f = &finding{severity: one.Severity, code: code, message: one.Message}
				found[key], all = f, append(all, f)
			}
			for _, place := range placesOf(one) {
				if name := place.ResourceRef.String(); !slices.Contains(f.names, name) {
					f.names, f.at = append(f.names, name), append(f.at, place.String())
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *finding) int {
		return cmp.Or(cmp.Compare(b.severity.Rank(), a.severity.Rank()), cmp.Compare(len(b.at), len(a.at)))
	})
	for _, f := range all {
		text := fmt.Sprintf("- **%s** %s", severityWord(f.severity), codeSpan(f.message))
		if f.code != "" {
			text += " (" + codeSpan(f.code) + ")"
		}
		if len(f.at) > 0 {
			text += ": " + r.joinLimitedNames(f.at)
		}
		s.pieces = append(s.pieces, piece{rank: rankFinding, forms: []string{text + "\n"}})
	}
	return s
}

func severityWord(s result.Severity) string {
	if s.Rank() == 0 {
		return string(result.Error)
	}
	return string(s)
}

func refsOf(r result.Result) (out []result.ResourceRef) {
	for _, p := range placesOf(r) {
		out = append(out, p.ResourceRef)
	}
	return out
}

func placesOf(r result.Result) []result.Place {
	out := slices.Clone(r.Places)
	if r.ResourceRef != nil {
		out = append(out, result.Place{ResourceRef: *r.ResourceRef, Field: r.Field, File: r.File})
	}
	return out
}

// newFindingsOf returns the findings of a pipeline that are new.
func (r *review) newFindingsOf(p *Pipeline) result.Results {
	after := lint.JoinMesh(slices.DeleteFunc(slices.Clone(p.Findings.After), func(one result.Result) bool {
		return one.Severity == result.Info && one.Tags[result.TagCode] == "" // what was done is no finding
	}))
	before := p.Findings.Before
	if !p.Findings.BeforeKnown {
		if after = r.findingsAboutChanged(p, after); len(after) == 0 {
			return nil
		}
		before = append(slices.Clone(before), r.lintBefore(p)...)
	}
	after, _, _ = baseline.New(lint.JoinMesh(slices.Clone(before))).Filter(after)
	// What no rule of lint's has found, such as a schema, has no baseline.
	known := map[string]int{}
	for _, one := range before {
		known[findingKey(one)]++
	}
	return slices.DeleteFunc(after, func(one result.Result) bool {
		if _, ok := lint.Lookup(one.Tags[result.TagCode]); ok {
			return false
		}
		key := findingKey(one)
		known[key]--
		return known[key] >= 0
	})
}

// findingsAboutChanged leaves the findings about objects that change, and errors about none.
func (r *review) findingsAboutChanged(p *Pipeline, rs result.Results) result.Results {
	changed := map[string]bool{}
	for _, o := range r.objects {
		if o.pipeline == p.Name {
			changed[o.displayName()] = true
		}
	}
	return slices.DeleteFunc(rs, func(one result.Result) bool {
		refs := refsOf(one)
		if len(refs) == 0 {
			return one.Severity != result.Error
		}
		return !slices.ContainsFunc(refs, func(ref result.ResourceRef) bool { return changed[ref.String()] })
	})
}

func findingKey(r result.Result) string {
	key := r.Tags[result.TagCode] + "\x00" + r.Message
	for _, ref := range refsOf(r) {
		key += "\x00" + ref.String()
	}
	if r.Field != nil {
		key += "\x00" + r.Field.Path
	}
	return key
}
