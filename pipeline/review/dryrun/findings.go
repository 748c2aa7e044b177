// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/review/diff/group"
)

// findings returns what is found about changes, those that several places have in common once, errors first.
func (c *Comparison) findings() (out result.Results) {
	seen := map[string]bool{}
	for _, p := range c.Pipelines {
		for _, t := range p.Targets {
			for _, one := range t.Findings {
				if key := one.String(); !seen[key] {
					seen[key], out = true, append(out, one)
				}
			}
		}
	}
	out.Sort()
	return out
}

// destroyedBy returns what the deletion of a change's objects also destroys, or "" if it destroys only these.
func destroyedBy(c group.Change) string {
	if c.Kind != group.Deleted {
		return ""
	}
	for _, o := range c.Objects {
		kind, _, _ := strings.Cut(o.Name, " ")
		for _, apiGroup := range []string{"", "apiextensions.k8s.io"} {
			if why := (gate.Identity{Group: apiGroup, Kind: kind}).Destroys(); why != "" {
				return why
			}
		}
	}
	return ""
}

// destroyedFirst moves the deletions that take something along to the front.
func destroyedFirst(changes []group.Change) {
	slices.SortStableFunc(changes, func(a, b group.Change) int {
		rank := map[bool]int{true: 0, false: 1}
		return rank[destroyedBy(a) != ""] - rank[destroyedBy(b) != ""]
	})
}
