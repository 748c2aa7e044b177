// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/sidecar"
)

// Injector applies policies to documents. It is immutable and may be used by several goroutines at once.
type Injector = engine.Injector

// New returns an Injector that applies the policies in their order to each pod. The policies must have been defaulted and
// validated, as [v1alpha1.Parse] and [v1alpha1.FromObject] do. All of them must have the same mode.
func New(policies []*v1alpha1.InjectionPolicy, opts ...Option) (*Injector, error) {
	return engine.New(policies, opts...)
}

// Option changes how an Injector works, not what it returns.
type Option = engine.Option

// WithWorkers sets how many workloads are worked on at once. The default is GOMAXPROCS.
func WithWorkers(n int) Option { return engine.WithWorkers(n) }

// WithPods keeps the pods in the report's outcomes. It costs memory: a pod is about 50 KB as maps.
func WithPods() Option { return engine.WithPods() }

// WithTrace keeps every step of each decision.
func WithTrace() Option { return engine.WithTrace() }

// AdmissionRequest asks what MutatingAdmissionPolicies change of a pod.
type AdmissionRequest = engine.AdmissionRequest

// AdmissionAnswer is what they change.
type AdmissionAnswer = engine.AdmissionAnswer

// WithAdmission sets what evaluates MutatingAdmissionPolicies that a policy writes. It is called by several goroutines at once.
func WithAdmission(evaluate func(AdmissionRequest) AdmissionAnswer) Option {
	return engine.WithAdmission(evaluate)
}

// WrittenPolicies returns the MutatingAdmissionPolicies whose changes are written into a pod with these annotations.
func WrittenPolicies(annotations map[string]string) []string {
	return sidecar.WrittenPolicies(annotations)
}

// WithVersionFrom names what has set the version of Istio in the policies, such as a flag. Results name it as the source.
func WithVersionFrom(source string) Option { return engine.WithVersionFrom(source) }

// WithoutShapes has every workload injected by itself, without the results for others like it. It is for comparisons: the output is the same.
func WithoutShapes() Option { return engine.WithoutShapes() }

// Alike finds workloads that an Injector treats alike.
type Alike = engine.Alike

// NewAlike returns an Alike for workloads beside these items; nil where the Injector treats each workload by itself. in may be nil, for no
// injection. Quantities, and what Namespaces and LimitRanges have of a namespace, are to be compared by the caller.
func NewAlike(in *Injector, items []Item) *Alike { return engine.NewAlike(in, items) }

// NewKeeper returns an Injector that does not inject: Jobs and bare Pods whose own spec is unchanged get the
// template of these published documents (Injector.WithPublished), and all other objects are left as they are.
func NewKeeper(published []*manifest.Document, jobs v1alpha1.Jobs) (*Injector, error) {
	return engine.NewKeeper(published, jobs)
}

// MayBeReplaced reports whether an object declares that it is recreated rather than updated: by an annotation for
// Flux or Argo CD, by being a hook, or by having no name.
func MayBeReplaced(object map[string]any) bool { return engine.MayBeReplaced(object) }

// HowToReplace names the annotations by which Flux and Argo CD replace an object.
const HowToReplace = engine.HowToReplace

// Item is a document together with where it came from.
type Item = engine.Item

// Report is the result of a run: the documents, the action for each pod template, and the results for users.
type Report = engine.Report

// Outcome is what became of one pod template. Every workload has one.
type Outcome = engine.Outcome

// SidecarOutcome is what was decided for one generic sidecar.
type SidecarOutcome = engine.SidecarOutcome

// Action is what was done with a pod template.
type Action = engine.Action

// What can be done with a pod template.
const (
	// Injected means that the pod now holds what the policies inject, also where it already did.
	Injected = engine.Injected
	// Skipped means that no policy injects the pod, and that it had no injection to remove.
	Skipped = engine.Skipped
	// Removed means that an earlier injection was taken out.
	Removed = engine.Removed
	// Kept means that a Job or bare Pod stays as it was published, because the API server does not accept the change.
	Kept = engine.Kept
	// Failed means that an error kept the pod as it was; the error is among the results.
	Failed = engine.Failed
)
