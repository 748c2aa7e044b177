// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/review/diff/group"
)

// dangerLines returns what a change may break.
func dangerLines(c group.Change) (out []string) {
	if why := destroyedBy(c); why != "" {
		out = append(out, "deleted "+why)
	}
	for _, text := range dangersOf(c) {
		var names []string
		for _, o := range c.Objects {
			if slices.Contains(o.Dangers, text) {
				names = append(names, o.Name)
			}
		}
		line := "danger: " + foreign.Visible(text)
		if len(names) < len(c.Objects) {
			line += ": " + foreign.List(names, shownParts)
		}
		out = append(out, line)
	}
	return out
}

// noteLines returns what else a reader has to know of a change, each line once.
func noteLines(c group.Change) (out []string) {
	for _, o := range c.Objects {
		for _, text := range o.Notes {
			if line := foreign.Visible(text); !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	if len(out) > shownParts {
		out = append(out[:shownParts], fmt.Sprintf("and %d more lines about its objects (-o json has all)", len(out)-shownParts))
	}
	return out
}

// writeMoves writes the moves, those between the same two in one line.
func writeMoves(out *strings.Builder, moves []Move) {
	byPlaces := map[[2]string][]string{}
	var order [][2]string
	for _, m := range moves {
		key := [2]string{m.From, m.To}
		if byPlaces[key] == nil {
			order = append(order, key)
		}
		byPlaces[key] = append(byPlaces[key], m.Object)
	}
	for _, key := range order {
		names := byPlaces[key]
		fmt.Fprintf(out, "moved, which by itself changes nothing in the cluster: %s from %s to %s: %s\n",
			countWithNoun(len(names), "object"), key[0], key[1], foreign.List(names, shownParts))
	}
}
