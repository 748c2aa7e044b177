// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package release holds the releases of Istio 1 and ranges of them. The tables of features by release are built
// from them; a change that was backported has a range for each branch that it reached.
package release

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Release is 1.Minor.Patch.
type Release struct{ Minor, Patch int }

// last is the patch of the last release of a minor, and the minor of the last of all: "until now" in the tables.
const last = math.MaxInt32

// newestPatches are the last patch releases of each minor from 1.0 on whose sources the tables were compared with.
var newestPatches = []int{9, 17, 10, 8, 10, 10, 14, 8, 6, 9, 6, 8, 9, 9, 6, 7, 7, 8, 7, 10, 8, 6, 8, 6, 6, 5, 8, 9, 10, 6, 8, 4, 0}

// OldestMinor and NewestMinor are the first and last minors of Istio 1 that the tables describe.
const (
	OldestMinor = 0
	NewestMinor = 32
)

// Newest returns the last known release of a minor. For an unknown minor it returns the release after all others of
// that minor.
func Newest(minor int) Release {
	if minor < OldestMinor || minor > NewestMinor {
		return Release{minor, last}
	}
	return Release{minor, newestPatches[minor]}
}

// Known reports whether the release is one that the tables were compared with, or older than one of the same minor.
func (r Release) Known() bool {
	return r.Minor >= OldestMinor && r.Minor <= NewestMinor && r.Patch <= Newest(r.Minor).Patch
}

// Compare returns a negative number if r precedes o in the numbering, 0 if they are equal, and a positive number
// otherwise.
func (r Release) Compare(o Release) int {
	return cmp.Or(cmp.Compare(r.Minor, o.Minor), cmp.Compare(r.Patch, o.Patch))
}

// String returns 1.MINOR.PATCH, or 1.MINOR for the release after all others of the minor.
func (r Release) String() string {
	if r.Patch == last {
		return fmt.Sprintf("1.%d", r.Minor)
	}
	return fmt.Sprintf("1.%d.%d", r.Minor, r.Patch)
}

// Span is a range of releases in the order of their numbers, both ends included.
type Span struct{ From, To Release }

// Contains reports whether a release is in the range.
func (s Span) Contains(r Release) bool { return s.From.Compare(r) <= 0 && r.Compare(s.To) <= 0 }

// String returns the range as text: "1.9 to 1.27", "1.28 and later", "1.3", "1.23.6 to 1.23.9", "every version".
func (s Span) String() string {
	from, to := s.From.String(), s.To.String()
	if s.From.Patch == 0 {
		from = Release{s.From.Minor, last}.String()
	}
	switch {
	case s.To.Minor == last && s.From.Minor <= OldestMinor:
		return "every version"
	case s.To.Minor == last:
		return from + " and later"
	case from == to:
		return from
	case s.From == s.To:
		return s.From.String()
	case s.From.Minor == s.To.Minor && s.To.Patch == last:
		return from + " to " + to + ".x"
	case s.From.Minor == s.To.Minor:
		return s.From.String() + " to " + to
	default:
		return from + " to " + to
	}
}

// Narrow returns the part that two ranges have in common; ok is false where they have none.
func (s Span) Narrow(o Span) (common Span, ok bool) {
	if s.From.Compare(o.From) < 0 {
		s.From = o.From
	}
	if s.To.Compare(o.To) > 0 {
		s.To = o.To
	}
	return s, s.From.Compare(s.To) <= 0
}

// Spans are ranges of releases.
type Spans []Span

// Since returns the releases from some points on: 1.23.6, 1.24.4 and 1.26 are the rest of 1.23 and of 1.24 from
// those releases on, and everything from 1.26.0 on. Only the last point extends beyond its minor. It panics on a
// text that is not a release, as it is used in tables.
func Since(points ...string) Spans {
	out := make(Spans, len(points))
	for i, p := range points {
		from := parseRelease(p, 0)
		out[i] = Span{from, Release{from.Minor, last}}
	}
	out[len(out)-1].To = Release{last, last}
	return out
}

// Between returns the releases from one to another, both included: 1.5 as the first means 1.5.0, as the last all of 1.5. A
// text that is no release panics.
func Between(from, to string) Spans { return Spans{{parseRelease(from, 0), parseRelease(to, last)}} }

// Always is every release.
func Always() Spans { return Since("1.0") }

// And returns the releases that are in either.
func (s Spans) And(more Spans) Spans { return slices.Concat(s, more) }

// Contains reports whether a release is in one of the ranges.
func (s Spans) Contains(r Release) bool {
	return slices.ContainsFunc(s, func(span Span) bool { return span.Contains(r) })
}

// DependsOnPatch reports whether some releases of a minor are in the ranges and others are not.
func (s Spans) DependsOnPatch(minor int) bool {
	first := s.Contains(Release{minor, 0})
	for _, span := range s {
		for _, edge := range []Release{span.From, {span.To.Minor, min(span.To.Patch, last-1) + 1}} {
			if edge.Minor == minor && s.Contains(Release{minor, edge.Patch}) != first {
				return true
			}
		}
	}
	return false
}

// Hull returns the range from the first release to the last.
func (s Spans) Hull() Span {
	return Span{
		slices.MinFunc(s, func(a, b Span) int { return a.From.Compare(b.From) }).From,
		slices.MaxFunc(s, func(a, b Span) int { return a.To.Compare(b.To) }).To,
	}
}

// String returns the ranges as text, those that touch as one.
func (s Spans) String() string {
	sorted := slices.SortedFunc(slices.Values(s), func(a, b Span) int { return a.From.Compare(b.From) })
	var merged []Span
	for _, span := range sorted {
		if n := len(merged); n > 0 && spansTouch(merged[n-1], span) {
			if merged[n-1].To.Compare(span.To) < 0 {
				merged[n-1].To = span.To
			}
			continue
		}
		merged = append(merged, span)
	}
	parts := make([]string, len(merged))
	for i, span := range merged {
		parts[i] = span.String()
	}
	return strings.Join(parts, ", ")
}

// spansTouch reports whether b begins in a or just after it.
func spansTouch(a, b Span) bool {
	after := Release{a.To.Minor, min(a.To.Patch, last-1) + 1}
	if a.To.Patch == last {
		after = Release{min(a.To.Minor, last-1) + 1, 0}
	}
	return b.From.Compare(after) <= 0
}

// parseRelease reads 1.MINOR or 1.MINOR.PATCH; patch is the one where the text has none.
func parseRelease(text string, patch int) Release {
	numbers, ok := strings.CutPrefix(text, "1.")
	minorText, patchText, full := strings.Cut(numbers, ".")
	minor, err := strconv.Atoi(minorText)
	if full && err == nil {
		patch, err = strconv.Atoi(patchText)
	}
	if !ok || err != nil {
		panic(fmt.Sprintf("reading a release of Istio: %q is none", text))
	}
	return Release{minor, patch}
}
