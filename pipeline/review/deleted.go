// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/review/diff/group"
)

// taken describes what is deleted together with objects of a kind, by its group and kind.
func taken(kind string) string {
	apiGroup, name, _ := strings.Cut(kind, "/")
	return gate.Identity{Group: apiGroup, Kind: name}.Destroys()
}

// destructiveDeletionsSection lists first the objects whose deletion removes other things.
func (r *review) destructiveDeletionsSection() section {
	s := section{title: "Deleted", what: "kind"}
	byKind := map[string][]*object{}
	var order []string
	added := map[string]string{}
	for _, o := range r.objects {
		if o.before == nil {
			added[o.after.versionlessObjectID()] = o.pipeline
		}
	}
	for _, o := range r.objects {
		if o.changeKind() != group.Deleted || staysBecause(r, o) != "" {
			continue
		}
		m := o.before.meta
		apiGroup, _, ok := strings.Cut(m.APIVersion, "/")
		if !ok {
			apiGroup = ""
		}
		kind := apiGroup + "/" + m.Kind
		if byKind[kind] == nil {
			order = append(order, kind)
		}
		byKind[kind] = append(byKind[kind], o)
	}
	slices.SortStableFunc(order, func(a, b string) int {
		if (taken(a) != "") != (taken(b) != "") {
			return map[bool]int{true: -1, false: 1}[taken(a) != ""]
		}
		return len(byKind[b]) - len(byKind[a])
	})
	for _, kind := range order {
		s.pieces = append(s.pieces, r.deletedPiece(kind, byKind[kind], added))
	}
	var files []string
	for _, u := range r.files {
		if u.Kind == group.Deleted {
			files = append(files, u.Path)
		}
	}
	if len(files) > 0 {
		s.pieces = append(s.pieces, piece{rank: rankDeleted, forms: []string{fmt.Sprintf("- %s: %s\n", countWithNoun(len(files), "file"), r.joinLimitedNames(files))}})
	}
	return s
}

// listedTaken is how many objects are named that take others with them.
const listedTaken = 50

// deletedPiece is about the objects of one kind. added are pipelines of the change that add an object of the same name:
// it may only move.
func (r *review) deletedPiece(kind string, objects []*object, added map[string]string) piece {
	var names []string
	for _, o := range objects {
		name := codeSpan(o.displayName()) + " of " + codeSpan(o.pipeline)
		if other := added[o.before.versionlessObjectID()]; other != "" {
			name += " (added by " + codeSpan(other) + ")"
		}
		names = append(names, name)
	}
	_, short, _ := strings.Cut(kind, "/")
	count := countWithNoun(len(objects), shownKind(short))
	list := func(most int) string {
		if r.all {
			most = len(names)
		}
		return foreign.List(names, most)
	}
	if why := taken(kind); why != "" {
		text := func(most int) string {
			return fmt.Sprintf("\n> [!CAUTION]\n> **%s would be deleted, %s:** %s\n", count, why, list(most))
		}
		if len(names) <= listedObjects {
			return piece{rank: rankDeleted, forms: []string{text(listedTaken)}}
		}
		return piece{rank: rankDeleted, forms: []string{text(listedTaken), text(listedObjects)}}
	}
	return piece{rank: rankDeleted, forms: []string{fmt.Sprintf("\n- %s: %s\n", count, list(listedObjects))}}
}

// encryptedValuesSection names what is not compared because SOPS has encrypted it.
func (r *review) encryptedValuesSection() section {
	s := section{title: "Encrypted", what: "list"}
	var names []string
	for _, o := range r.objects {
		if o.changeKind() != group.Deleted && o.isEncrypted() {
			names = append(names, o.displayName())
		}
	}
	if len(names) > 0 {
		s.pieces = []piece{{rank: rankChange, forms: []string{fmt.Sprintf("- %s: %s. What is in them is not shown.\n", countWithNoun(len(names), "object")+" added or changed", r.joinLimitedNames(names))}}}
	}
	return s
}
