// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"bytes"
	"fmt"
	"io"
	"slices"
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
	if len(p.Mesh) > 0 {
		fmt.Fprintln(&b, "The mesh:")
		writeNotes(&b, p.Mesh)
		fmt.Fprintln(&b)
	}
	if len(p.Namespaces) == 0 {
		fmt.Fprintln(&b, p.withoutNamespaces())
	}
	for _, remark := range p.Remarks {
		fmt.Fprintf(&b, "%s\n\n", remark)
	}
	var before, after Usage
	for i, n := range p.Namespaces {
		heading := headings[n.State]
		if n.State == stateNow && n.Workloads == 0 {
			heading += ", as far as the files show"
		}
		fmt.Fprintf(&b, "%d. %s: %s\n", i+1, n.Name, heading)
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

// withoutNamespaces is what a plan of no namespace means.
func (p *Plan) withoutNamespaces() string {
	switch {
	case len(p.Unknown) > 0:
		return "Whether pods have sidecars is not known: no file has the labels of " + strings.Join(p.Unknown, ", ") +
			". Name the namespaces that move with --only, and that of objects without one with --namespace."
	case slices.ContainsFunc(p.Mesh, func(n Note) bool { return n.Code == "" }):
		return "Which namespace the objects are for is not known: name it with --namespace, and with --only as the one that moves."
	}
	return "No namespace among the files has sidecars, by a label or in a manifest. Those that are not among the files are planned with --only."
}

func (n *Namespace) writeText(b *bytes.Buffer) {
	switch {
	case n.Waypoint != "":
		fmt.Fprintf(b, "   Needs waypoint %s, for %s.\n", n.Waypoint, n.Reason)
	case slices.ContainsFunc(n.Open, func(note Note) bool { return slices.Contains(ofPolicies, note.Code) }):
		fmt.Fprintln(b, "   No step writes a waypoint: ztunnel cannot enforce the policies below, and they have to be changed first.")
	case slices.ContainsFunc(n.Open, func(note Note) bool { return slices.Contains(ofWaypoints, note.Code) }):
		fmt.Fprintln(b, "   Its own policies and routes need no waypoint; changes below ask for one of other hosts.")
	case n.partly:
		fmt.Fprintln(b, "   Needs no waypoint for the objects that name the namespace; those without a namespace are not known.")
	default:
		fmt.Fprintln(b, "   Needs no waypoint: ztunnel enforces all of its policies.")
	}
	writeNotes(b, n.Open)
	if len(n.Steps) > 0 {
		fmt.Fprintln(b, "   Steps:")
	}
	for _, s := range n.Steps {
		fmt.Fprintf(b, "     %-9s %s (%s)\n", s.Name, s.Title, counted(s.Files, "file", "files"))
	}
	for _, code := range podmap.SortedKeys(n.Solved) {
		rule, _ := lint.Lookup(code)
		fmt.Fprintf(b, "   solved by the steps: %d of %s, %s\n", n.Solved[code], code, rule.Title)
	}
	for _, gap := range n.Gaps {
		fmt.Fprintf(b, "   gap: %s\n", gap)
	}
	count := map[string]int{}
	for _, note := range n.Advice {
		count[note.Code]++
	}
	for _, code := range podmap.SortedKeys(count) {
		rule, _ := lint.Lookup(code)
		fmt.Fprintf(b, "   info: %d of %s, %s (-o json lists them)\n", count[code], code, rule.Title)
	}
	for _, remark := range n.Remarks {
		fmt.Fprintf(b, "   note: %s\n", remark)
	}
	fmt.Fprintf(b, "   %s\n", describeUsage(n.Before, n.After))
}

// ofPolicies and ofWaypoints are rules whose findings a waypoint ends: of the namespace, or of a host.
var (
	ofPolicies  = []string{"PR901", "PR903", "PR904", "PR905", "PR907", "PR908", "PR950"}
	ofWaypoints = []string{"PR910", "PR911", "PR939"}
)

// writeNotes writes one line for each sort of note, with the other objects that it is about, and the advice.
func writeNotes(b *bytes.Buffer, notes []Note) {
	sort := func(n Note) string {
		if n.Code != "" {
			return string(n.Level) + n.Code
		}
		return string(n.Level) + n.Message
	}
	done := map[string]bool{}
	for i, note := range notes {
		if done[sort(note)] {
			continue
		}
		done[sort(note)] = true
		fmt.Fprintf(b, "   %s: %s\n", note.Level, note)
		var others []string
		for _, other := range notes[i+1:] {
			if sort(other) == sort(note) {
				others = append(others, fmt.Sprintf("%s (%s:%d)", other.Object, other.File, other.Line))
			}
		}
		if len(others) > 0 {
			fmt.Fprintf(b, "      also %d more: %s\n", len(others), strings.Join(others, ", "))
		}
		if note.Fix != "" {
			fmt.Fprintf(b, "      %s\n", note.Fix)
		}
	}
}

func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

func (u Usage) plus(v Usage) Usage {
	return Usage{
		u.CPURequests + v.CPURequests, u.CPULimits + v.CPULimits, u.MemoryRequests + v.MemoryRequests, u.MemoryLimits + v.MemoryLimits, u.Pods + v.Pods,
	}
}

func describeUsage(before, after Usage) string {
	if before.Pods == 0 {
		text := "sidecars: no pod among the files gets one by the policy"
		if after.Pods == 0 {
			return text
		}
		return text + fmt.Sprintf("; after the move: %s of a waypoint, with requests of %s", counted(int(after.Pods), "pod", "pods"), after.requests())
	}
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
