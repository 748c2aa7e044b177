// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// moved is an image that is another one in workloads, or images that differ only by the last part of their names.
type moved struct {
	before, after string
	names         []string
	injected      bool
	workloads     map[string]bool
}

// imageChangesSection shows the images that moved, and those that are new.
func (r *review) imageChangesSection() section {
	s := section{title: "Images", what: "image"}
	found := map[string]*moved{}
	var all []*moved
	known := map[string]bool{}
	note := func(o *object, before string, c container) {
		key := before + "\x00" + c.image
		m := found[key]
		if m == nil {
			m = &moved{before: before, after: c.image, injected: true, workloads: map[string]bool{}}
			found[key], all = m, append(all, m)
		}
		m.injected = m.injected && c.injected
		m.workloads[o.pipeline+"\x00"+o.displayName()] = true
	}
	for _, o := range r.objects {
		before := map[string]string{}
		for _, c := range containersOfObject(r.registry, o.before) {
			before[c.at], known[c.image] = c.image, true
		}
		for _, c := range containersOfObject(r.registry, o.after) {
			if old, had := before[c.at]; c.image != "" && (!had || old != c.image) {
				note(o, old, c)
			}
		}
	}
	all = slices.DeleteFunc(all, func(m *moved) bool { return m.before == "" && known[m.after] })
	slices.SortStableFunc(all, func(a, b *moved) int {
		return cmp.Or(cmp.Compare(len(b.workloads), len(a.workloads)), cmp.Compare(a.before+a.after, b.before+b.after))
	})
	for _, m := range joinImages(all) {
		text := "- " + codeSpan(m.before) + " → " + codeSpan(m.after)
		if m.before == "" {
			text = "- new: " + codeSpan(m.after)
		}
		by := ""
		if m.injected {
			by = ", injected"
		}
		s.pieces = append(s.pieces, piece{rank: rankImages, forms: []string{fmt.Sprintf("%s in %s%s%s\n", text, countWithNoun(len(m.workloads), "workload"), by, r.listNames(m.names))}})
	}
	return s
}

// joinImages makes one of those that moved together: the same registry and tag before and after, and the same name.
func joinImages(all []*moved) (out []*moved) {
	found := map[string]*moved{}
	for _, m := range all {
		dir, name, tag := splitImage(m.before)
		toDir, toName, toTag := splitImage(m.after)
		if name != toName || name == "" {
			out = append(out, m)
			continue
		}
		key := strings.Join([]string{dir, tag, toDir, toTag, fmt.Sprint(m.injected)}, "\x00")
		first := found[key]
		if first == nil {
			m.names = []string{name}
			found[key], out = m, append(out, m)
			continue
		}
		first.names = append(first.names, name)
		first.before, first.after = dir+"<name>"+tag, toDir+"<name>"+toTag
		maps.Copy(first.workloads, m.workloads)
	}
	slices.SortStableFunc(out, func(a, b *moved) int { return cmp.Compare(len(b.workloads), len(a.workloads)) })
	return out
}

// splitImage splits an image into what precedes the last part of its name, that part, and the tag and digest with
// their separators.
func splitImage(image string) (dir, name, tag string) {
	slash := strings.LastIndexByte(image, '/') + 1
	end := slash + strings.IndexAny(image[slash:]+":", ":@")
	return image[:slash], image[slash:end], image[end:]
}

func (r *review) listNames(names []string) string {
	if len(names) < 2 {
		return ""
	}
	return ": " + r.joinLimitedNames(names)
}

// fullHash is a hash that is shown by its beginning.
var fullHash = lazyregexp.New(`((?:sha1|sha256):[0-9a-f]{12})[0-9a-f]{20,}\b`)

func shownRevision(revision string) string {
	return codeSpan(fullHash.ReplaceAllString(revision, "$1"))
}

// changeOriginSection describes the origin of the change.
func (r *review) changeOriginSection() section {
	s := section{title: "Provenance", what: "source"}
	for _, line := range r.commonLinesFirst(func(p *Pipeline) []string {
		var out []string
		for _, one := range p.Sources {
			out = append(out, sourceLine(one))
		}
		for _, changed := range [][3]string{{"policies", p.PolicyBefore, p.PolicyAfter}, {"Prerig", p.ToolBefore, p.ToolAfter}} {
			what, before, after := changed[0], changed[1], changed[2]
			switch {
			case after == "":
			case before == after || before == "":
				out = append(out, what+": "+shownRevision(after))
			default:
				out = append(out, what+": "+shownRevision(before)+" → "+shownRevision(after))
			}
		}
		return out
	}) {
		s.pieces = append(s.pieces, piece{rank: rankSources, forms: []string{line}})
	}
	return s
}

// commonLinesFirst returns lines of a list: what pipelines have in common once, with their number, the most common
// first.
func (r *review) commonLinesFirst(lines func(*Pipeline) []string) []string {
	count := map[string]int{}
	var order []string
	for i := range r.change.Pipelines {
		for _, line := range lines(&r.change.Pipelines[i]) {
			if count[line]++; count[line] == 1 {
				order = append(order, line)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return count[b] - count[a] })
	for i, line := range order {
		of := ""
		if len(r.change.Pipelines) > 1 {
			of = " (" + countWithNoun(count[line], r.change.noun()) + ")"
		}
		order[i] = "- " + line + of + "\n"
	}
	return order
}

func sourceLine(s Source) string {
	text := codeSpan(withoutPassword(s.URL))
	if s.MountPath != "" {
		text += " at " + codeSpan(s.MountPath)
	}
	switch {
	case s.Before.Revision != "" && s.Before.Revision != s.After.Revision:
		text += ": " + shownRevision(s.Before.Revision) + " → " + shownRevision(s.After.Revision)
	case s.After.Revision != "":
		text += ": " + shownRevision(s.After.Revision)
	}
	if s.After.Subject != "" {
		text += ", " + codeSpan(s.After.Subject)
	}
	if s.After.Author != "" {
		text += " by " + codeSpan(s.After.Author)
	}
	return text
}

// Bounds of the commands that are shown: their number, and the bytes of one.
const (
	listedCommands = 3
	maxCommand     = 4000
)

// reproduceCommandsSection returns those that make the result again.
func (r *review) reproduceCommandsSection() section {
	s := section{title: "To make it again", what: "list"}
	var all []string
	for _, p := range r.change.Pipelines {
		if p.Command != "" && !slices.Contains(all, p.Command) {
			all = append(all, p.Command)
		}
	}
	if len(all) == 0 {
		return s
	}
	var out strings.Builder
	for i, command := range all {
		if !r.all && i == listedCommands && len(all) > listedCommands+1 {
			fmt.Fprintf(&out, "- and %d more, one for each %s\n", len(all)-i, r.change.noun())
			break
		}
		out.WriteString("- " + longCodeSpan(command, maxCommand) + "\n")
	}
	s.pieces = []piece{{rank: rankCommand, forms: []string{out.String()}}}
	return s
}
