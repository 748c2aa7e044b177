// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/review/diff/group"
)

// Ranks of pieces: what is most important to know.
const (
	rankSummary = iota
	rankRefused
	rankDeleted
	rankFinding
	rankResources
	rankTopChange
	rankCommand
	rankImages
	rankChange
	rankSources
)

// topChanges is how many changes of the source, and of the injection, go before images and sources.
const topChanges = 5

// Bounds of what is listed by name.
const (
	listedObjects = 5
	shownLines    = 60
)

// allSections returns all sections.
func (r *review) allSections() []section {
	out := []section{{pieces: []piece{{rank: rankSummary, forms: []string{r.summaryCounts()}}}}}
	add := func(s section) {
		if len(s.pieces) > 0 {
			out = append(out, s)
		}
	}
	add(r.uncomparedReasonsSection("Not compared", func(p Pipeline) string { return p.NotCompared }))
	add(r.uncomparedReasonsSection("Would be refused", func(p Pipeline) string { return p.Refused }))
	add(r.remarksSection())
	add(r.destructiveDeletionsSection())
	add(dangersSection(r))
	add(orphansSection(r))
	add(r.newFindingsSection())
	add(r.groupedChangesSection("What the source changed", (*object).sourceChange))
	add(r.groupedChangesSection("What the injection changed", (*object).injectionChange))
	add(r.encryptedValuesSection())
	add(r.resourceChangesSection())
	add(r.imageChangesSection())
	add(r.changeOriginSection())
	add(r.reproduceCommandsSection())
	return out
}

// summaryCounts counts.
func (r *review) summaryCounts() string {
	counts := map[string]int{}
	orphans := 0
	for _, o := range r.objects {
		if staysBecause(r, o) != "" {
			orphans++
			continue
		}
		counts[o.changeKind()]++
	}
	for _, u := range r.files {
		counts[u.Kind]++
	}
	pipelines := map[string]bool{}
	for _, o := range r.objects {
		pipelines[o.pipeline] = true
	}
	for _, u := range r.files {
		pipelines[u.Pipeline] = true
	}
	missing, end := r.change.notCompared(), ".\n"
	if missing > 0 {
		end = fmt.Sprintf("; **%s not compared**.\n", countWithNoun(missing, r.change.noun()))
	}
	where := "in"
	if r.change.Unseen != "" {
		where, end = "in what was compared of", "; **"+r.change.Unseen+"**"+end
	}
	compared := len(r.change.Pipelines) - missing
	switch {
	case len(pipelines) == 0 && compared == 0 && missing > 0:
		return fmt.Sprintf("**Nothing could be compared** of %s.\n", countWithNoun(missing, r.change.noun()))
	case len(pipelines) == 0 && len(r.change.Remarks) > 0:
		return fmt.Sprintf("**No object differs** %s %s%s", where, countWithNoun(compared, r.change.noun()), end)
	case len(pipelines) == 0:
		return fmt.Sprintf("**Nothing changes** %s %s%s", where, countWithNoun(compared, r.change.noun()), end)
	}
	of := ""
	if compared > len(pipelines) {
		of = fmt.Sprintf(" of %d", compared)
	}
	return fmt.Sprintf("**%d%s %s%s: %s added, %d changed, %d deleted**; %d unchanged%s", len(pipelines), of,
		r.change.noun(), map[bool]string{true: "", false: "s"}[len(pipelines) == 1 && of == ""],
		countWithNoun(counts[group.Added], "object"), counts[group.Modified], counts[group.Deleted], r.same,
		orphanCount(orphans)+end)
}

// remarksSection lists the remarks.
func (r *review) remarksSection() section {
	s := section{title: "Beside the differences", what: "remark"}
	for _, text := range r.change.Remarks {
		s.pieces = append(s.pieces, piece{rank: rankRefused, forms: []string{"- " + codeSpan(text) + "\n"}})
	}
	return s
}

// notCompared counts the pipelines that could not be compared.
func (c *Change) notCompared() (n int) {
	for _, p := range c.Pipelines {
		if p.NotCompared != "" {
			n++
		}
	}
	return n
}

// uncomparedReasonsSection lists why pipelines are not compared, or would not be published, each reason once.
func (r *review) uncomparedReasonsSection(title string, reason func(Pipeline) string) section {
	s := section{title: title, what: "reason"}
	byText := map[string][]string{}
	var order []string
	for _, p := range r.change.Pipelines {
		text := reason(p)
		if text == "" {
			continue
		}
		if byText[text] == nil {
			order = append(order, text)
		}
		byText[text] = append(byText[text], p.Name)
	}
	for _, text := range order {
		s.pieces = append(s.pieces, piece{rank: rankRefused, forms: []string{fmt.Sprintf("- %s: %s\n", r.joinLimitedNames(byText[text]), codeSpan(text))}})
	}
	return s
}

