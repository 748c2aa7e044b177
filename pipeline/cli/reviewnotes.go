// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/build/discover"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/review"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/source/giturl"
	sourcetree "github.com/prerig/prerig/pipeline/source/tree"
)

// maxNotes is how much of a comment the notes may take.
const maxNotes = 3000

// reviewNotes are lines about what a comparison does not show.
type reviewNotes struct{ lines []string }

// Write adds lines.
func (n *reviewNotes) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		n.lines = append(n.lines, strings.TrimSuffix(line, "\n"))
	}
	return len(text), nil
}

// notesText returns notes as lines.
func notesText(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// printNotes adds the notes to a comment, as text that is no markup.
func printNotes(w io.Writer, notes string) {
	if notes != "" {
		fmt.Fprint(w, "\n"+review.FencedBlock("text", foreign.Head(strings.TrimSuffix(notes, "\n"), maxNotes-100)))
	}
}

// addMirrors names the repositories that are taken for this one by their names.
func (n *reviewNotes) addMirrors(urls []string, entries []catalog.Entry) {
	own, mirrors := map[string]bool{}, map[string]bool{}
	for _, url := range urls {
		own[giturl.Normal(url)] = true
	}
	for _, e := range entries {
		if e.Pipeline == nil || e.Pipeline.Spec.Build.Releases == nil {
			continue
		}
		for _, one := range e.Pipeline.Spec.Build.Releases.Repositories {
			if !own[giturl.Normal(one.URL)] {
				mirrors[one.URL] = true
			}
		}
	}
	if len(mirrors) > 0 {
		fmt.Fprintf(n, "info: taken for this repository, by their names or paths: %s\n",
			foreign.List(slices.Sorted(maps.Keys(mirrors)), maxKept))
	}
}

// addLoose names the builds with changes that maybe no cluster applies.
func (n *reviewNotes) addLoose(c *dryrun.Comparison, loose map[string]bool) {
	named := map[string]bool{}
	for _, change := range c.Changes {
		for _, o := range change.Objects {
			if loose[o.Pipeline] {
				named[o.Pipeline] = true
			}
		}
	}
	if len(named) > 0 {
		fmt.Fprintf(n, "info: no Application or Kustomization in the files leads to %s: maybe no cluster applies that\n",
			foreign.List(slices.Sorted(maps.Keys(named)), maxKept))
	}
}

// addMaybe names the builds with changes that may be in the artifact of a source.
func (n *reviewNotes) addMaybe(c *dryrun.Comparison, maybe map[string][]string) {
	builds, sources := map[string]bool{}, map[string]bool{}
	for _, change := range c.Changes {
		for _, o := range change.Objects {
			for _, source := range maybe[o.Pipeline] {
				builds[o.Pipeline], sources[source] = true, true
			}
		}
	}
	if len(builds) > 0 {
		fmt.Fprintf(n, "info: whether a cluster applies %s is not known: it may be in the artifact of %s, and of which directory that is, the files do not tell\n",
			foreign.List(slices.Sorted(maps.Keys(builds)), maxKept), foreign.List(slices.Sorted(maps.Keys(sources)), maxKept))
	}
}

// addClaims names the builds with changes that ApplicationSets deploy to clusters that only Argo CD knows.
func (n *reviewNotes) addClaims(c *dryrun.Comparison, ends ...*end) {
	directories := map[discover.Claim][]string{}
	for _, change := range c.Changes {
		for _, o := range change.Objects {
			for _, one := range ends {
				for _, claim := range one.claims[o.Pipeline] {
					directories[claim] = append(directories[claim], o.Pipeline)
				}
			}
		}
	}
	claims := slices.SortedFunc(maps.Keys(directories), func(a, b discover.Claim) int { return cmp.Compare(a.Set, b.Set) })
	for _, claim := range claims {
		names := slices.Compact(slices.Sorted(slices.Values(directories[claim])))
		if claim.Pattern != "" {
			fmt.Fprintf(n, "info: ApplicationSet %s may deploy %s, as its path %s may mean that: only Argo CD knows the parameters (generator %s)\n",
				claim.Set, foreign.List(names, maxKept), claim.Pattern, claim.Generator)
			continue
		}
		fmt.Fprintf(n, "info: ApplicationSet %s deploys %s; to which clusters and with which settings, only Argo CD knows (generator %s)\n",
			claim.Set, foreign.List(names, maxKept), claim.Generator)
	}
}

// addUnused names the builds with changed files that no cluster applies, and returns the other files.
func (n *reviewNotes) addUnused(unused keySet, changed []string) (others []string) {
	named := map[string]bool{}
	for _, name := range changed {
		at := name
		for at != "." && !unused[at] {
			at = path.Dir(at)
		}
		if unused[at] {
			named[at] = true
		} else {
			others = append(others, name)
		}
	}
	if len(named) > 0 {
		fmt.Fprintf(n, "warning: changed, and in nothing that a cluster applies, as far as the files tell: %s\n",
			foreign.List(slices.Sorted(maps.Keys(named)), maxKept))
	}
	return others
}

// addVariables names the variables of Flux that are compared as their text.
func (n *reviewNotes) addVariables(results []dryrun.Result) {
	names := map[string]bool{}
	for _, r := range results {
		if r.Response() == nil {
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
		fmt.Fprintf(n, "info: compared as text, as only the cluster or a key has the values: the variables %s\n",
			foreign.List(slices.Sorted(maps.Keys(names)), show))
	}
}

// addUncovered names the changed manifests that no comparison has read.
func (n *reviewNotes) addUncovered(left []string) {
	if len(left) > 0 {
		const show = 3
		fmt.Fprintf(n, "warning: changed, and in nothing that was compared: %s\n", foreign.List(left, show))
	}
}

// readFiles returns the content of files at an end, without those that it does not have.
func readFiles(at *end, names []string) map[string][]byte {
	view := sourcetree.NewView(at.snapshot.Tree, sourcetree.Limits{})
	out := map[string][]byte{}
	for _, name := range names {
		if text, err := view.Read(name); err == nil {
			out[name] = text
		}
	}
	return out
}

// uncoveredFiles returns the changed manifests that no comparison has read, such as the values of a chart that cannot be rendered: that
// nothing would change is not known of them.
func uncoveredFiles(head *end, results ...[]dryrun.Result) (left []string) {
	read := map[string]bool{}
	for _, r := range slices.Concat(results...) {
		if r.Built == nil || r.Err != nil {
			continue
		}
		for _, access := range r.Built.Record {
			read[access.Path] = read[access.Path] || access.Op == sourcetree.OpRead
		}
	}
	for _, name := range head.changed {
		if manifest.IsFileName(path.Base(name)) && !read[name] && !isHidden(name) {
			left = append(left, name)
		}
	}
	return left
}

// isHidden reports whether a file, or a directory that it is in, is for other tools.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") || strings.Contains(name, "/.") }

// withoutNamed returns the files that no error names as the cause, and that are in no directory whose build has failed.
func withoutNamed(files []string, c *dryrun.Comparison) []string {
	return slices.DeleteFunc(slices.Clone(files), func(name string) bool {
		return slices.ContainsFunc(c.Pipelines, func(p dryrun.PipelineChange) bool {
			isOfFailed := p.Error != "" && strings.HasPrefix(name, p.Pipeline+"/")
			return isOfFailed || strings.Contains(p.Error+p.Failed, name)
		})
	})
}

// addUnvalidated names what was not checked of changes that the API server may reject, where Kubernetes' own validation is not
// installed.
func (n *reviewNotes) addUnvalidated(c *dryrun.Comparison, installed bool) {
	if !installed && slices.ContainsFunc(c.Changes, mayBeImmutable) {
		fmt.Fprintf(n, "info: %s, so that changes of immutable fields are not named\n", gate.NotInstalled)
	}
}

// addStill names what cannot be rendered at either end: a line for each build, or one for many.
func (n *reviewNotes) addStill(still []dryrun.Still) {
	const show, longest = 3, 300
	var names, reasons []string
	for _, one := range still {
		what := one.Build
		if len(one.Parts) > 0 {
			what = foreign.List(one.Parts, show) + " of " + one.Build
		}
		reason, _, _ := strings.Cut(dryrun.WithoutHints(one.Err.Error()), "\n")
		reason = foreign.Head(reason, longest)
		if one.Loose {
			fmt.Fprintf(n, "warning: %s cannot be rendered, and no Application or Kustomization in the files leads to it: %s\n", what, reason)
			continue
		}
		if one.Mended {
			fmt.Fprintf(n, "info: %s can be rendered now, and could not before, so that it is not compared: %s\n", what, reason)
			continue
		}
		names, reasons = append(names, what), append(reasons, reason)
	}
	if len(names) > show {
		fmt.Fprintf(n, "info: %d builds cannot be rendered, as before: %s; the first: %s\n", len(names),
			foreign.List(names, show), reasons[0])
		return
	}
	for i, name := range names {
		fmt.Fprintf(n, "info: %s cannot be rendered, as before: %s\n", name, reasons[i])
	}
}
