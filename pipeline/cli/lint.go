// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/lint/format"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/batch"
)

// lintRun is the state of one prerig lint.
type lintRun struct {
	manifestRun
	version string

	output, failOn string
	rules          []string
	asIs, list     bool
	allowEmpty     bool
	pods, injected int // that were checked, and that have an injected sidecar
	explain        string
	istio          string
	colour         string
}

// thresholds are the values of --fail-on, with the severities that fail the command.
var thresholds = map[string][]result.Severity{
	"error":   {result.Error},
	"warning": {result.Error, result.Warning},
	"info":    {result.Error, result.Warning, result.Info},
	"never":   nil,
}

func newLint(streams Streams, version string) *cobra.Command {
	l := &lintRun{manifestRun: manifestRun{streams: streams}, version: version}
	cmd := newCommand("lint [FILE|DIRECTORY]...", "Check what is risky in injected pods")
	cmd.Long = `Check the pods as they are after injection: how they start, end and complete, what they ask for,
what they may do, and what their annotations say. Nothing is written to the manifests.

The files are injected in memory, as prerig inject would do it, and the result is checked.
--as-is checks the files as they are, for example the committed output of an injection; of a
policy given with -p it uses only what is said about rules, versions, namespaces and kinds.

Findings go to standard output with the file and line of the field. The severity of a rule is
set in the policy (spec.lint.rules) or with --rule. The annotation
` + lint.IgnoreAnnotation + `: CODE,CODE excuses a workload from rules.

Exit codes:
  0  no finding is as severe as --fail-on
  1  a finding is as severe as --fail-on
  2  the input, the policy or a flag is wrong, there is no workload to check, or reading or
     writing failed`
	cmd.Example = `  prerig lint -p mesh.yaml k8s/
  prerig lint --as-is --fail-on warning rendered/
  prerig lint -o sarif k8s/ > prerig.sarif
  prerig lint --rule PR107=Off --rule PR201=Error k8s/
  prerig lint --explain PR104`
	l.addFlags(cmd)
	f := cmd.Flags()
	f.StringVarP(&l.output, "output", "o", "text", "form of the output: text, json or sarif")
	f.StringVar(&l.failOn, "fail-on", "error", "exit with 1 for findings of this severity and above: error, warning, info or never")
	f.StringArrayVar(&l.rules, "rule", nil, "severity of a rule, as CODE=Error, Warning, Info or Off; may be repeated")
	f.BoolVar(&l.asIs, "as-is", false, "check the files as they are, and inject nothing")
	f.StringVar(&l.istio, "istio-version", "", "with --as-is: version of the control plane, such as 1.31")
	f.BoolVar(&l.allowEmpty, "allow-empty", false, "do not fail if there is no workload to check")
	f.BoolVar(&l.list, "list-rules", false, "list the rules and exit")
	f.StringVar(&l.explain, "explain", "", "describe one rule and exit")
	f.StringVar(&l.colour, "color", "auto", "colours in text: auto, always or never")
	for name, values := range map[string][]string{"output": format.Names, "fail-on": {"error", "warning", "info", "never"}, "color": {"auto", "always", "never"}} {
		mustRegister(cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
	}
	mustRegister(cmd.RegisterFlagCompletionFunc("explain", cobra.FixedCompletions(ruleCodes(), cobra.ShellCompDirectiveNoFileComp)))
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return l.runLint(cmd.Context(), args) }
	return cmd
}

func ruleCodes() []string {
	var out []string
	for _, r := range lint.Rules() {
		out = append(out, r.Code+"\t"+r.Title)
	}
	return out
}

