// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/policy"
)

// policyGroup are the files that the same policies are for.
type policyGroup struct {
	batch    *batch.Batch
	policies []*v1alpha1.InjectionPolicy
	// origins lists the origins of the policies.
	origins []string
	// byDefault reports whether the policy was not chosen explicitly: without a file, the one that comes with
	// Prerig is used.
	byDefault bool
	// report is the result of the run.
	report *fn.Report
}

// loadPolicies finds the policies of the files that were read, and applies flags to them.
func (r *manifestRun) loadPolicies() error {
	if err := r.choosePolicies(); err != nil {
		return err
	}
	for _, g := range r.groups {
		for i, p := range g.policies {
			changed, err := r.overridePolicy(p, g.origins[i])
			if err != nil {
				return err
			}
			g.policies[i] = changed
		}
		if err := g.findLocks(); err != nil {
			return err
		}
	}
	r.printAppliedPolicies()
	return nil
}

// findLocks finds the image locks that the policies name and that are not among the files of the run: beside the
// policy.
func (g *policyGroup) findLocks() error {
	for i, p := range g.policies {
		if p.Spec.Images == nil || p.Spec.Images.Lock == "" || g.batch.HasLock(p.Spec.Images.Lock) {
			continue
		}
		lock, ok, err := policy.Named{InjectionPolicy: p, Origin: g.origins[i]}.FindLock(p.Spec.Images.Lock)
		if err != nil {
			return err
		}
		if ok && !slices.ContainsFunc(g.batch.Locks, func(l fn.Item) bool { return l.Path == lock.Path && l.Index == lock.Index }) {
			g.batch.Locks = append(g.batch.Locks, lock)
		}
	}
	return nil
}

