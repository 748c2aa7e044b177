// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
)

func newLint(streams Streams, version string) *cobra.Command {
	l := &checkRun{manifestRun: manifestRun{streams: streams}, version: version, checkParts: checkParts{lint: true}}
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
	l.addCheckFlags(cmd)
	cmd.Flags().StringVar(&l.istio, "istio-version", "", "with --as-is: version of the control plane, such as 1.31")
	return cmd
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

// countPods counts the pods of a run that lint has checked, and warns of those that it could not.
func (c *checkRun) countPods(report *fn.Report, unchecked result.Results) (warnings result.Results) {
	failed := map[string]bool{} // by place and name: other findings about such an object may be wrong
	for _, r := range unchecked {
		if r.ResourceRef != nil && r.File != nil {
			failed[r.File.Path+" "+r.ResourceRef.String()] = true
		}
	}
	for _, o := range report.Outcomes {
		switch {
		case failed[o.File.Path+" "+o.Ref.String()], o.Action == fn.Failed:
		case o.Action == fn.Injected:
			c.pods++
			c.injected++
		case o.UnknownKind:
			warnings = append(warnings, notChecked(o))
		default:
			c.pods++
		}
	}
	return warnings
}

// notChecked is the warning about a workload that was passed over, as an injector in the cluster does not pass over its
// pods.
func notChecked(o fn.Outcome) result.Result {
	severity := result.Warning
	if o.WrongKind {
		severity = result.Error
	}
	return result.Result{
		Severity: severity, Message: "its pods were not checked: " + o.Reason,
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
