// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/lint/baseline"
	"github.com/prerig/prerig/fn/lint/format"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// checkRun is the state of one prerig check, or of one of its parts, prerig lint and prerig gate.
type checkRun struct {
	manifestRun
	reportFlags
	checkParts
	version string

	asIs           bool
	pods, injected int // that lint has checked, and that have an injected sidecar
	suppressed     result.Results
	profile        string

	gateFlags
}

// checkParts are the parts that run.
type checkParts struct{ injection, lint, gate bool }

// allParts are those of prerig check.
var allParts = checkParts{injection: true, lint: true, gate: true}

func newCheck(streams Streams, version string) *cobra.Command {
	c := &checkRun{manifestRun: manifestRun{streams: streams}, version: version, checkParts: allParts}
	cmd := newCommand("check [FILE|DIRECTORY]...", "Find risks, and what a cluster would reject, in injected manifests")
	cmd.Long = `Inject the files in memory, as prerig inject does, and print one list of everything that is wrong
with the result:

  injection  workloads that cannot be injected, warnings of the injection, injections in the
             files that do not match the policy, kustomizations that would break
  lint       risks of the injected pods: how they start, stop and complete, what they
             request and may do (prerig lint checks only these)
  gate       what the API server, admission policies and Pod Security would reject
             (prerig gate checks only this)
  updates    with --against: changes that the API server rejects or ignores, and deletions
             that also delete other objects or data

Manifests are not changed, and no cluster is contacted. --as-is checks the files without
injection, for example the committed output of a build.

Findings have one scale of severities: error, warning and info. --explain CODE describes a
finding and its fix. The severity of a rule is set in the policy (spec.lint.rules) or with
--rule. --baseline hides known findings, and reports those that no longer occur.

Exit codes:
  0  no finding is as severe as --fail-on
  1  a finding is as severe as --fail-on
  2  invalid input, policy or flag, no objects to check, or a read error`
	cmd.Example = `  prerig check k8s/
  prerig check --explain PR201
  prerig check --kubernetes-version 1.34 --crds crds/ k8s/
  prerig check --against origin/main k8s/               # also as an update of what is published
  prerig check -o sarif k8s/ > prerig.sarif
  prerig check --write-baseline baseline.yaml k8s/      # accept today's findings
  prerig check --baseline baseline.yaml k8s/`
	c.addFlags(cmd)
	c.versionFlag(cmd)
	c.addReportFlags(cmd, streams, "object")
	c.addCheckFlags(cmd)
	c.addGateFlags(cmd)
	return cmd
}

// addCheckFlags adds the flags that all parts have.
func (c *checkRun) addCheckFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&c.asIs, "as-is", false, "check the files as they are, without injection")
	if c.lint {
		f.StringVar(&c.profile, "profile", "all", "rules to check: operator (mesh and policies), application (manifests) or all")
		completeChoice(cmd, "profile", lint.Profiles)
		addCheck(cmd, func() error { return checkChoice("profile", c.profile, lint.Profiles) })
	}
	mustRegister(cmd.RegisterFlagCompletionFunc("explain", cobra.FixedCompletions(ruleCompletions(c.rules()), cobra.ShellCompDirectiveNoFileComp)))
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) }
}

// checked is what was found, and the objects in it.
type checked struct {
	// unchecked are errors because of which something could not be checked.
	unchecked result.Results
	found     result.Results
	input     gateInput
}

