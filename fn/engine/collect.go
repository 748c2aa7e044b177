// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/sidecar"
)

// collectOutcomes adds the units' outcomes to the report, in input order, and passes the documents that were not
// settled before to take.
func (in *Injector) collectOutcomes(report *Report, units []*documentUnit, take func(int, *manifest.Document)) {
	for _, u := range units {
		report.Outcomes = append(report.Outcomes, u.outcomes...)
		report.Results = append(report.Results, u.results...)
		report.Suppressed = append(report.Suppressed, u.suppressed...)
	}
	for item, u := range topLevel(units) {
		doc, err := assembleDocument(u)
		switch {
		case err != nil:
			u.results = nil
			u.addError("", err)
			report.Results = append(report.Results, u.results...)
		case u.dropped:
			report.Items[item].Doc = doc
		case doc != u.doc:
			take(item, doc)
		}
	}
}

// releaseChangedDocument passes the changed document to take if other units can no longer change it: an element becomes
// part of its list, and an object of a sidecar may have to be removed.
func (u *documentUnit) releaseChangedDocument(take func(int, *manifest.Document)) {
	if u.changed == nil || u.item < 0 || u.doc.Contains(sidecar.ObjectAnnotation) {
		return
	}
	take(u.item, u.changed)
	u.changed = nil
}

// topLevel returns the units that are not elements of another.
func topLevel(units []*documentUnit) []*documentUnit {
	inner := map[*documentUnit]bool{}
	var out []*documentUnit
	for _, u := range units {
		for _, e := range u.elements {
			inner[e] = true
		}
		if !inner[u] {
			out = append(out, u)
		}
	}
	return out
}

// assembleDocument returns the document of a unit with its changed elements put back.
func assembleDocument(u *documentUnit) (*manifest.Document, error) {
	if u.dropped {
		return &manifest.Document{}, nil
	}
	if u.elements == nil {
		if u.changed != nil {
			return u.changed.Filled(), nil
		}
		return u.doc, nil
	}
	docs := make([]*manifest.Document, len(u.elements))
	changed := false
	var drop []int
	for i, e := range u.elements {
		if e.dropped {
			docs[i], drop = e.doc, append(drop, i)
			continue
		}
		doc, err := assembleDocument(e)
		if err != nil {
			return nil, err
		}
		docs[i] = doc
		changed = changed || doc != e.doc
	}
	list := u.doc
	if changed {
		var err error
		if list, err = u.doc.WithItems(docs); err != nil {
			return nil, err
		}
	}
	if len(drop) > 0 {
		return withoutItems(list, drop)
	}
	return list, nil
}

func unionKeys(a, b map[string]any) []string {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	return slices.Sorted(maps.Keys(keys))
}
