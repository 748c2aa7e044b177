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

// group are the files that the same policies are for.
type group struct {
	batch    *batch.Batch
	policies []*v1alpha1.InjectionPolicy
	// origins say where the policies come from.
	origins []string
	// byDefault says that nobody has chosen the policy: there is no file, and it comes with Prerig.
	byDefault bool
	// report is what the run has given.
	report *fn.Report
}

// load finds the policies of the files that were read, and changes in them what flags say.
func (r *run) load() error {
	if err := r.choose(); err != nil {
		return err
	}
	for _, g := range r.groups {
		for i, p := range g.policies {
			changed, err := r.override(p)
			if err != nil {
				return err
			}
			g.policies[i] = changed
		}
	}
	r.sayPolicies()
	return nil
}

// choose returns every file its policies: those that flags name, else the functionConfig of a ResourceList in the input, else
// the nearest prerig.yaml, else the built-in one.
func (r *run) choose() error {
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
	r.groups = []*group{newGroup(&batch.Batch{Files: r.batch.Files}, named...)}
	return nil
}

func newGroup(b *batch.Batch, named ...policy.Named) *group {
	g := &group{batch: b}
	for _, n := range named {
		g.policies, g.origins = append(g.policies, n.InjectionPolicy), append(g.origins, n.Origin)
	}
	return g
}

// chooseNearest puts the files that have the same prerig.yaml together, in the order of the first of each. So a file is
// worked on by the same policy whether it is named alone, with others, or with its directory.
func (r *run) chooseNearest() error {
	finder := &policy.Finder{}
	groups := map[string]*group{}
	for _, dir := range r.directories() {
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
		fmt.Fprintf(r.streams.Err, "warning: %s: passed over: it is a configuration of prerig serve and not an InjectionPolicy; give one of the two another name, or name the policy with -p\n", path)
	}
	return nil
}

func nearestGroup(path string) (*group, error) {
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

// place is where the search for the policy of a file begins.
type place struct {
	name string
	file *batch.File
}

// directories are those of the files. Standard input, and what is no file on a disk, is at the current directory.
func (r *run) directories() []place {
	if len(r.batch.Files) == 0 {
		return []place{{name: "."}}
	}
	var out []place
	for _, f := range r.batch.Files {
		dir := "."
		if info, err := os.Stat(f.Input.Path); !f.Input.Stdin() && err == nil && info.Mode().IsRegular() {
			dir = filepath.Dir(f.Input.Path)
		}
		out = append(out, place{dir, f})
	}
	return out
}

// sayPolicies prints which policies are followed. That nobody has chosen one is always said: the same command gives
// something else where there is a file.
func (r *run) sayPolicies() {
	for _, g := range r.groups {
		line := strings.Join(g.origins, ", ")
		if len(r.groups) > 1 {
			line += ", for " + plural(len(g.batch.Files), "file") + " such as " + g.batch.Files[0].Input.Path
			if len(g.batch.Files) == 1 {
				line = strings.Join(g.origins, ", ") + ", for " + g.batch.Files[0].Input.Path
			}
		}
		if g.byDefault {
			line += " (no " + policy.FileName + " was found; prerig import makes one, -p names one)"
		}
		if g.byDefault || !r.quiet {
			fmt.Fprintln(r.streams.Err, "policy: "+line)
		}
	}
}

// override changes in a policy what the flags say. The result is read as any policy is, so that a flag cannot bring in what
// a file could not.
func (r *run) override(p *v1alpha1.InjectionPolicy) (*v1alpha1.InjectionPolicy, error) {
	if r.namespace == "" && r.target == "" && r.revision == "" && r.istio == "" && r.kubernetes == "" {
		return p, nil
	}
	set := func(field *string, value string) {
		if value != "" {
			*field = value
		}
	}
	set(&p.Spec.DefaultNamespace, r.namespace)
	set(&p.Spec.TargetNamespace, r.target)
	if p.Spec.Istio != nil {
		set(&p.Spec.Istio.Revision, r.revision)
		set(&p.Spec.Istio.Version, r.istio)
		set(&p.Spec.Istio.KubernetesVersion, r.kubernetes)
	}
	text, err := v1alpha1.Marshal(p)
	if err != nil {
		return nil, err
	}
	changed, err := v1alpha1.Parse(text)
	var wrong *v1alpha1.PolicyError
	if errors.As(err, &wrong) && len(wrong.Problems) > 0 {
		return nil, fmt.Errorf("setting what the flags say in policy %s: %s", p.Metadata.Name, wrong.Problems[0])
	}
	return changed, err
}

// allPolicies returns the policies of all files.
func (r *run) allPolicies() []*v1alpha1.InjectionPolicy {
	var out []*v1alpha1.InjectionPolicy
	for _, g := range r.groups {
		out = append(out, g.policies...)
	}
	return out
}

// inject runs the policies, in the given mode where there is one. The report is that of all files; what one policy leads to
// stands together.
func (r *run) inject(ctx context.Context, mode v1alpha1.Mode, opts ...fn.Option) (*fn.Report, error) {
	r.notice()
	bar := newBar(r.streams.Err, "injecting")
	defer bar.done()
	whole := &fn.Report{Results: slices.Clone(r.batch.Problems())}
	for _, g := range r.groups {
		if mode != "" {
			for _, p := range g.policies {
				p.Spec.Mode = mode
			}
		}
		in, err := fn.New(g.policies, opts...)
		if err != nil {
			return nil, err
		}
		if g.report, err = g.batch.Run(ctx, in); err != nil {
			return g.report, err
		}
		whole.Items = append(whole.Items, g.report.Items...)
		whole.Added = append(whole.Added, g.report.Added...)
		whole.Outcomes = append(whole.Outcomes, g.report.Outcomes...)
		whole.Results = append(whole.Results, g.report.Results...)
	}
	return whole, nil
}

// notice says what was passed over, and which policies are not followed.
func (r *run) notice() {
	r.report(r.batch.Notes())
	for _, f := range r.batch.Files {
		for _, name := range f.Policies() {
			if !r.follows(f.Input.Path) {
				fmt.Fprintf(r.streams.Err, "warning: %s: InjectionPolicy %s is not followed; name the file with --policy\n", f.Input.Path, name)
			}
		}
	}
}

// follows reports whether a file is a policy of the run.
func (r *run) follows(path string) bool {
	here, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(r.groups, func(g *group) bool {
		return slices.ContainsFunc(g.origins, func(origin string) bool {
			there, err := filepath.Abs(origin)
			return err == nil && here == there
		})
	})
}