// joinLimitedNames lists names of others, the first of many, or all without a limit.
func (r *review) joinLimitedNames(names []string) string {
	most := listedObjects
	if r.all || len(names) == listedObjects+1 {
		most = len(names)
	}
	var parts []string
	for _, name := range names {
		parts = append(parts, codeSpan(name))
	}
	return foreign.List(parts, most)
}

// groupedChangesSection groups one side of what has changed.
func (r *review) groupedChangesSection(title string, change func(*object) *group.Unit) section {
	s := section{title: title, what: "change"}
	var units []*group.Unit
	for _, o := range r.objects {
		if o.isEncrypted() {
			continue
		}
		if u := change(o); u != nil && (u.Kind != group.Deleted || o.newerExistingSide().bare == nil) { // deletions are listed in their own section
			units = append(units, u)
		}
	}
	if strings.HasSuffix(title, "source changed") {
		for _, u := range r.files {
			if u.Kind != group.Deleted {
				units = append(units, u)
			}
		}
	}
	changes := group.Changes(units)
	slices.SortStableFunc(changes, func(a, b group.Change) int { // changes come before additions, which concern a single object
		return cmp.Or(cmp.Compare(len(b.Objects), len(a.Objects)), cmp.Compare(kindRank(a.Kind), kindRank(b.Kind)))
	})
	for i, c := range changes {
		rank := rankChange
		if i < topChanges {
			rank = rankTopChange
		}
		s.pieces = append(s.pieces, piece{rank: rank})
		last := &s.pieces[len(s.pieces)-1]
		last.forms, last.short = r.changeForms(c)
	}
	return s
}

func kindRank(kind string) int {
	return slices.Index([]string{group.Modified, group.Added, group.Deleted}, kind)
}

// changeForms writes a change with its lines, or with the first of many, and without.
func (r *review) changeForms(c group.Change) (forms []string, short bool) {
	title := r.changeTitle(c)
	var lines []string
	for _, h := range c.Hunks {
		at := "@@"
		if h.At != "" {
			at += " " + shownLine(strings.Join(strings.Fields(h.At), " "))
		}
		lines = append(lines, at)
		for line := range strings.Lines(h.Text) {
			lines = append(lines, shownLine(strings.TrimSuffix(line, "\n")))
		}
	}
	head := "\n" + title + "\n\n"
	if legend := c.Legend(); legend != "" {
		head = "\n" + title + " " + placeholder.ReplaceAllString(legend, "`$0`") + ".\n\n"
	}
	brief := "\n" + title + "\n"
	full := head + FencedBlock("diff", strings.Join(lines, "\n"))
	if r.all || len(lines) <= shownLines {
		return []string{full, brief}, false
	}
	start := fmt.Sprintf("%s%s%s of this change not shown.\n", head,
		FencedBlock("diff", strings.Join(lines[:shownLines], "\n")), countWithNoun(len(lines)-shownLines, "more line"))
	return []string{start, brief}, true
}

// placeholder matches the placeholder of an object's own value, in a legend.
var placeholder = lazyregexp.New(`<[a-z0-9 ]+>`)

var changeWords = map[string]string{group.Added: "Added", group.Modified: "Changed", group.Deleted: "Deleted"}

// changeTitle describes a change and its objects. The pipeline is omitted if it is the only one.
func (r *review) changeTitle(c group.Change) string {
	alone := len(r.change.Pipelines) == 1
	word := changeWords[c.Kind]
	if len(c.Objects) == 1 {
		title := fmt.Sprintf("**%s:** %s", word, codeSpan(c.Objects[0].Name))
		if !alone {
			title += " of " + codeSpan(c.Objects[0].Pipeline)
		}
		return title
	}
	var names []string
	namespaces := map[string]bool{}
	for _, o := range c.Objects {
		names = append(names, o.Name)
		if _, name, ok := strings.Cut(o.Name, " "); ok {
			if namespace, _, ok := strings.Cut(name, "/"); ok {
				namespaces[namespace] = true
			}
		}
	}
	of := ""
	if !alone {
		of = " of " + countWithNoun(c.CountPipelines(), r.change.noun())
	}
	if len(namespaces) > 1 {
		of = " in " + countWithNoun(len(namespaces), "namespace") + of
	}
	return fmt.Sprintf("**%s: the same in %s**%s: %s.", word, kindCounts(c.Objects), of, r.joinLimitedNames(names))
}

// kindCounts counts objects by kind, the most common first.
func kindCounts(objects []group.Object) string {
	counts := map[string]int{}
	var order []string
	for _, o := range objects {
		kind, _, ok := strings.Cut(o.Name, " ")
		if ok {
			kind = shownKind(kind)
		} else {
			kind = "file"
		}
		if counts[kind]++; counts[kind] == 1 {
			order = append(order, kind)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return counts[b] - counts[a] })
	var parts []string
	for i, kind := range order {
		if i == listedObjects && len(order) > listedObjects+1 {
			parts = append(parts, fmt.Sprintf("%d other kinds", len(order)-i))
			break
		}
		parts = append(parts, countWithNoun(counts[kind], kind))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return fmt.Sprintf("%d objects (%s)", len(objects), strings.Join(parts, ", "))
}
