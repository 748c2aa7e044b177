// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/review/diff/group"
)

// listed is how many objects of a change, and pipelines with a problem, are named; JSON names all.
const listed = 10

// Text writes a comparison for a terminal. Colour marks lines as git diff does.
func (c *Comparison) Text(w io.Writer, colour bool) error {
	var out strings.Builder
	places := c.placeCounts()
	c.writeRemarks(&out, colour)
	for _, change := range c.Changes {
		fmt.Fprintf(&out, "%s\n", colourText(colour, bold, "== "+change.Title(c.pipelineNoun())))
		for _, text := range listObjects(change, places) {
			fmt.Fprintf(&out, "   %s\n", text)
		}
		for _, text := range dangerLines(change) {
			fmt.Fprintf(&out, "   %s\n", colourText(colour, red, text))
		}
		for _, text := range noteLines(change) {
			fmt.Fprintf(&out, "   %s\n", text)
		}
		if legend := change.Legend(); legend != "" {
			fmt.Fprintf(&out, "   %s\n", legend)
		}
		left := c.textLines
		for i, hunk := range change.Hunks {
			text, hidden := firstLines(hunk.Text, left)
			if c.textLines > 0 && left <= 0 {
				fmt.Fprintf(&out, "   %s\n", moreLines(change.Hunks[i:], 0))
				break
			}
			out.WriteString(colourText(colour, cyan, strings.TrimSpace("@@ "+hunk.At)) + "\n")
			out.WriteString(paintDiff(colour, text))
			if hidden {
				fmt.Fprintf(&out, "   %s\n", moreLines(change.Hunks[i:], strings.Count(text, "\n")))
				break
			}
			left -= strings.Count(text, "\n")
		}
		out.WriteString("\n")
	}
	writeMoves(&out, c.Moves)
	for _, text := range c.findingLines() {
		fmt.Fprintf(&out, "%s\n", foreign.Visible(text))
	}
	for _, p := range c.commonProblems() {
		if p.kind == refused && c.noun != "" {
			continue // a build is published nowhere, and the findings are the reason
		}
		fmt.Fprintf(&out, "%s %s: %s\n", colourText(colour, red, p.kind+":"), p.pipelineNames(), p.text)
	}
	for _, text := range c.comparedWith() {
		fmt.Fprintf(&out, "compared with the %s\n", text)
	}
	out.WriteString(c.summaryLine() + "\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// Shorten bounds the lines of the differences of each change in Text. Without it, Text writes all.
func (c *Comparison) Shorten(lines int) { c.textLines = lines }

// firstLines returns the first lines of a text, and whether there are more; all for a number that is not positive.
func firstLines(text string, most int) (first string, more bool) {
	if most <= 0 || strings.Count(text, "\n") <= most {
		return text, false
	}
	end := 0
	for range most {
		end += strings.IndexByte(text[end:], '\n') + 1
	}
	return text[:end], true
}

// moreLines describes the lines of hunks that are not shown; shown are those of the first one that are.
func moreLines(hunks []group.Hunk, shown int) string {
	n := -shown
	for _, hunk := range hunks {
		n += strings.Count(hunk.Text, "\n")
	}
	return fmt.Sprintf("… %d more lines; --limit 0 shows all", n)
}

// Colours, as git diff has them.
const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	reset = "\x1b[m"
)

func colourText(colour bool, code, text string) string {
	if !colour {
		return text
	}
	return code + text + reset
}

// paintDiff writes the lines of a difference for people: what cannot be seen is written out.
func paintDiff(colour bool, text string) string {
	var out strings.Builder
	for l := range strings.Lines(text) {
		plain := foreign.Visible(strings.TrimRight(l, "\r\n"))
		if !colour {
			out.WriteString(plain + "\n")
			continue
		}
		switch l[0] {
		case '+':
			plain = colourText(true, green, plain)
		case '-':
			plain = colourText(true, red, plain)
		}
		out.WriteString(plain + "\n")
	}
	return out.String()
}

// listObjects names the objects of a change, the first few of many, and the places of those that do not change
// everywhere.
func listObjects(c group.Change, places map[string]int) (out []string) {
	for i, o := range c.Objects {
		if i == listed && len(c.Objects) > listed+1 {
			return append(out, fmt.Sprintf("and %d more (-o json names all)", len(c.Objects)-listed))
		}
		only := ""
		if len(o.Places) < places[o.Pipeline] {
			var targets []string
			for _, p := range o.Places {
				targets = append(targets, p.Target)
			}
			only = ", only at " + strings.Join(targets, " and ")
		}
		for _, p := range o.Places {
			if isOutsidePipelinePath(p.Path) {
				only += ", at " + p.Path + ", outside of the path that it is published to now"
				break
			}
		}
		owner := ""
		if o.Owner != "" {
			owner = ", by " + o.Owner
		}
		if len(c.Objects) > 1 {
			out = append(out, o.Name+" ("+o.Pipeline+owner+")"+only)
		} else if owner+only != "" {
			out = append(out, strings.TrimPrefix(owner+only, ", "))
		}
	}
	return out
}

// placeCounts returns the number of places that each pipeline is published to.
func (c *Comparison) placeCounts() map[string]int {
	out := map[string]int{}
	for _, p := range c.Pipelines {
		for _, t := range p.Targets {
			if t.Error == "" {
				out[p.Pipeline]++
			}
		}
	}
	return out
}

// comparedWith lists what it was compared with, the most common first.
func (c *Comparison) comparedWith() (out []string) {
	counts := map[string]int{}
	var order []string
	for _, p := range c.Pipelines {
		for _, t := range p.Targets {
			if t.Error != "" {
				continue
			}
			if counts[t.Against]++; counts[t.Against] == 1 {
				order = append(order, t.Against)
			}
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return counts[order[i]] > counts[order[j]] })
	for i, text := range order {
		if i == listed/2 && len(order) > listed/2+1 {
			return append(out, fmt.Sprintf("places of %d other kinds (-o json names all)", len(order)-i))
		}
		if len(c.Pipelines) > 1 {
			text += ": " + countWithNoun(counts[text], c.pipelineNoun())
		}
		out = append(out, text)
	}
	return out
}

// Problem returns an error with one line for each problem, or nil without problems.
func (c *Comparison) Problem() error {
	var lines []string
	for _, p := range c.commonProblems() {
		lines = append(lines, fmt.Sprintf("%s: %s", p.pipelineNames(), strings.TrimPrefix(p.kind+": ", "error: ")+p.text))
	}
	if len(lines) == 0 {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// commonProblem is what keeps pipelines from being compared or published.
type commonProblem struct {
	kind, text string
	pipelines  []string
	raw        string
}

// refused is the kind of a problem with what would be published.
const refused = "would be refused"

// commonProblems returns errors and refusals, those that pipelines have in common once.
func (c *Comparison) commonProblems() []*commonProblem {
	found := map[string]*commonProblem{}
	var order []*commonProblem
	add := func(p PipelineChange, kind, text string) {
		if text == "" {
			return
		}
		name := p.Pipeline[strings.LastIndexByte(p.Pipeline, '/')+1:]
		same := group.ReplaceName(text, name)
		one := found[kind+same]
		if one == nil {
			one = &commonProblem{kind: kind, text: same, raw: text}
			found[kind+same] = one
			order = append(order, one)
		}
		if !slices.Contains(one.pipelines, p.Pipeline) {
			one.pipelines = append(one.pipelines, p.Pipeline)
		}
		if text != one.raw {
			one.raw = ""
		}
	}
	for _, p := range c.Pipelines {
		add(p, "error", p.Error)
		add(p, "error", p.Failed)
		add(p, refused, p.Gate)
		for _, t := range p.Targets {
			add(p, "error", prefixTarget(t.Target, t.Error))
			add(p, refused, prefixTarget(t.Target, t.Gate))
		}
	}
	for _, one := range order {
		if one.raw != "" {
			one.text = one.raw
		}
		one.text = strings.Join(strings.Fields(one.text), " ")
	}
	return order
}

func prefixTarget(target, text string) string {
	if text == "" {
		return ""
	}
	return target + ": " + text
}

// pipelineNames names the pipelines that have it.
func (p *commonProblem) pipelineNames() string {
	most := listed
	if len(p.pipelines) == listed+1 {
		most++
	}
	return foreign.List(p.pipelines, most)
}

func (c *Comparison) summaryLine() string {
	var sum TargetChange
	compared, failed, nowhere, unread := 0, 0, 0, 0
	for _, p := range c.Pipelines {
		if p.Error != "" {
			failed++
		} else if len(p.Targets) == 0 {
			nowhere++
		}
		readable := false
		for _, t := range p.Targets {
			sum.Added, sum.Modified, sum.Deleted = sum.Added+t.Added, sum.Modified+t.Modified, sum.Deleted+t.Deleted
			sum.Unchanged, sum.Orphaned = sum.Unchanged+t.Unchanged, sum.Orphaned+t.Orphaned
			if t.Error != "" {
				unread++
			} else {
				readable = true
			}
		}
		if readable {
			compared++
		}
	}
	text := countWithNoun(compared, c.pipelineNoun()) + " compared"
	if c.Untouched > 0 {
		text += fmt.Sprintf(", %d untouched by the change", c.Untouched)
	}
	switch {
	case len(c.Changes) == 0 && len(c.Remarks) > 0:
		text += ": no object differs; see the " + countWithNoun(len(c.remarkLines()), "line") + " above"
	case !c.Empty():
		orphaned := ""
		if sum.Orphaned > 0 {
			orphaned = fmt.Sprintf(" %d no longer in Git but left in the cluster,", sum.Orphaned)
		}
		text += fmt.Sprintf(": %s added, %d modified, %d deleted,%s %d unchanged; %s",
			countWithNoun(sum.Added, "object"), sum.Modified, sum.Deleted, orphaned, sum.Unchanged,
			countWithNoun(len(c.Changes), "different change"))
	case compared+c.Untouched > 0:
		text += ": nothing would change"
		switch {
		case unread > 0:
			text += " where it could be read"
		case c.unseen != "":
			text += " in what was compared"
		case c.noun != "" && c.Failed():
			text += " in what can be rendered"
		}
	}
	if c.unseen != "" {
		text += "; " + c.unseen
	}
	if failed > 0 {
		text += fmt.Sprintf("; %d could not be rendered", failed)
	}
	if unread > 0 {
		text += fmt.Sprintf("; %s could not be read", countWithNoun(unread, "place"))
	}
	if nowhere > 0 {
		text += fmt.Sprintf("; %s nowhere", map[bool]string{true: "1 publishes", false: fmt.Sprint(nowhere, " publish")}[nowhere == 1])
	}
	return text
}

func countWithNoun(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
