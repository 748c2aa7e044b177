// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
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
	reportFlags
	version string

	asIs           bool
	pods, injected int // that were checked, and that have an injected sidecar
	suppressed     result.Results
	profile        string
	baseline       string
	writeBaseline  string
	explain        string
	istio          string
}

func newLint(streams Streams, version string) *cobra.Command {
	l := &lintRun{manifestRun: manifestRun{streams: streams}, version: version}
	cmd := newCommand("lint [FILE|DIRECTORY]...", "Check injected pods for risks")
	cmd.Long = `Check the pods after injection: how they start, stop and complete, what they request, what
they are allowed to do, and their annotations. Manifests are not changed.

The files are injected in memory, as by prerig inject, and the result is checked. --as-is
checks the files without injection, for example the committed output of an injection; from a
policy specified with -p, it uses only the settings for rules, versions, namespaces and kinds.

Findings are printed to standard output with the file and line of the field. A finding that a
mesh setting causes in many workloads is printed once, with the workloads. The severity of a
rule is set in the policy (spec.lint.rules) or with --rule; --profile selects the rules by who
can fix their findings.

An accepted finding is suppressed, with its reason, by an annotation on the object,
` + lint.IgnoreAnnotation + `.CODE: REASON, or in the policy (spec.lint.suppress). --baseline hides
known findings, and reports those that no longer occur.

A file that cannot be read does not prevent the other files from being checked: its error is
reported with the findings, and the exit code is 2.

Exit codes:
  0  no finding is as severe as --fail-on
  1  a finding is as severe as --fail-on
  2  invalid input, policy or flag, no workloads to check, or a read or write error`
	cmd.Example = `  prerig lint -p mesh.yaml k8s/
  prerig lint --as-is --fail-on warning rendered/
  prerig lint -o sarif k8s/ > prerig.sarif
  prerig lint --profile application k8s/
  prerig lint --write-baseline lint-baseline.yaml k8s/
  prerig lint --baseline lint-baseline.yaml k8s/
  prerig lint --rule PR107=Off --rule PR201=Error k8s/
  prerig lint --explain PR104`
	l.addFlags(cmd)
	l.addReportFlags(cmd, streams, "workload")
	f := cmd.Flags()
	f.StringVar(&l.profile, "profile", "all", "rules to check: operator (mesh and policies), application (manifests) or all")
	f.StringVar(&l.baseline, "baseline", "", "file with known findings, which are not reported")
	f.StringVar(&l.writeBaseline, "write-baseline", "", "write the findings to this file for --baseline, and exit with 0")
	refuseTogether(cmd, "baseline", "write-baseline")
	f.BoolVar(&l.asIs, "as-is", false, "check the files as they are, without injection")
	f.StringVar(&l.istio, "istio-version", "", "with --as-is: version of the control plane, such as 1.31")
	f.StringVar(&l.explain, "explain", "", "describe one rule and exit")
	completeChoice(cmd, "profile", lint.Profiles)
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
	if err := l.checkFlags(); err != nil {
		return err
	}
	severities, err := l.parseSeverities()
	if err != nil {
		return err
	}
	known, err := l.readBaseline()
	if err != nil {
		return err
	}
	b, err := l.readFiles(ctx, args)
	if err != nil {
		return err
	}
	found, err := l.findProblems(ctx, b, severities)
	if err != nil {
		return err
	}
	found = lint.JoinMesh(found)
	unchecked := countUnchecked(found)
	if l.writeBaseline != "" {
		return l.saveBaseline(ctx, found, unchecked)
	}
	options := format.Options{
		Version: l.version, Pods: l.pods, Injected: l.injected, Suppressed: l.suppressed, AllPlaces: l.verbose,
		Colour: wantsColour(l.colour, l.streams),
	}
	if known != nil {
		found, options.Baseline = l.applyBaseline(known, found)
	}
	if l.output == "text" {
		found = visibleResults(found)
	}
	if err := format.Write(l.streams.Out, l.output, found, options); err != nil {
		return err
	}
	if releases := b.DescribeReleases(); l.pods == 0 && unchecked == 0 && releases != "" && !l.allowEmpty {
		return fmt.Errorf("no workload was found, only %s; render them with a pipeline with spec.build.releases, and check the result", releases)
	}
	return l.exitErrorForFindings(found, unchecked, l.pods, "workload")
}