func (c *checkRun) run(ctx context.Context, args []string) error {
	if c.list || c.explain != "" {
		return c.printRules()
	}
	severities, err := c.parseSeverities()
	if err != nil {
		return err
	}
	known, err := readBaseline(c.baseline)
	if err != nil {
		return err
	}
	var request render.GateRequest
	if c.gate {
		if request, err = c.readOptions(ctx, severities.gate); err != nil {
			return err
		}
	}
	b, err := c.readFiles(ctx, args)
	if err != nil {
		return err
	}
	if !c.allowEmpty {
		if err := c.checkAnyManifest(); err != nil {
			return fmt.Errorf("%w, or set --allow-empty if this is expected", err)
		}
	}
	old, err := c.readAgainst(ctx, slices.Concat(c.files, args))
	if err != nil {
		return err
	}
	if old != nil {
		c.published = old.docs
	}
	all, err := c.findProblems(ctx, b, severities)
	if err != nil {
		return err
	}
	if c.gate {
		request.Options.AddPolicies(c.allPolicies())
		found, err := c.askGate(ctx, request, all.input, old)
		if err != nil {
			return err
		}
		all.found = append(all.found, found...)
	}
	if c.injection {
		sortFindings(all.found)
	}
	return c.report(ctx, b, all, known)
}

// sortFindings orders findings by severity, and then by file and line.
func sortFindings(found result.Results) {
	place := func(r result.Result) result.File {
		switch {
		case r.File != nil:
			return *r.File
		case len(r.Places) > 0 && r.Places[0].File != nil:
			return *r.Places[0].File
		}
		return result.File{}
	}
	slices.SortStableFunc(found, func(a, b result.Result) int {
		at, bt := place(a), place(b)
		return cmp.Or(cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), cmp.Compare(at.Path, bt.Path),
			cmp.Compare(at.Line, bt.Line))
	})
}

// report writes the findings, or the baseline with them, and returns the error for the exit code.
func (c *checkRun) report(ctx context.Context, b *batch.Batch, all checked, known *baseline.Baseline) error {
	found := append(slices.Clone(all.unchecked), all.found...)
	count, noun := c.pods, "workload"
	if c.gate {
		count, noun = len(all.input.objects), "object"
	}
	if c.writeBaseline != "" {
		return c.saveBaseline(ctx, found, len(all.unchecked), countWithNoun(count, noun)+" checked")
	}
	options := format.Options{
		Version: c.version, Pods: c.pods, Injected: c.injected, Suppressed: c.suppressed, AllPlaces: c.verbose,
		Colour: wantsColour(c.colour, c.streams),
	}
	if c.gate {
		options.Objects, options.Rules = &count, c.describedRules(all.input.rejected)
	}
	if known != nil {
		found, options.Baseline = c.applyBaseline(known, found)
	}
	if c.output == "text" {
		found = visibleResults(found)
	}
	if err := format.Write(c.streams.Out, c.output, found, options); err != nil {
		return err
	}
	if releases := b.DescribeReleases(); c.lint && count == 0 && len(all.unchecked) == 0 && releases != "" && !c.allowEmpty {
		return fmt.Errorf("no workload was found, only %s; render them with a pipeline with spec.build.releases, and check the result", releases)
	}
	return c.exitErrorForFindings(found, len(all.unchecked), count, noun)
}

// askGate returns what the API server would reject of the objects, also as updates of old ones.
func (c *checkRun) askGate(ctx context.Context, request render.GateRequest, input gateInput,
	old *earlier) (result.Results, error) {
	request.Documents, request.Options.IstioVersions = input.documents, input.istio
	var deleted result.Results
	if old != nil {
		request.Old = old.documents
		var err error
		if deleted, err = deletions(gate.PairOld(input.objects, old.objects), request.Severities); err != nil {
			return nil, err
		}
	}
	bar := newBar(c.streams.Err, "checking against the API server's rules")
	defer bar.clearLine()
	if validator := c.findValidator(len(input.objects)); validator != nil {
		var err error
		if request.Options.Validated, err = gate.Validate(ctx, input.objects, validator); err != nil {
			return nil, err
		}
	}
	found, err := checkByRenderer(ctx, request)
	if err != nil {
		return nil, err
	}
	bar.clearLine()
	return slices.Concat(deleted, gate.JoinUndescribed(c.setFilledAside(found, input.objects))), nil
}
