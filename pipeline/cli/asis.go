// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/cli/batch"
)

// asIs checks manifests without an injection.
type asIs struct {
	registry   *workload.Registry
	severities lint.Severities
	facts      lint.Facts
	defaultNS  string
	root       string // Istio's namespace

	namespaces map[string]lint.Namespace
	objects    []lint.Object
	// docs are the documents of objects, by the File that findings about them have.
	docs       map[*result.File]*manifest.Document
	found      result.Results
	suppressed result.Results
	summaries  []lint.Summary
	// pods were checked, and injected of them have an injected sidecar.
	pods, injected int
	// problems lists the objects that could not be checked.
	problems result.Results
}

// checkAsIs returns the findings of lint, and what could not be checked.
func (l *checkRun) checkAsIs(b *batch.Batch, severities map[string]string) (found, unchecked result.Results, err error) {
	a, err := l.prepareAsIs(severities)
	if err != nil {
		return nil, nil, err
	}
	a.problems = slices.Clone(b.Problems())
	items := b.Items()
	for _, item := range items {
		a.forEachObject(item, a.recordSurroundingObjects)
	}
	for _, item := range items {
		a.forEachObject(item, a.checkObject)
	}
	around := lint.Surroundings{Namespaces: slices.Collect(maps.Values(a.namespaces)), Objects: a.objects,
		RootNamespace: a.root, IstioVersion: a.facts.IstioVersion}
	more, suppressed := lint.CheckSet(a.summaries, around, a.severities)
	for _, list := range []result.Results{more, suppressed} {
		for i := range list {
			if doc := a.docs[list[i].File]; doc != nil {
				setResultLine(doc, &list[i])
			}
		}
	}
	a.found, a.suppressed = append(a.found, more...), append(a.suppressed, suppressed...)
	l.pods, l.injected, l.suppressed = a.pods, a.injected, a.suppressed
	return a.found, a.problems, nil
}

// addProblem notes once what could not be checked.
func (a *asIs) addProblem(err error) {
	message := err.Error()
	if !slices.ContainsFunc(a.problems, func(r result.Result) bool { return r.Message == message }) {
		a.problems = append(a.problems, result.Result{Severity: result.Error, Message: message})
	}
}

// prepareAsIs reads the flags, and the policies where some are named.
func (l *checkRun) prepareAsIs(severities map[string]string) (*asIs, error) {
	a := &asIs{
		facts:     lint.Facts{IstioVersion: l.istio, KubernetesVersion: l.kubernetes},
		defaultNS: l.namespace, namespaces: map[string]lint.Namespace{}, docs: map[*result.File]*manifest.Document{},
	}
	if l.istio != "" {
		a.facts.IstioVersionFrom = "--istio-version"
	}
	var kinds []v1alpha1.WorkloadKind
	var accepted []v1alpha1.LintSuppression
	if len(l.policies) > 0 {
		if err := l.loadPolicies(); err != nil {
			return nil, err
		}
		for _, p := range l.allPolicies() {
			kinds = append(kinds, p.Spec.Workloads...)
			a.readPolicy(p)
			if p.Spec.Lint != nil {
				accepted = append(accepted, p.Spec.Lint.Suppress...)
				severities = mergeSeverities(p.Spec.Lint.Rules, severities)
			}
		}
	}
	var err error
	if a.severities, err = lint.NewPolicySeverities(&v1alpha1.Lint{Rules: severities, Suppress: accepted}); err != nil {
		return nil, err
	}
	if a.registry, err = workload.NewRegistry(kinds); err != nil {
		return nil, fmt.Errorf("preparing the check: %w", err)
	}
	return a, nil
}

// readPolicy records a policy's settings of the place where the pods will run.
func (a *asIs) readPolicy(p *v1alpha1.InjectionPolicy) {
	if a.defaultNS == "" {
		a.defaultNS = p.Spec.DefaultNamespace
	}
	if p.Spec.TargetNamespace != "" {
		a.defaultNS = p.Spec.TargetNamespace
	}
	for _, ns := range p.Spec.Namespaces {
		a.namespaces[ns.Name] = lint.Namespace{Name: ns.Name, Labels: ns.Labels, Annotations: ns.Annotations}
	}
	if i := p.Spec.Istio; i != nil {
		a.root = i.RootNamespace
		if a.facts.IstioVersion == "" {
			a.facts.IstioVersion = i.Version
		}
		if a.facts.KubernetesVersion == "" {
			a.facts.KubernetesVersion = i.KubernetesVersion
		}
	}
}

