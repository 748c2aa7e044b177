// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/prune"
)

// grouping is a way to group pipelines.
type grouping struct {
	name string
	// of returns the groups of a pipeline. It is in several where it publishes to several repositories.
	of func(p row) []string
}

// clusterLabel is the label of a pipeline that names the cluster it renders for.
const clusterLabel = "cluster"

var groupings = []grouping{
	{"namespace", func(p row) []string { return []string{v1alpha1.NamespaceOf(p.Name)} }},
	{"repository", publishedRepositories},
	{"source", func(p row) []string { return []string{p.Source} }},
	{"cluster", func(p row) []string {
		if p.entry.Pipeline == nil {
			return []string{""}
		}
		return []string{p.entry.Pipeline.Metadata.Labels[clusterLabel]}
	}},
}

// publishedRepositories returns the repositories that a pipeline publishes to.
func publishedRepositories(p row) (out []string) {
	if p.entry.Pipeline != nil {
		for _, to := range p.entry.Pipeline.Spec.Publish {
			_, url := to.Address()
			out = append(out, url)
		}
	}
	if len(out) == 0 {
		return []string{""}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// groupsOf returns the groups of a pipeline by the name of a grouping.
func groupsOf(by string, p row) []string {
	i := slices.IndexFunc(groupings, func(g grouping) bool { return g.name == by })
	return groupings[i].of(p)
}

// groupsPerPage is the number of groups per page, shownOfGroup the number of pipelines shown per group that need
// attention.
const (
	groupsPerPage = 50
	shownOfGroup  = 5
)

// groupData is a group of pipelines.
type groupData struct {
	// Name is the name of the group, or "" for those in none; By is what it is a name of. ID identifies it on the
	// page.
	Name, By, Link, ID string
	N                  int
	Counts             []stateCount
	// Bad holds the first of its pipelines that need attention.
	Bad []row

	worst int
}

// cutGroups groups the pipelines and keeps those of the requested page: those that need attention come first.
func (d *listData) cutGroups() {
	found := map[string]*groupData{}
	counts := map[string]map[string]int{}
	for _, p := range d.Pipelines {
		for _, name := range groupsOf(d.Group, p) {
			g := found[name]
			if g == nil {
				g = &groupData{Name: name, By: d.Group, ID: shortDigest(d.Group + " " + name), worst: len(order), Link: d.linkWith(func(q *listQuery) { q.In, q.Inside = name, true })}
				found[name], counts[name] = g, map[string]int{}
			}
			g.N++
			counts[name][p.State]++
			g.worst = min(g.worst, slices.Index(order, p.State))
			if isBad(p.State) && len(g.Bad) < shownOfGroup {
				g.Bad = append(g.Bad, p)
			}
		}
	}
	for name, g := range found {
		for _, state := range order {
			if n := counts[name][state]; n > 0 {
				g.Counts = append(g.Counts, stateCount{State: state, N: n})
			}
		}
		d.Groups = append(d.Groups, *g)
	}
	slices.SortFunc(d.Groups, func(a, b groupData) int {
		return cmp.Or(cmp.Compare(a.worst, b.worst), strings.Compare(a.Name, b.Name))
	})
	if d.Sort == sortName {
		slices.SortFunc(d.Groups, func(a, b groupData) int { return strings.Compare(a.Name, b.Name) })
	}
	d.Pipelines, d.Found = nil, len(d.Groups)
	from, to := d.paginateAndLink(d.Found, groupsPerPage)
	d.Groups = d.Groups[from:to]
}

// saying is a message that several pipelines have.
type saying struct {
	// ID identifies it in URLs.
	ID, State, Message, Link string
	N                        int
}

// comparableMessage returns a pipeline's message in the form in which it is compared with others: without its own names, which are
// also those of its file. Healthy pipelines have no message that needs to be read.
func comparableMessage(p row) string {
	if p.Message == "" || p.State == StateReady {
		return ""
	}
	message := p.Message
	_, short, _ := strings.Cut(p.Name, "/")
	for _, name := range []string{p.File, path.Base(p.File), p.Name, short} {
		message = replaceName(message, name)
	}
	return p.State + "\x00" + message
}

// replaceName replaces a name in a text, but not where it is a part of another name.
func replaceName(text, name string) string {
	if name == "" || name == "." || !strings.Contains(text, name) {
		return text
	}
	var out strings.Builder
	before := "" // what is in front of the rest of the text
	for {
		at := strings.Index(text, name)
		if at < 0 {
			return out.String() + text
		}
		end := at + len(name)
		if isInName(lastRune(before+text[:at])) || isInName(firstRune(text[end:])) {
			out.WriteString(text[:end])
		} else {
			out.WriteString(text[:at] + "…")
		}
		before, text = text[:end], text[end:]
	}
}

func lastRune(text string) rune {
	r, _ := utf8.DecodeLastRuneInString(text)
	return r
}

func firstRune(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}

// isInName reports whether a character beside a name makes it another name.
func isInName(r rune) bool { return r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func comparableMessageID(p row) string {
	text := comparableMessage(p)
	if text == "" {
		return ""
	}
	return shortDigest(text)
}

// shortDigest identifies a text in URLs and on pages.
func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// groupEqualMessages finds messages shared by several pipelines, and links those pipelines to them.
func groupEqualMessages(all []row) []*saying {
	byText := map[string]*saying{}
	var out []*saying
	for i := range all {
		text := comparableMessage(all[i])
		if text == "" {
			continue
		}
		if byText[text] == nil {
			state, message, _ := strings.Cut(text, "\x00")
			byText[text] = &saying{ID: comparableMessageID(all[i]), State: state, Message: message}
			out = append(out, byText[text])
		}
		byText[text].N++
		all[i].Says = byText[text]
	}
	for i := range all {
		if all[i].Says != nil && all[i].Says.N == 1 {
			all[i].Says = nil
		}
	}
	out = slices.DeleteFunc(out, func(s *saying) bool { return s.N == 1 })
	slices.SortStableFunc(out, func(a, b *saying) int { return cmp.Compare(b.N, a.N) })
	return out
}

// messagesOfList returns those sayings that pipelines of this page's list have.
func (d *listData) messagesOfList(all []*saying) (out []*saying) {
	said := map[*saying]bool{}
	for _, p := range d.Pipelines {
		said[p.Says] = true
	}
	for _, one := range all {
		if said[one] {
			one.Link = d.linkWith(func(q *listQuery) { *q = listQuery{Says: one.ID, Sort: sortState, Page: 1} })
			out = append(out, one)
		}
	}
	return out
}

// rankOfRemoval sorts the states of removals: those that wait for a person come first.
func rankOfRemoval(state string) int {
	if state == prune.Held {
		return 0
	}
	return 1
}

// removalsPerGroup is the number of removals listed per message.
const removalsPerGroup = 200

// removalData are deleted pipelines that wait for the same thing.
type removalData struct {
	State, Message string
	// ID identifies them on the page.
	ID        string
	Pipelines []removalRow
	// More are not listed.
	More int
	// Operable reports whether the viewer may approve one of them.
	Operable bool
}

type removalRow struct {
	prune.Removal
	Operable bool
}

// groupRemovals groups removals with the same message.
func groupRemovals(all []prune.Removal, mayApprove func(name string) bool) (out []removalData) {
	for _, one := range all {
		i := slices.IndexFunc(out, func(g removalData) bool { return g.State == one.State && g.Message == one.Message })
		if i < 0 {
			i, out = len(out), append(out, removalData{State: one.State, Message: one.Message, ID: shortDigest(one.State + " " + one.Message)})
		}
		if len(out[i].Pipelines) == removalsPerGroup {
			out[i].More++
			continue
		}
		r := removalRow{one, mayApprove(one.Pipeline)}
		out[i].Pipelines = append(out[i].Pipelines, r)
		out[i].Operable = out[i].Operable || r.Operable
	}
	slices.SortStableFunc(out, func(a, b removalData) int { return cmp.Compare(rankOfRemoval(a.State), rankOfRemoval(b.State)) })
	return out
}
