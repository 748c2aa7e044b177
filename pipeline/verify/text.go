// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"io"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
)

// maxListedLine bounds a path or a reason in a line, in bytes.
const maxListedLine = 1000

// inText are the words for the states.
var inText = map[State]string{
	Current: "as committed", Resized: "resized in place", Older: "of an older commit", Removed: "of a workload that was removed", Changed: "changed",
	Foreign: "not from Git", Unreadable: "not comparable",
}

// Text writes the report for people: what is not as committed, each difference in a line, then the sums. verbose also names
// the pods that are as committed.
func (r *Report) Text(w io.Writer, verbose bool) error {
	var b strings.Builder
	for _, pod := range r.Pods {
		if pod.State != Current || verbose {
			pod.writePodReport(&b)
		}
	}
	if r.Commit.ID != "" {
		fmt.Fprintf(&b, "compared with %s\n", r.Commit)
	}
	total := 0
	for _, state := range States {
		total += r.Counts[state]
	}
	fmt.Fprintf(&b, "%s compared", countWithNoun(total, "pod"))
	separator := ": "
	for _, state := range States {
		if n := r.Counts[state]; n > 0 {
			fmt.Fprintf(&b, "%s%d %s", separator, n, inText[state])
			separator = ", "
		}
	}
	b.WriteString("\n")
	if r.Finished > 0 {
		fmt.Fprintf(&b, "%s that finished left out\n", countWithNoun(r.Finished, "pod"))
	}
	for _, s := range r.Sidecars {
		b.WriteString(s.String() + "\n")
	}
	if len(r.Absent) > 0 {
		fmt.Fprintf(&b, "%s without a pod: %s\n", countWithNoun(len(r.Absent), "committed workload"), foreign.List(r.Absent, maxListed))
	}
	if a := r.Attested; a != nil {
		for _, one := range a.Uncovered {
			fmt.Fprintf(&b, "%s of %s: %s\n", foreign.Line(one.File, maxListedLine), countWithNoun(one.Pods, "pod"), foreign.Line(one.Message, maxListedLine))
		}
		fmt.Fprintf(&b, "trusted statements cover %s of running pods, and not %d\n", countWithNoun(a.Covered, "file"), len(a.Uncovered))
	}
	if len(r.Unread) > 0 {
		fmt.Fprintf(&b, "not read, and so not checked: %s\n", strings.Join(r.Unread, ", "))
	}
	if r.AuditUnnamed > 0 {
		fmt.Fprintf(&b, "the audit log has %s of a pod without its name, of no use here: only the level RequestResponse has the names of controllers' pods\n",
			countWithNoun(r.AuditUnnamed, "creation"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p Pod) writePodReport(b *strings.Builder) {
	fmt.Fprintf(b, "%s/%s: %s", p.Namespace, p.Name, inText[p.State])
	if p.State != Foreign {
		fmt.Fprintf(b, " (%s", p.Workload)
		if p.File != "" {
			fmt.Fprintf(b, " in %s", p.File)
		}
		b.WriteString(")")
	}
	if p.Commit != nil && p.Commit.ID != "" && p.State != Current {
		fmt.Fprintf(b, ", commit %s", *p.Commit)
		if p.Commit.Behind > 0 {
			fmt.Fprintf(b, ", %s behind", countWithNoun(p.Commit.Behind, "commit"))
		}
	}
	if p.Message != "" {
		b.WriteString(": " + p.Message)
	}
	b.WriteString("\n")
	for _, d := range p.Differences {
		fmt.Fprintf(b, "  %s\n", d)
	}
}

// String is how far the sidecar has come: istio-proxy: 312 of 400 pods run 1.30.3, 88 run 1.29.2.
func (s Sidecar) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", s.Container)
	first := true
	for _, v := range s.Versions {
		if !first {
			b.WriteString(", ")
		}
		switch {
		case v.Committed > 0 && v.Committed == s.Pods:
			fmt.Fprintf(&b, "%d of %s run %s", v.Pods, countWithNoun(s.Pods, "pod"), v.Version)
		case v.Committed > 0:
			fmt.Fprintf(&b, "%d run %s, %d are to", v.Pods, v.Version, v.Committed)
		case v.Version == "":
			fmt.Fprintf(&b, "%d have none", v.Pods)
		default:
			fmt.Fprintf(&b, "%d run %s", v.Pods, v.Version)
		}
		first = false
	}
	return b.String()
}

// maxListed is how many names a line has.
const maxListed = 5

func countWithNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
