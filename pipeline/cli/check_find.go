// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/lint/format"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/overlay"
)

// findProblems returns the findings of injection and lint, and the objects for the gate.
func (c *checkRun) findProblems(ctx context.Context, b *batch.Batch, given severities) (checked, error) {
	if c.asIs {
		return c.findAsIs(b, given)
	}
	if err := c.loadPolicies(); err != nil {
		return checked{}, err
	}
	for _, p := range c.allPolicies() {
		if p.Spec.Lint == nil {
			p.Spec.Lint = &v1alpha1.Lint{}
		}
		p.Spec.Lint.Disabled = !c.lint
		if c.lint {
			p.Spec.Lint.Rules = mergeSeverities(p.Spec.Lint.Rules, given.lint)
		}
	}
	if c.gate {
		c.shareConstraints()
	}
	overlays, opts, err := c.overlaysOf(ctx, b)
	if err != nil {
		return checked{}, err
	}
	report, err := c.runPolicies(ctx, v1alpha1.ModeInject, opts...)
	if err != nil {
		return checked{}, err
	}
	found, unchecked, others := sortOut(report.Results)
	all := checked{unchecked: unchecked}
	if c.lint {
		c.suppressed = report.Suppressed
		joinEqualErrors(unchecked)
		found = append(found, c.countPods(report, unchecked)...)
		all.found = found
	} else {
		all.input.rejected = slices.DeleteFunc(found, func(r result.Result) bool { return r.Severity != result.Error })
		all.found = all.input.rejected
	}
	notable := slices.DeleteFunc(others, func(r result.Result) bool { return r.Severity == result.Info })
	if c.injection {
		c.addInjectionFindings(&all, report, append(notable, overlays.Check(report.Outcomes, b.Items())...),
			given.injection)
	} else {
		c.printResults(notable)
	}
	all.unchecked, all.found = lint.JoinMesh(all.unchecked), lint.JoinMesh(all.found)
	if c.gate {
		c.addGateObjects(&all, report)
	}
	all.unchecked, all.found = withoutRepeated(all.unchecked, nil), withoutRepeated(all.found, all.unchecked)
	return all, nil
}

// withoutRepeated returns the results without those about a file that the injection and the gate both cannot read, of which
// one names the object too.
func withoutRepeated(results, known result.Results) (out result.Results) {
	isKnown := func(r result.Result) bool {
		return slices.ContainsFunc(slices.Concat(known, out), func(other result.Result) bool {
			return r.Message == other.Message && r.Severity == result.Error && r.File != nil && other.File != nil && r.File.Path == other.File.Path &&
				(r.ResourceRef == nil || other.ResourceRef == nil)
		})
	}
	for _, r := range results {
		if !isKnown(r) && !isWarnedTwice(r, results) {
			out = append(out, r)
		}
	}
	return out
}

// isWarnedTwice reports whether a warning of the injection is a finding of a rule, too.
func isWarnedTwice(r result.Result, results result.Results) bool {
	return r.Tags[result.TagCode] == codeInjectionWarning && r.File != nil && slices.ContainsFunc(results, func(other result.Result) bool {
		return other.Message == r.Message && other.Tags[result.TagCode] != codeInjectionWarning && other.File != nil && *other.File == *r.File
	})
}

// overlaysOf finds the kustomizations around the files, and the options that their check needs. Only the injection
// reports them.
func (c *checkRun) overlaysOf(ctx context.Context, b *batch.Batch) (*overlay.Set, []fn.Option, error) {
	var paths []string
	for _, f := range b.Files {
		if !f.Input.Stdin() {
			paths = append(paths, f.Input.Path)
		}
	}
	if !c.injection || len(paths) == 0 {
		return &overlay.Set{}, nil, nil
	}
	found, err := overlay.Find(ctx, paths)
	if err != nil || found.Empty() {
		return &overlay.Set{}, nil, err
	}
	return found, []fn.Option{fn.WithPods()}, nil
}

// addInjectionFindings makes findings of what the injection reports: errors about workloads, warnings, and injections
// in the files that differ from the result.
func (c *checkRun) addInjectionFindings(all *checked, report *fn.Report, warnings result.Results,
	given map[string]string) {
	add := func(r result.Result, code string) {
		i := slices.IndexFunc(injectionRules, func(rule format.Rule) bool { return rule.Code == code })
		r.Severity = injectionRules[i].Severity
		if text, ok := given[code]; ok {
			r.Severity, _ = result.ParseSeverity(text) // checked with the flags
		}
		if r.Severity == "" {
			return
		}
		r.Tags = maps.Clone(r.Tags)
		if r.Tags == nil {
			r.Tags = map[string]string{}
		}
		r.Tags[result.TagCode] = code
		all.found = append(all.found, r)
	}
	all.unchecked = slices.DeleteFunc(all.unchecked, func(r result.Result) bool {
		if r.ResourceRef == nil {
			return false
		}
		add(r, codeInjectionFailed)
		return true
	})
	for _, r := range warnings {
		code := codeInjectionWarning
		if r.Tags[overlay.TagInput] != "" {
			code = codeInjectionOverlay
		}
		add(r, code)
	}
	for _, o := range report.Outcomes {
		if !o.Changed || o.EarlierImage == "" {
			continue
		}
		message := "the file has an injection that does not match the policy"
		if o.Image != "" && o.Image != o.EarlierImage {
			message = fmt.Sprintf("the file has the proxy %s, and the policy injects %s", o.EarlierImage, o.Image)
		}
		add(result.Result{Message: message, ResourceRef: &o.Ref, File: &o.File}, codeInjectionOutdated)
	}
}

// addGateObjects adds the objects as they are after the injection.
func (c *checkRun) addGateObjects(all *checked, report *fn.Report) {
	all.input.istio = istioVersions(report)
	for _, group := range c.groups {
		all.unchecked = append(all.unchecked, all.input.addItems(group.batch.ItemsAfter(), group.batch.Items())...)
	}
	for _, doc := range report.Added {
		added := []fn.Item{{Doc: doc}}
		all.unchecked = append(all.unchecked, all.input.addItems(added, added)...)
	}
}

// findAsIs returns the findings of lint in the files as they are, and the objects for the gate.
func (c *checkRun) findAsIs(b *batch.Batch, given severities) (all checked, err error) {
	all.unchecked = slices.Clone(b.Problems())
	if c.lint {
		if all.found, all.unchecked, err = c.checkAsIs(b, given.lint); err != nil {
			return all, err
		}
		all.found, all.unchecked = lint.JoinMesh(all.found), lint.JoinMesh(all.unchecked)
	}
	c.printNotices()
	if c.gate {
		items := b.Items()
		for _, r := range all.input.addItems(items, items) {
			if !slices.ContainsFunc(all.unchecked, func(known result.Result) bool { return known.Message == r.Message }) {
				all.unchecked = append(all.unchecked, r)
			}
		}
	}
	return all, nil
}
