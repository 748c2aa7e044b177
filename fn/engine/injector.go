// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/workload"
)

// Injector applies policies to documents. It is immutable and may be used by several goroutines at once.
type Injector struct {
	policies []*v1alpha1.InjectionPolicy
	registry *workload.Registry
	mode     v1alpha1.Mode
	compiled []compiledIstio // of the policies
	workers  int
	keepPods bool
	trace    bool
	// versionFrom is the source of the policies' versions of Istio, where it is not the policies.
	versionFrom string
	// published are the Jobs and bare Pods that are published; nil where that is not known.
	published *publishedObjects
	// asIs has every pod stay as it is, but for what is published.
	asIs bool
	// evaluate evaluates MutatingAdmissionPolicies; nil where nothing can.
	evaluate func(AdmissionRequest) AdmissionAnswer
	// shapes are what is known of the shapes of workloads, nil where each is injected by itself; checksShapes has all take both ways.
	shapes       *shapeTable
	checksShapes bool
}

// Option changes how an Injector works, not its output.
type Option func(*Injector) error

// WithWorkers sets how many workloads are worked on at once. The default is GOMAXPROCS.
func WithWorkers(n int) Option {
	return func(in *Injector) error {
		if n < 1 {
			return fmt.Errorf("setting the number of workers: %d is less than 1", n)
		}
		in.workers = n
		return nil
	}
}

// WithPods keeps the pods in the report's outcomes. It costs memory: a pod is about 50 KB as maps.
func WithPods() Option {
	return func(in *Injector) error {
		in.keepPods = true
		return nil
	}
}

// WithTrace keeps every step of each decision.
func WithTrace() Option {
	return func(in *Injector) error {
		in.trace = true
		return nil
	}
}

// WithVersionFrom names what has set the version of Istio in the policies, such as a flag. Results name it as the source.
func WithVersionFrom(source string) Option {
	return func(in *Injector) error {
		in.versionFrom = source
		return nil
	}
}

// WithoutShapes has every workload injected by itself, without the results for others like it.
func WithoutShapes() Option {
	return func(in *Injector) error {
		in.shapes = nil
		return nil
	}
}

// New returns an Injector that applies the policies in their order to each pod. The policies must have been defaulted and
// validated, as [v1alpha1.Parse] and [v1alpha1.FromObject] do. All of them must have the same mode.
func New(policies []*v1alpha1.InjectionPolicy, opts ...Option) (*Injector, error) {
	if len(policies) == 0 {
		return nil, fmt.Errorf("preparing the injection: there is no policy")
	}
	var kinds []v1alpha1.WorkloadKind
	for _, p := range policies {
		if p.Spec.Mode != policies[0].Spec.Mode {
			return nil, fmt.Errorf("preparing the injection: policy %s has the mode %s and policy %s has %s; policies of one run need the same",
				policies[0].Metadata.Name, policies[0].Spec.Mode, p.Metadata.Name, p.Spec.Mode)
		}
		kinds = append(kinds, p.Spec.Workloads...)
	}
	registry, err := workload.NewRegistry(kinds)
	if err != nil {
		return nil, fmt.Errorf("preparing the injection: %w", err)
	}
	in := &Injector{policies: policies, registry: registry, mode: policies[0].Spec.Mode, workers: runtime.GOMAXPROCS(0), compiled: make([]compiledIstio, len(policies)),
		shapes: newShapeTable(), checksShapes: isTest()}
	for _, opt := range opts {
		if err := opt(in); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// FollowsJobs reports whether a policy has Jobs and bare Pods follow it, whatever is published of them (spec.jobs: Follow).
func (in *Injector) FollowsJobs() bool {
	return slices.ContainsFunc(in.policies, func(p *v1alpha1.InjectionPolicy) bool { return p.Spec.Jobs == v1alpha1.JobsFollow })
}

// Run injects into the workloads among the items. It returns an error only if ctx is done; problems of a policy or
// an object are among the report's results, and leave the object unchanged.
func (in *Injector) Run(ctx context.Context, items []Item) (*Report, error) {
	changed := make([]*manifest.Document, len(items)) // each is written once
	report, err := in.RunEach(ctx, items, func(i int, d *manifest.Document) { changed[i] = d.Filled() })
	if err != nil {
		return report, err
	}
	for i, d := range changed {
		if d != nil {
			report.Items[i].Doc = d
		}
	}
	return report, nil
}

// RunEach is Run that hands each document that changes to take, by the index of its item, as soon as it is settled, and does not keep
// it. The report has the documents that came in, and empty ones for those that are to go. take is called once for a document, by
// several goroutines at once; the document is for [manifest.Changes], or has its text after Filled. Where the run ends early, with an
// error or because ctx is done, some documents may have been taken.
func (in *Injector) RunEach(ctx context.Context, items []Item, take func(i int, d *manifest.Document)) (*Report, error) {
	report := &Report{Items: append([]Item(nil), items...)}
	units := flattenItems(items)
	surroundings := readCluster(units)

	plans, results := in.compilePolicies(surroundings)
	report.Results = append(report.Results, results...)
	report.Results = append(report.Results, checkAdmission(in, plans)...)
	if report.Failed() {
		return report, ctx.Err()
	}
	shapes := in.newShapeRun(plans, surroundings)
	work := func(u *documentUnit) {
		in.processUnit(u, plans, surroundings, shapes)
		u.releaseChangedDocument(take)
	}
	if err := in.forEachUnit(ctx, units, work); err != nil {
		return report, err
	}
	added, results := in.addObjects(units)
	report.Added = added
	in.collectOutcomes(report, units, take)
	report.Results = append(report.Results, results...)
	report.Results = append(report.Results, guessedNamespace(report.Outcomes)...)
	found, suppressed := in.lintSet(units, plans, surroundings)
	report.Results, report.Suppressed = append(report.Results, found...), append(report.Suppressed, suppressed...)
	report.Results.Bound()
	report.Suppressed.Bound()
	return report, nil
}

// forEachUnit calls do for every unit on all workers.
func (in *Injector) forEachUnit(ctx context.Context, units []*documentUnit, do func(*documentUnit)) error {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(in.workers, len(units)) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(units) {
					return
				}
				do(units[i])
			}
		})
	}
	group.Wait()
	return ctx.Err()
}
