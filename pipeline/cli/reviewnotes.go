// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/review"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	sourcetree "github.com/prerig/prerig/pipeline/source/tree"
)

// maxNotes is how much of a comment the notes may take.
const maxNotes = 3000

// printNotes adds the notes to a comment, as text that is no markup.
func printNotes(w io.Writer, notes string) {
	if notes != "" {
		fmt.Fprint(w, "\n"+review.FencedBlock("text", foreign.Head(strings.TrimSuffix(notes, "\n"), maxNotes-100)))
	}
}

// printVariables names the variables of Flux that are compared as their text.
func printVariables(w io.Writer, results []dryrun.Result) {
	names := map[string]bool{}
	for _, r := range results {
		if r.Built == nil || r.Built.Response == nil {
			continue
		}
		for _, one := range r.Built.Results {
			if one.Tags[result.TagCode] == render.CodeVariableKept {
				names[one.Tags[render.TagVariable]] = true
			}
		}
	}
	if len(names) > 0 {
		const show = 5
		fmt.Fprintf(w, "info: compared as text, as only the cluster or a key has the values: the variables %s\n",
			foreign.List(slices.Sorted(maps.Keys(names)), show))
	}
}

// printUncovered names the changed manifests that no comparison has read.
func printUncovered(w io.Writer, left []string) {
	if len(left) > 0 {
		const show = 3
		fmt.Fprintf(w, "warning: changed, and in nothing that was compared: %s\n", foreign.List(left, show))
	}
}

// uncoveredFiles returns the changed manifests that no comparison has read, such as the values of a chart that cannot be rendered: that
// nothing would change is not known of them.
func uncoveredFiles(base, head *end, results ...[]dryrun.Result) (left []string) {
	read := map[string]bool{}
	for _, r := range slices.Concat(results...) {
		if r.Built == nil || r.Err != nil {
			continue
		}
		for _, access := range r.Built.Record {
			read[access.Path] = read[access.Path] || access.Op == sourcetree.OpRead
		}
	}
	one, other := sourcetree.NewView(base.snapshot.Tree, sourcetree.Limits{}), sourcetree.NewView(head.snapshot.Tree,
		sourcetree.Limits{})
	for _, name := range slices.Sorted(maps.Keys(manifestsIn(one, other))) {
		if read[name] {
			continue
		}
		before, errBefore := one.Read(name)
		after, errAfter := other.Read(name)
		if !bytes.Equal(before, after) || (errBefore == nil) != (errAfter == nil) {
			left = append(left, name)
		}
	}
	return left
}

// manifestsIn returns the files of trees that have the names of manifests. Hidden ones are for other tools.
func manifestsIn(trees ...sourcetree.Reader) map[string]bool {
	names := map[string]bool{}
	for _, one := range trees {
		for next := []string{"."}; len(next) > 0; next = next[1:] {
			entries, err := one.List(next[0])
			if err != nil {
				continue // a submodule
			}
			for _, e := range entries {
				base := path.Base(e.Path)
				switch {
				case strings.HasPrefix(base, "."):
				case e.Dir:
					next = append(next, e.Path)
				case manifest.IsFileName(base):
					names[e.Path] = true
				}
			}
		}
	}
	return names
}

// printStill names what cannot be rendered at either end: a line for each build, or one for many.
func printStill(w io.Writer, still []dryrun.Still) {
	const show, longest = 3, 300
	var names, reasons []string
	for _, one := range still {
		what := one.Build
		if len(one.Parts) > 0 {
			what = foreign.List(one.Parts, show) + " of " + one.Build
		}
		reason, _, _ := strings.Cut(one.Err.Error(), "\n")
		names, reasons = append(names, what), append(reasons, foreign.Head(reason, longest))
	}
	if len(still) > show {
		fmt.Fprintf(w, "info: %d builds cannot be rendered, as before: %s; the first: %s\n", len(still),
			foreign.List(names, show), reasons[0])
		return
	}
	for i, name := range names {
		fmt.Fprintf(w, "info: %s cannot be rendered, as before: %s\n", name, reasons[i])
	}
}
