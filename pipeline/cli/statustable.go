// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/server"
)

// wide is the length of lines without a terminal that defines one.
const wide = 240

// writeStatusList is the table with a line that counts, for people.
func writeStatusList(w io.Writer, found, all []server.Pipeline) error {
	columns, ok := terminalWidth(w)
	if !ok {
		columns = wide
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "the daemon has no pipelines")
		return err
	}
	if err := statusTable(w, found, columns); err != nil {
		return err
	}
	counts := map[string]int{}
	for _, p := range all {
		counts[p.State]++
	}
	var parts []string
	for _, state := range states {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	shown := ""
	if len(found) < len(all) {
		shown = fmt.Sprintf(", %d shown", len(found))
	}
	_, err := fmt.Fprintf(w, "%s%s: %s\n", countWithNoun(len(all), "pipeline"), shown, strings.Join(parts, ", "))
	return err
}

// statusTable prints one line for each pipeline. Pipelines that need attention come last, where they have not
// scrolled off a terminal.
func statusTable(w io.Writer, found []server.Pipeline, columns int) error {
	if len(found) == 0 {
		return nil
	}
	sorted := slices.Clone(found)
	slices.SortStableFunc(sorted, func(a, b server.Pipeline) int {
		return slices.Index(states, b.State) - slices.Index(states, a.State)
	})
	rows := [][]string{{"PIPELINE", "STATE", "LAST RUN", "REVISION", "MESSAGE"}}
	for _, p := range sorted {
		when, revision := "-", "-"
		if run := p.Status.LastRun; run != nil {
			when, revision = timeSince(run.Finished.Time), shortRevision(run.Revision)
		}
		// The last run may have failed before it had a revision, and its source be as it was before that.
		if published := p.Status.Published; revision == "-" && p.State == server.StateReady && len(published) > 0 {
			revision = shortRevision(published[0].SourceRevision)
		}
		rows = append(rows, []string{shortenLine(p.Name, 80), p.State, when, revision, shortenLine(waitingText(p.Status.Published)+p.Message, wide)})
	}
	widths := make([]int, 5)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		left := columns
		for i, cell := range row[:4] {
			out.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			left -= widths[i] + 2
		}
		out.WriteString(shortenLine(row[4], max(20, left)))
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func writePipelineStatus(w io.Writer, p server.Pipeline) error {
	fmt.Fprintf(w, "%s: %s\n", p.Name, p.State)
	for text := range strings.Lines(p.Message) {
		fmt.Fprintf(w, "  %s\n", shortenLine(text, 4096))
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "  file\t%s\n", p.File)
	if p.Source != "" {
		fmt.Fprintf(table, "  source\t%s\n", p.Source)
	}
	for _, one := range p.Sources {
		fmt.Fprintf(table, "  mounted\t%s\n", strings.TrimSuffix(one.MountPath+" from "+one.URL+" at "+one.Revision, " at "))
	}
	for _, one := range p.Status.Published {
		from := one.SourceRevision
		for _, mounted := range one.Sources {
			from += ", " + mounted.MountPath + " from " + mounted.Revision
		}
		word := "published"
		if one.PullRequest != nil {
			word = "proposed"
		}
		fmt.Fprintf(table, "  %s\t%s at %s from %s\n", word, one.Target, one.Revision, from)
		if one.PullRequest != nil {
			fmt.Fprintf(table, "  waits\t%s\n", describePullRequest(one.PullRequest))
			if one.PullRequest.Message != "" {
				fmt.Fprintf(table, "  \t%s\n", shortenLine(one.PullRequest.Message, wide))
			}
		}
	}
	for _, one := range p.Status.Conditions {
		since := ""
		if !one.LastTransitionTime.IsZero() { // a file that is no pipeline has no state of which the time is known
			since = ", for " + shortAge(one.LastTransitionTime.Time)
		}
		fmt.Fprintf(table, "  %s\t%s, %s%s\n", strings.ToLower(one.Type), one.Status, one.Reason, since)
	}
	if err := table.Flush(); err != nil || len(p.Runs) == 0 {
		return err
	}
	fmt.Fprintln(w)
	table = tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "  RUN\tOUTCOME\tWHEN\tREVISION\tWHY\tMESSAGE")
	for _, run := range p.Runs {
		outcome := run.Outcome
		if run.Repeats > 0 {
			outcome = fmt.Sprintf("%s x%d", outcome, run.Repeats+1)
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\n", run.ID, outcome, timeSince(run.Finished.Time),
			shortRevision(run.Revision), run.Reason, shortenLine(run.Message, 160))
	}
	return table.Flush()
}

// waitingText lists the pull requests that results wait in, as a prefix of a message.
func waitingText(published []v1alpha1.Published) string {
	var out strings.Builder
	for _, one := range published {
		if one.PullRequest != nil {
			out.WriteString(describePullRequest(one.PullRequest) + "; ")
		}
	}
	return out.String()
}

// describePullRequest describes for whom a pull request waits and since when, or its outcome.
func describePullRequest(r *v1alpha1.PullRequestStatus) string {
	name := fmt.Sprintf("pull request %d", r.Number)
	if r.Number == 0 {
		name = r.Head
	}
	switch r.State {
	case v1alpha1.PullRequestClosed:
		name += " was closed by a person"
	case v1alpha1.PullRequestEdited:
		name += " has commits of a person and waits for a merge"
	default:
		name += " waits for a merge"
	}
	switch {
	case r.Since.IsZero():
	case r.State == v1alpha1.PullRequestClosed:
		name += ", " + timeSince(r.Since.Time)
	default:
		name += ", for " + shortAge(r.Since.Time)
	}
	if r.URL != "" {
		name += ": " + r.URL
	}
	return name
}

func timeSince(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return shortAge(t) + " ago"
}

// shortAge is how long ago something was, in the largest unit that fits twice.
func shortAge(t time.Time) string {
	d := max(0, time.Since(t))
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// shortRevision keeps the name and the first digits of a revision.
func shortRevision(revision string) string {
	name, hash, ok := strings.Cut(revision, ":")
	if revision == "" {
		return "-"
	}
	if !ok || len(hash) < 12 {
		return revision
	}
	return name + ":" + hash[:12]
}

// oneLine keeps a text to one line of a table.
func oneLine(text string) string { return shortenLine(text, 160) }

// shortenLine keeps a text to one line of so many characters. What would move a terminal's cursor is left out.
func shortenLine(text string, longest int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > longest {
		text = strings.TrimRight(string(runes[:longest-1]), " ") + "…"
	}
	return text
}
