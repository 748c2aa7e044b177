// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"

	"github.com/prerig/prerig/pipeline/review/danger"
	"github.com/prerig/prerig/pipeline/review/diff/group"
)

// dangersSection lists what changes may break, each danger once with its objects.
func dangersSection(r *review) section {
	s := section{title: "Dangers", what: "danger"}
	names := map[string][]string{}
	var order []string
	for _, o := range r.objects {
		if staysBecause(r, o) != "" {
			continue
		}
		for _, text := range danger.Of(o.before.object(), o.after.object()) {
			if names[text] == nil {
				order = append(order, text)
			}
			names[text] = append(names[text], o.displayName())
		}
	}
	for _, text := range order {
		s.pieces = append(s.pieces, piece{rank: rankDeleted,
			forms: []string{fmt.Sprintf("- %s: %s\n", codeSpan(text), r.joinLimitedNames(names[text]))}})
	}
	return s
}

// object returns the value of a side, nil for one that does not exist.
func (s *side) object() map[string]any {
	if s == nil {
		return nil
	}
	return s.value
}

// staysBecause returns why an object that is no longer rendered stays in the cluster, or "".
func staysBecause(r *review, o *object) string {
	if o.changeKind() != group.Deleted {
		return ""
	}
	for i := range r.change.Pipelines {
		if p := &r.change.Pipelines[i]; p.Name == o.pipeline {
			return p.Stays[o.before.path]
		}
	}
	return ""
}

// orphansSection lists the objects that are no longer rendered, and that nothing deletes, by the reason.
func orphansSection(r *review) section {
	s := section{title: "No longer in Git, and left in the cluster", what: "reason"}
	names := map[string][]string{}
	var order []string
	for _, o := range r.objects {
		why := staysBecause(r, o)
		if why == "" {
			continue
		}
		if names[why] == nil {
			order = append(order, why)
		}
		names[why] = append(names[why], o.displayName())
	}
	for _, why := range order {
		s.pieces = append(s.pieces, piece{rank: rankDeleted,
			forms: []string{fmt.Sprintf("- %s: %s\n", r.joinLimitedNames(names[why]), codeSpan(why))}})
	}
	return s
}

func orphanCount(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; **%s no longer in Git, but left in the cluster**", countWithNoun(n, "object"))
}
