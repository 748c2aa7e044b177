// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package feature records which release of Istio does what. Its table is the single place for that: to follow a
// change of Istio, add a row and read it where the behaviour is implemented. What templates can name (functions and
// fields of their data) is in the tables of package istio, and the fields of the mesh configuration are in the
// schema of package mesh.
package feature

import (
	"github.com/prerig/prerig/fn/istio/release"
)

// Name names one thing that some releases do and others do not. It reads well in a sentence about what differs.
type Name string

// featureRow lists the releases that have a feature, and where in Istio that can be checked.
type featureRow struct {
	name Name
	release.Spans
	// source is the file of github.com/istio/istio, or other evidence.
	source string
}

// spansByName is the table by name. It is never written after the start.
var spansByName = func() map[Name]release.Spans {
	out := make(map[Name]release.Spans, len(table))
	for _, r := range table {
		out[r.name] = r.Spans
	}
	return out
}()

// In reports whether a release has a feature.
func In(r release.Release, name Name) bool { return spansByName[name].Contains(r) }

// Since returns the first release of the last range that has a feature: of one that stays, that from which on every later
// release has it. Of a name that is in no row it returns the release after all others.
func Since(name Name) release.Release {
	spans := spansByName[name]
	if len(spans) == 0 {
		return release.Newest(release.NewestMinor + 1)
	}
	return spans[len(spans)-1].From
}

// Spans returns the releases that have a feature.
func Spans(name Name) release.Spans { return spansByName[name] }

// Set is what one release does.
type Set map[Name]bool

// Of returns the features of a release.
func Of(r release.Release) Set {
	out := make(Set, len(table))
	for _, row := range table {
		if row.Contains(r) {
			out[row.name] = true
		}
	}
	return out
}

// Has reports whether the feature is in the set.
func (s Set) Has(name Name) bool { return s[name] }

// DependingOnPatch returns the features that some patch releases of a minor have and others do not, in the table's order.
func DependingOnPatch(minor int) []Name {
	var out []Name
	for _, row := range table {
		if row.DependsOnPatch(minor) {
			out = append(out, row.name)
		}
	}
	return out
}