// choosePolicies assigns every file its policies: those that flags name, otherwise the functionConfig of a
// ResourceList in the input, otherwise the nearest prerig.yaml, otherwise the built-in one.
func (r *manifestRun) choosePolicies() error {
	if r.batch == nil {
		r.batch = &batch.Batch{}
	}
	var named []policy.Named
	var errs []error
	switch {
	case r.kubeInject.Given():
		n, err := r.kubeInject.Policy()
		named, errs = append(named, n), append(errs, err)
	case len(r.policies) > 0:
		for _, name := range r.policies {
			n, err := policy.Load(name)
			named, errs = append(named, n), append(errs, err)
		}
	default:
		n, ok, err := r.batch.FunctionConfig()
		if !ok && err == nil {
			return r.chooseNearest()
		}
		named, errs = append(named, n), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r.groups = []*policyGroup{newGroup(&batch.Batch{Files: r.batch.Files}, named...)}
	return nil
}

func newGroup(b *batch.Batch, named ...policy.Named) *policyGroup {
	g := &policyGroup{batch: b}
	for _, n := range named {
		g.policies, g.origins = append(g.policies, n.InjectionPolicy), append(g.origins, n.Origin)
	}
	return g
}

// chooseNearest puts the files that have the same prerig.yaml together, in the order of the first of each. So a file is
// worked on by the same policy whether it is named alone, with others, or with its directory.
func (r *manifestRun) chooseNearest() error {
	finder := &policy.Finder{}
	groups := map[string]*policyGroup{}
	for _, dir := range r.searchStarts() {
		path, err := finder.Near(dir.name)
		if err != nil {
			return err
		}
		g, ok := groups[path]
		if !ok {
			if g, err = nearestGroup(path); err != nil {
				return err
			}
			groups[path] = g
			r.groups = append(r.groups, g)
		}
		if dir.file != nil {
			g.batch.Files = append(g.batch.Files, dir.file)
		}
	}
	for _, path := range finder.Passed {
		fmt.Fprintf(r.streams.Err, "warning: %s: skipped: it is a configuration of prerig serve and not an InjectionPolicy; rename one of the two, or specify the policy with -p\n", path)
	}
	return nil
}

func nearestGroup(path string) (*policyGroup, error) {
	if path != "" {
		n, err := policy.Load(path)
		return newGroup(&batch.Batch{}, n), err
	}
	n, err := policy.Default()
	if err != nil {
		return nil, err
	}
	g := newGroup(&batch.Batch{}, n)
	g.byDefault = true
	return g, nil
}

// searchStart is where the search for the policy of a file begins.
type searchStart struct {
	name string
	file *batch.File
}

// searchStarts are those of the files. Standard input, and what is no file on a disk, is at the current directory.
func (r *manifestRun) searchStarts() []searchStart {
	if len(r.batch.Files) == 0 {
		return []searchStart{{name: "."}}
	}
	var out []searchStart
	for _, f := range r.batch.Files {
		dir := "."
		if info, err := os.Stat(f.Input.Path); !f.Input.Stdin() && err == nil && info.Mode().IsRegular() {
			dir = filepath.Dir(f.Input.Path)
		}
		out = append(out, searchStart{dir, f})
	}
	return out
}

// printAppliedPolicies prints which policies are applied. It always reports if none was chosen explicitly: the same
// command has another result once a file exists.
func (r *manifestRun) printAppliedPolicies() {
	for _, g := range r.groups {
		line := strings.Join(g.origins, ", ")
		if len(r.groups) > 1 {
			line += ", for " + countWithNoun(len(g.batch.Files), "file") + " such as " + g.batch.Files[0].Input.Path
			if len(g.batch.Files) == 1 {
				line = strings.Join(g.origins, ", ") + ", for " + g.batch.Files[0].Input.Path
			}
		}
		if g.byDefault {
			line += " (no " + policy.FileName + " was found; create one with prerig import, or specify one with -p)"
		}
		if g.byDefault || !r.quiet {
			fmt.Fprintln(r.streams.Err, "policy: "+line)
		}
	}
}

// overridePolicy applies flags to a policy of an origin. The result is read like any policy, so that a flag cannot set
// a value that a file could not. The built-in policy istio follows the version that a flag sets.
func (r *manifestRun) overridePolicy(p *v1alpha1.InjectionPolicy, origin string) (*v1alpha1.InjectionPolicy, error) {
	if r.namespace == "" && r.target == "" && r.revision == "" && r.istio == "" && r.kubernetes == "" {
		return p, nil
	}
	source := p.Source
	set := func(field *string, flag, path, value string) {
		if value != "" {
			*field = value
			source.Flags = append(source.Flags, v1alpha1.FlagValue{Flag: "--" + flag, Field: path, Value: value})
		}
	}
	set(&p.Spec.DefaultNamespace, "namespace", "spec.defaultNamespace", r.namespace)
	set(&p.Spec.TargetNamespace, "target-namespace", "spec.targetNamespace", r.target)
	if p.Spec.Istio != nil {
		set(&p.Spec.Istio.Revision, "revision", "spec.istio.revision", r.revision)
		if r.istio != "" && origin == policy.BuiltInOrigin {
			p.Spec.Istio.Injector, p.Spec.Istio.MeshConfig = v1alpha1.Injector{BuiltIn: policy.BuiltIn}, ""
		}
		set(&p.Spec.Istio.Version, "istio-version", "spec.istio.version", r.istio)
		set(&p.Spec.Istio.KubernetesVersion, "kubernetes-version", "spec.istio.kubernetesVersion", r.kubernetes)
	}
	text, err := v1alpha1.Marshal(p)
	if err != nil {
		return nil, err
	}
	changed, err := v1alpha1.Parse(text)
	var wrong *v1alpha1.PolicyError
	if errors.As(err, &wrong) && len(wrong.Problems) > 0 {
		problem := wrong.Problems[0]
		if flag, ok := source.FlagOf(problem.Path); ok {
			return nil, fmt.Errorf("%s: %s", flag.Flag, problem.Message)
		}
		return nil, fmt.Errorf("applying the flags to policy %s: %s: %s", p.Metadata.Name, problem.Field(), problem.Message)
	}
	if err != nil {
		return nil, err
	}
	changed.Source = source
	return changed, nil
}

// allPolicies returns the policies of all files.
func (r *manifestRun) allPolicies() []*v1alpha1.InjectionPolicy {
	var out []*v1alpha1.InjectionPolicy
	for _, g := range r.groups {
		out = append(out, g.policies...)
	}
	return out
}

// runPolicies runs the policies, in the mode if it is set. The report covers all files; the results of one policy
// are adjacent.
func (r *manifestRun) runPolicies(ctx context.Context, mode v1alpha1.Mode, opts ...fn.Option) (*fn.Report, error) {
	r.printNotices()
	return r.rerunPolicies(ctx, mode, opts...)
}

// rerunPolicies runs the policies without saying again what was passed over.
func (r *manifestRun) rerunPolicies(ctx context.Context, mode v1alpha1.Mode, opts ...fn.Option) (*fn.Report, error) {
	bar := newBar(r.streams.Err, "injecting")
	defer bar.clearLine()
	whole := &fn.Report{Results: slices.Clone(r.batch.Problems())}
	if r.istio != "" {
		opts = append(slices.Clip(opts), fn.WithVersionFrom("--istio-version"))
	}
	answers := newAdmissionAnswers()
	before, total := 0, 0
	for _, g := range r.groups {
		total += len(g.batch.Items())
	}
	for _, g := range r.groups {
		if bar != nil {
			earlier := before
			g.batch.Progress = func(done, _ int) { bar.setProgress(earlier+done, total, "") }
			before += len(g.batch.Items())
		}
		if mode != "" {
			for _, p := range g.policies {
				p.Spec.Mode = mode
			}
		}
		in, err := fn.New(g.policies, append(slices.Clip(opts), fn.WithAdmission(answers.evaluate))...)
		if err != nil {
			return nil, err
		}
		if r.published != nil {
			in = in.WithPublished(r.published)
		}
		if err := runGroup(ctx, g, in, answers); err != nil {
			return g.report, err
		}
		whole.Added = append(whole.Added, g.report.Added...)
		whole.Outcomes = append(whole.Outcomes, g.report.Outcomes...)
		whole.Results = append(whole.Results, g.report.Results...)
		whole.Suppressed = append(whole.Suppressed, g.report.Suppressed...)
	}
	return whole, nil
}

// printNotices reports the skipped files, and the policies that are not applied.
func (r *manifestRun) printNotices() {
	r.printResults(r.batch.Notes())
	for _, f := range r.batch.Files {
		for _, name := range f.Policies() {
			if !r.isFollowed(f.Input.Path) {
				fmt.Fprintf(r.streams.Err, "warning: %s: InjectionPolicy %s is not applied; specify the file with --policy\n", f.Input.Path, name)
			}
		}
	}
}

// isFollowed reports whether a file is a policy of the run.
func (r *manifestRun) isFollowed(path string) bool {
	here, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(r.groups, func(g *policyGroup) bool {
		return slices.ContainsFunc(g.origins, func(origin string) bool {
			there, err := filepath.Abs(origin)
			return err == nil && here == there
		})
	})
}
