// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/decide"
)

// Table writes one line for each workload.
func (e Explanation) Table(w io.Writer) error {
	several := map[string]int{}
	for _, wl := range e.Workloads {
		several[wl.sortKey()]++
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WORKLOAD\tINJECTED\tWEBHOOK/RULE\tREVISION\tTEMPLATES\tREASON")
	for _, wl := range e.Workloads {
		name := wl.Name()
		if several[wl.sortKey()] > 1 {
			name += " " + wl.Field
		}
		rule := ""
		if wl.Webhook != nil {
			rule = wl.Webhook.shortRule()
		}
		fmt.Fprintln(t, strings.Join([]string{
			name, wl.injectedColumn(), textOrDash(rule), textOrDash(wl.Revision),
			textOrDash(strings.Join(wl.Templates, ",")), wl.reasonText(),
		}, "\t"))
	}
	return t.Flush()
}

func (w Workload) sortKey() string { return fmt.Sprint(w.File, w.Line, w.Object) }

// injectedColumn returns yes, no, or another outcome.
func (w Workload) injectedColumn() string {
	switch w.Action {
	case fn.Injected:
		return "yes"
	case fn.Skipped:
		return "no"
	case fn.Failed:
		return "error"
	}
	return string(w.Action)
}

// reasonText is the reason with the source of what decided, and the sidecars that are not Istio's.
func (w Workload) reasonText() string {
	s := strings.Join(strings.Fields(w.Reason), " ")
	if w.Deciding != nil && w.Deciding.Source != "" && w.Deciding.Source != decide.SourceUnknown {
		s += " [" + w.Deciding.Source + "]"
	}
	for _, c := range w.Sidecars {
		if c.Injected {
			s += "; sidecar " + c.Name + ": " + c.Reason
		}
	}
	return s
}

func textOrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Detail writes all that is known of the decision for each workload.
func (e Explanation) Detail(w io.Writer) error {
	var b strings.Builder
	for i, wl := range e.Workloads {
		if i > 0 {
			b.WriteByte('\n')
		}
		wl.writeDetail(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (w Workload) writeDetail(b *strings.Builder) {
	fmt.Fprintf(b, "%s (%s:%d)\n", w.Name(), w.File, w.Line)
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(b, "  %-12s %s\n", label+":", text)
		}
	}
	line("injected", w.injectedColumn())
	line("reason", w.Reason)
	if w.Deciding != nil {
		line("decided by", w.Deciding.words+sourceSuffix(w.Deciding.Source))
	}
	if w.Webhook != nil {
		line("webhook", w.Webhook.Configuration+" "+w.Webhook.Rule+sourceSuffix(w.Webhook.Source))
	}
	for _, o := range w.Others {
		line("also", o.Configuration+" "+o.Rule+sourceSuffix(o.Source))
	}
	line("revision", w.Revision)
	line("templates", strings.Join(w.Templates, ", "))
	line("pod at", w.Field)
	if n := w.Namespace; n != nil {
		line("namespace", n.describeNamespaceLabels())
	}
	line("policy", w.Policy)
	line("Istio", w.Version)
	for _, c := range w.Sidecars {
		line("sidecar", fmt.Sprintf("%s: %s: %s", c.Name, yesOrNo(c.Injected), c.Reason))
	}
	for _, p := range w.Problems {
		line("note", p)
	}
	if len(w.Trace) == 0 {
		return
	}
	b.WriteString("  steps:\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, s := range w.stepsTaken() {
		fmt.Fprintf(t, "    %s\t%s\t%s\t%s\n", s.Stage, s.Answer, s.What, s.Because)
	}
	_ = t.Flush() // writes to a strings.Builder do not fail
}

func (n Namespace) describeNamespaceLabels() string {
	name := n.Name
	if name == "" {
		name = "not named"
	}
	if !n.Known && n.Source != "" && n.Source != decide.SourceUnknown {
		return name + ", which has no injection label" + sourceSuffix(n.Source)
	}
	if !n.Known {
		return name + ", labels unknown"
	}
	return name + sourceSuffix(n.Source)
}

func sourceSuffix(source string) string {
	switch source {
	case "":
		return ""
	case decide.SourceUnknown:
		return " (which is " + source + ")"
	}
	return " (from " + source + ")"
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// stepsTaken returns the steps that the API server and the injector take: if no webhook matches, the injector is not called,
// and its answers would mislead.
func (w Workload) stepsTaken() []Step {
	asked, called := false, false
	for _, s := range w.Trace {
		if s.Stage == decide.StageWebhook {
			asked = true
			called = called || s.Answer != string(decide.No)
		}
	}
	if !asked || called {
		return w.Trace
	}
	steps := slices.DeleteFunc(slices.Clone(w.Trace), func(s Step) bool { return s.Stage == decide.StageInjector })
	return append(steps, Step{Stage: decide.StageInjector, Answer: "-", What: "not called", Because: "no webhook matches"})
}