func (l *lintRun) runLint(ctx context.Context, args []string) error {
	if l.list || l.explain != "" {
		return l.printRules()
	}
	fails, ok := thresholds[l.failOn]
	if !ok {
		return fmt.Errorf("--fail-on is %q; it can be error, warning, info or never", l.failOn)
	}
	if !slices.Contains(format.Names, l.output) {
		return fmt.Errorf("--output is %q; it can be %s", l.output, strings.Join(format.Names, ", "))
	}
	if !slices.Contains([]string{"auto", "always", "never"}, l.colour) {
		return fmt.Errorf("--color is %q; it can be auto, always or never", l.colour)
	}
	severities, err := l.parseSeverities()
	if err != nil {
		return err
	}
	b, err := l.readFiles(ctx, args)
	if err != nil {
		return err
	}
	found, failed := l.findProblems(ctx, b, severities)
	if failed != nil && found == nil {
		return failed
	}
	colour := l.colour == "always" || l.colour == "auto" && l.streams.Colour
	if l.output == "text" {
		found = visibleResults(found)
	}
	if err := format.Write(l.streams.Out, l.output, found, format.Options{Version: l.version, Pods: l.pods, Injected: l.injected, Colour: colour}); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return failed
	case l.pods == 0 && !l.allowEmpty:
		return errors.New("no workload was found, so nothing was checked; name other files, or give --allow-empty where that is right")
	}
	n := 0
	for _, r := range found {
		if slices.Contains(fails, r.Severity) {
			n++
		}
	}
	if n > 0 {
		return findingsError{fmt.Sprintf("%s of severity %s or above", plural(n, "finding"), l.failOn)}
	}
	return nil
}

// printRules prints the rules, or one of them.
func (l *lintRun) printRules() error {
	if l.explain != "" {
		r, ok := lint.Lookup(strings.ToUpper(l.explain))
		if !ok {
			return fmt.Errorf("explaining rule %s: there is no such rule; --list-rules lists them", l.explain)
		}
		_, err := fmt.Fprint(l.streams.Out, r.Explain())
		return err
	}
	for _, r := range lint.Rules() {
		severity := string(r.Severity)
		if severity == "" {
			severity = "off"
		}
		if _, err := fmt.Fprintf(l.streams.Out, "%s  %-7s  %-11s  %s\n", r.Code, severity, r.Group(), r.Title); err != nil {
			return err
		}
	}
	return nil
}

// parseSeverities reads --rule.
func (l *lintRun) parseSeverities() (map[string]string, error) {
	out := map[string]string{}
	for _, text := range l.rules {
		code, severity, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--rule is %q; it is written as CODE=SEVERITY, such as PR201=Error", text)
		}
		out[code] = severity
	}
	if _, err := lint.NewSeverities(out); err != nil {
		return nil, fmt.Errorf("--rule: %w", err)
	}
	return out, nil
}

// findProblems returns the findings, in the order of the files, also beside an error about some of the files.
func (l *lintRun) findProblems(ctx context.Context, b *batch.Batch, severities map[string]string) (result.Results, error) {
	if l.asIs {
		return l.checkAsIs(b, severities)
	}
	if err := l.loadPolicies(); err != nil {
		return nil, err
	}
	for _, p := range l.allPolicies() {
		if p.Spec.Lint == nil {
			p.Spec.Lint = &v1alpha1.Lint{}
		}
		p.Spec.Lint.Disabled = false
		p.Spec.Lint.Rules = mergeSeverities(p.Spec.Lint.Rules, severities)
	}
	report, err := l.runPolicies(ctx, v1alpha1.ModeInject)
	if err != nil {
		return nil, err
	}
	for _, o := range report.Outcomes {
		if o.Action != fn.Failed {
			l.pods++
		}
		if o.Action == fn.Injected {
			l.injected++
		}
	}
	found, others := sortOut(report.Results)
	if others.Worst() == result.Error {
		l.printResults(others)
		return found, errReported
	}
	l.printResults(slices.DeleteFunc(others, func(r result.Result) bool { return r.Severity == result.Info }))
	return found, nil
}

// mergeSeverities returns the severities of a policy with those of the command line over them.
func mergeSeverities(policy, flags map[string]string) map[string]string {
	out := maps.Clone(flags)
	for code, severity := range policy {
		if _, ok := out[code]; !ok {
			out[code] = severity
		}
	}
	return out
}

// sortOut returns the findings of rules, and what else a run says: decisions, and what went wrong.
func sortOut(rs result.Results) (found, others result.Results) {
	for _, r := range rs {
		if _, ok := lint.Lookup(r.Tags[result.TagCode]); ok {
			found = append(found, r)
		} else {
			others = append(others, r)
		}
	}
	return found, others
}