// forEachObject calls do for the objects of a document: itself, or the elements of a list.
func (a *asIs) forEachObject(item fn.Item, do func(fn.Item, map[string]any)) {
	if item.Doc.Empty() {
		return
	}
	elements, isList, err := item.Doc.Items()
	if err == nil && isList {
		for _, d := range elements {
			a.forEachObject(fn.Item{Doc: d, Path: item.Path, Index: item.Index}, do)
		}
		return
	}
	if meta, ok := item.Doc.Peek(); ok && meta.Kind != "Namespace" && !lint.ReadsKind(meta.APIVersion, meta.Kind) {
		if _, ok := a.registry.Lookup(meta.APIVersion, meta.Kind); !ok {
			return
		}
	}
	obj, err := item.Doc.Object()
	if err != nil {
		a.addProblem(err)
		return
	}
	do(item, obj)
}

func fileOf(item fn.Item) *result.File {
	return &result.File{Path: item.Path, Index: item.Index, Line: item.Doc.Line()}
}

// recordSurroundingObjects notes what rules on pods have to know before: Namespaces, and the control plane.
func (a *asIs) recordSurroundingObjects(item fn.Item, obj map[string]any) {
	if version, ok := lint.ControlPlane(obj); ok && obj["kind"] == "Deployment" {
		a.facts.ControlPlanes = append(a.facts.ControlPlanes, version)
	}
	if obj["kind"] != "Namespace" || obj["apiVersion"] != "v1" {
		return
	}
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	labels, err := workload.Labels(obj)
	if err != nil {
		a.addProblem(fmt.Errorf("reading Namespace %s: %w", name, err))
		return
	}
	annotations, err := workload.Annotations(obj)
	if err != nil {
		a.addProblem(fmt.Errorf("reading Namespace %s: %w", name, err))
		return
	}
	a.namespaces[name] = lint.Namespace{Name: name, Labels: labels, Annotations: annotations, File: fileOf(item)}
}

func (a *asIs) recordLintObject(item fn.Item, obj map[string]any) {
	meta, _ := obj["metadata"].(map[string]any)
	o := lint.Object{Object: obj, File: fileOf(item)}
	o.APIVersion, _ = obj["apiVersion"].(string)
	o.Kind, _ = obj["kind"].(string)
	o.Name, _ = meta["name"].(string)
	if o.Namespace, _ = meta["namespace"].(string); o.Namespace == "" {
		o.Namespace = a.defaultNS
	}
	a.objects = append(a.objects, o)
	a.docs[o.File] = item.Doc
}

func (a *asIs) checkObject(item fn.Item, obj map[string]any) {
	apiVersion, _ := obj["apiVersion"].(string)
	if kind, _ := obj["kind"].(string); lint.ReadsKind(apiVersion, kind) {
		a.recordLintObject(item, obj)
		return
	}
	templates, err := a.registry.Templates(obj)
	var elsewhere *workload.ElsewhereError
	if errors.As(err, &elsewhere) {
		return
	}
	if err != nil {
		a.addProblem(fmt.Errorf("reading %s line %d: %w", item.Path, item.Doc.Line(), err))
		return
	}
	a.pods += len(templates)
	for _, t := range templates {
		in := lint.Input{Field: t.Field, After: t.Pod, File: fileOf(item), Facts: a.facts}
		in.APIVersion, _ = obj["apiVersion"].(string)
		in.Kind, _ = obj["kind"].(string)
		meta, _ := obj["metadata"].(map[string]any)
		in.Name, _ = meta["name"].(string)
		if in.Namespace, _ = meta["namespace"].(string); in.Namespace == "" {
			in.Namespace = a.defaultNS
		}
		if t.Field != "" {
			in.Replicas = lint.Replicas(obj)
			// Labels that are no strings are the API server's to refuse, and no rule's to read.
			in.ObjectLabels, _ = workload.Labels(obj)
			in.ObjectAnnotations, _ = workload.Annotations(obj)
		}
		if ns, ok := a.namespaces[in.Namespace]; ok {
			in.NamespaceKnown, in.NamespaceLabels = true, ns.Labels
		}
		found, suppressed := lint.Check(in, a.severities)
		for _, list := range []result.Results{found, suppressed} {
			for i := range list {
				setResultLine(item.Doc, &list[i])
			}
		}
		a.found, a.suppressed = append(a.found, found...), append(a.suppressed, suppressed...)
		if s, ok := lint.Summarize(in); ok {
			a.summaries = append(a.summaries, s)
			if s.HasProxy() {
				a.injected++
			}
		}
	}
}

// setResultLine sets a finding's line to that of its field, or of the nearest existing parent.
func setResultLine(doc *manifest.Document, r *result.Result) {
	if r.Field == nil || r.File == nil {
		return
	}
	for at := workload.ParseField(r.Field.Path); len(at) > 0; at = at[:len(at)-1] {
		if line, _, ok := doc.Locate(at...); ok {
			file := *r.File
			file.Line = line
			r.File = &file
			return
		}
	}
}
