// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/podmap"
)

// headings are the states of namespaces as people read them.
var headings = map[string]string{
	stateNow: "can move now", stateChange: "something must change first", stateBlocked: "cannot move yet",
}

// WriteText writes the plan for people.
func (p *Plan) WriteText(w io.Writer) error {
	var b bytes.Buffer
	for _, n := range p.Mesh {
		fmt.Fprintf(&b, "note: %s\n\n", n)
	}
	if len(p.Namespaces) == 0 {
		fmt.Fprintln(&b, "No namespace among the files has sidecars, by a label or in a manifest.")
	}
	var before, after Usage
	for i, n := range p.Namespaces {
		fmt.Fprintf(&b, "%d. %s: %s\n", i+1, n.Name, headings[n.State])
		n.writeText(&b)
		fmt.Fprintln(&b)
		before, after = before.plus(n.Before), after.plus(n.After)
	}
	if len(p.Namespaces) > 1 {
		fmt.Fprintf(&b, "All namespaces: %s\n", describeUsage(before, after))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (n *Namespace) writeText(b *bytes.Buffer) {
	if n.Waypoint == "" {
		fmt.Fprintln(b, "   Needs no waypoint: ztunnel enforces all of its policies.")
	} else {
		fmt.Fprintf(b, "   Needs waypoint %s, for %s.\n", n.Waypoint, n.Reason)
	}
	for _, note := range n.Open {
		fmt.Fprintf(b, "   %s: %s\n", note.Level, note)
		if note.Fix != "" {
			fmt.Fprintf(b, "      %s\n", note.Fix)
		}
	}
	if len(n.Steps) > 0 {
		fmt.Fprintln(b, "   Steps:")
	}
	for _, s := range n.Steps {
		fmt.Fprintf(b, "     %-9s %s (%s)\n", s.Name, s.Title, counted(s.Files, "file"))
	}
	for _, code := range podmap.SortedKeys(n.Solved) {
		rule, _ := lint.Lookup(code)
		fmt.Fprintf(b, "   solved by the steps: %d of %s, %s\n", n.Solved[code], code, rule.Title)
	}
	for _, gap := range n.Gaps {
		fmt.Fprintf(b, "   gap: %s\n", gap)
	}
	if len(n.Advice) > 0 {
		fmt.Fprintf(b, "   %d settings have no effect after the move (prerig lint lists them)\n", len(n.Advice))
	}
	fmt.Fprintf(b, "   %s\n", describeUsage(n.Before, n.After))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (u Usage) plus(v Usage) Usage {
	return Usage{
		u.CPURequests + v.CPURequests, u.CPULimits + v.CPULimits, u.MemoryRequests + v.MemoryRequests, u.MemoryLimits + v.MemoryLimits, u.Pods + v.Pods,
	}
}

func describeUsage(before, after Usage) string {
	text := fmt.Sprintf("sidecars: %d, which request %s and may use up to %s; ", before.Pods, before.requests(), before.limits())
	if after.Pods == 0 {
		return text + "after the move there are none"
	}
	return text + fmt.Sprintf("after the move: one waypoint pod for each namespace that needs one, %d in all, which request %s and may use up to %s", after.Pods, after.requests(), after.limits())
}

func (u Usage) requests() string { return amounts(u.CPURequests, u.MemoryRequests) }

func (u Usage) limits() string { return amounts(u.CPULimits, u.MemoryLimits) }

func amounts(milli, memory int64) string {
	cpu := strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", float64(milli)/1000), "0"), ".")
	return fmt.Sprintf("%s CPU and %d MiB", cpu, memory>>20)
}
