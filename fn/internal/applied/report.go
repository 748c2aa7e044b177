// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
)

// Report is what a run found.
type Report struct {
	// Kubernetes is the release that validated.
	Kubernetes string
	// Objects is how many objects were injected into, and Injected how many of them changed.
	Objects, Injected int
	// Invalid are changed objects that a cluster rejects as they were written.
	Invalid int
	// Refused are batches that Prerig refused as a whole, by the error.
	Refused map[string]int
	// Checks is how many questions the validation answered.
	Checks int
	// Failures are unexplained rejections, Expected the known ones, by their reason.
	Failures []Finding
	Expected map[string]int
}

func (r *Report) add(f Finding) {
	if f.Expected == "" {
		r.Failures = append(r.Failures, f)
		return
	}
	r.Expected[f.Expected]++
}

var (
	position = regexp.MustCompile(`\[\d+\]`)
	quoted   = regexp.MustCompile(`"[^"]*"|\{.*\}|\d+[a-zA-Z]*`)
)

func indentedJSON(object map[string]any) []byte {
	text, _ := json.MarshalIndent(object, "", " ") // an object that was decoded can be encoded
	return text
}

// Write writes the figures, and one example of each kind of failure; with show, also its objects.
func (r *Report) Write(w io.Writer, show bool) error {
	fmt.Fprintf(w, "Kubernetes %s: %d objects, %d changed by the injection, %d of these invalid before it, %d checks\n", r.Kubernetes, r.Objects, r.Injected, r.Invalid, r.Checks)
	for _, reason := range slices.Sorted(maps.Keys(r.Expected)) {
		fmt.Fprintf(w, "%6d  expected: %s\n", r.Expected[reason], reason)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Refused)) {
		fmt.Fprintf(w, "%6d  batches refused: %s\n", r.Refused[reason], reason)
	}
	type group struct {
		count   int
		example Finding
	}
	groups := map[string]*group{}
	for _, f := range r.Failures {
		key := f.Stage + " " + f.Operation + " " + quoted.ReplaceAllString(position.ReplaceAllString(f.Problem, "[]"), "…")
		if groups[key] == nil {
			groups[key] = &group{example: f}
		}
		groups[key].count++
	}
	var sorted []*group
	for _, g := range groups {
		sorted = append(sorted, g)
	}
	slices.SortFunc(sorted, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.example.Case+a.example.Problem, b.example.Case+b.example.Problem))
	})
	for _, g := range sorted {
		fmt.Fprintf(w, "%6d  FAILED %s of what was %s: %s\n        such as %s\n", g.count, g.example.Operation, g.example.Stage, g.example.Problem, g.example.Case)
		if show {
			fmt.Fprintf(w, "as written:\n%s\n%s:\n%s\n", indentedJSON(g.example.Written), g.example.Stage, indentedJSON(g.example.Result))
		}
	}
	_, err := fmt.Fprintf(w, "%d failures\n", len(r.Failures))
	return err
}