// checkFlags refuses values that flags cannot have.
func (l *lintRun) checkFlags() error {
	if err := l.checkReportFlags(); err != nil {
		return err
	}
	return checkChoice("profile", l.profile, lint.Profiles)
}

// countUnchecked counts what no rule has found: errors about what could not be checked.
func countUnchecked(rs result.Results) int {
	n := 0
	for _, r := range rs {
		if isUnchecked(r) {
			n++
		}
	}
	return n
}

func isUnchecked(r result.Result) bool {
	return r.Severity == result.Error && r.Tags[result.TagCode] == ""
}

// joinEqualErrors marks errors about whole pods so that equal ones are joined, as of the many workloads of
// kustomizations that name no namespace.
func joinEqualErrors(unchecked result.Results) {
	for i, r := range unchecked {
		if r.ResourceRef == nil || r.Field != nil && r.Field.Path != "" && !strings.HasSuffix(r.Field.Path, ".template") {
			continue
		}
		tags := maps.Clone(r.Tags)
		if tags == nil {
			tags = map[string]string{}
		}
		tags[lint.TagScope] = lint.ScopeMesh
		unchecked[i].Tags = tags
	}
}

// printRules prints the rules, or one of them.
func (l *lintRun) printRules() error {
	if l.explain != "" {
		r, ok := lint.Lookup(strings.ToUpper(l.explain))
		if !ok {
			return fmt.Errorf("explaining rule %s: no such rule; --list-rules lists them", l.explain)
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

// parseSeverities reads --rule, and switches off the rules that --profile leaves out, unless --rule names them.
func (l *lintRun) parseSeverities() (map[string]string, error) {
	out, err := l.ruleSeverities("PR201=Error")
	if err != nil {
		return nil, err
	}
	if _, err := lint.NewSeverities(out); err != nil {
		return nil, fmt.Errorf("--rule: %w", err)
	}
	for _, r := range lint.Rules() {
		if _, named := out[r.Code]; !named && !r.In(l.profile) {
			out[r.Code] = "Off"
		}
	}
	return out, nil
}

// findProblems returns what could not be checked, and the findings in the order of the files.
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
	found, unchecked, others := sortOut(report.Results)
	failed := map[string]bool{} // by place and name: other findings about such an object may be wrong
	for _, r := range unchecked {
		if r.ResourceRef != nil && r.File != nil {
			failed[r.File.Path+" "+r.ResourceRef.String()] = true
		}
	}
	joinEqualErrors(unchecked)
	for _, o := range report.Outcomes {
		if failed[o.File.Path+" "+o.Ref.String()] {
			continue
		}
		switch o.Action {
		case fn.Failed:
		case fn.Injected:
			l.pods++
			l.injected++
		default:
			if o.UnknownKind {
				found = append(found, notChecked(o))
				continue
			}
			l.pods++
		}
	}
	l.suppressed = report.Suppressed
	l.printResults(slices.DeleteFunc(others, func(r result.Result) bool { return r.Severity == result.Info }))
	return append(unchecked, found...), nil
}

// notChecked is the warning about a workload that was passed over, as an injector in the cluster does not pass over its pods.
func notChecked(o fn.Outcome) result.Result {
	return result.Result{
		Severity: result.Warning, Message: "its pods were not checked: " + o.Reason,
		ResourceRef: &o.Ref, Field: &result.Field{Path: o.Field}, File: &o.File,
	}
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

// sortOut returns the findings of rules, the errors that prevented checks, and the other messages of a run:
// decisions and warnings.
func sortOut(rs result.Results) (found, unchecked, others result.Results) {
	for _, r := range rs {
		_, ok := lint.Lookup(r.Tags[result.TagCode])
		switch {
		case ok:
			found = append(found, r)
		case r.Severity == result.Error:
			unchecked = append(unchecked, r)
		default:
			others = append(others, r)
		}
	}
	return found, unchecked, others
}
