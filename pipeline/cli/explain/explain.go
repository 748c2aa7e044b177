// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain renders the decisions of a run as prose, a table, or JSON and YAML. It makes no decisions: all of
// its output is in the report of package fn.
package explain

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/fn/result"
)

// Explanation is what became of the workloads of a run, in the order of the input.
type Explanation struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Workloads  []Workload `json:"workloads"`
	// Problems are the errors that are about no workload of the list, such as files that cannot be read.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is an error that is about no workload.
type Problem struct {
	Message string `json:"message"`
	// File and Line are where it is, if it is in a file, and Line 0 where that is not known.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// Workload is the decision for one pod template.
type Workload struct {
	Object result.ResourceRef `json:"object"`
	// File and Line are where the object is.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Field is the path of the pod template in the object.
	Field string `json:"field,omitempty"`
	// Injected is the outcome of the policy; Action is what the run did or would do.
	Injected bool      `json:"injected"`
	Action   fn.Action `json:"action"`
	// Policy that decided, and the version of Istio that it follows.
	Policy  string `json:"policy,omitempty"`
	Version string `json:"istioVersion,omitempty"`
	// Webhook is the rule that matches the pod, and Others are further ones.
	Webhook *Webhook  `json:"webhook,omitempty"`
	Others  []Webhook `json:"otherWebhooks,omitempty"`
	// Revision that injects it.
	Revision  string   `json:"revision,omitempty"`
	Templates []string `json:"templates,omitempty"`
	// Code is the stable name of the reason, and Reason one sentence.
	Code   string `json:"code,omitempty"`
	Reason string `json:"reason"`
	// Deciding is the label, selector or setting that the decision hangs on.
	Deciding *Fact `json:"deciding,omitempty"`
	// Namespace is what was known of it.
	Namespace *Namespace `json:"namespace,omitempty"`
	Sidecars  []Sidecar  `json:"sidecars,omitempty"`
	// Warnings and errors about the object.
	Problems []string `json:"problems,omitempty"`
	// Trace is every step of the decision.
	Trace []Step `json:"trace,omitempty"`
}

// Webhook is a rule of a MutatingWebhookConfiguration.
type Webhook struct {
	Configuration string `json:"configuration"`
	Rule          string `json:"rule"`
	Revision      string `json:"revision,omitempty"`
	Tag           string `json:"tag,omitempty"`
	Source        string `json:"source,omitempty"`
}

// Fact is a property that decided, with its source.
type Fact struct {
	Level   string `json:"level"`
	Kind    string `json:"kind"`
	Key     string `json:"key"`
	Value   string `json:"value,omitempty"`
	Missing bool   `json:"missing,omitempty"`
	Source  string `json:"source,omitempty"`
	words   string
}

// Namespace is what was known of the workload's namespace.
type Namespace struct {
	Name   string            `json:"name,omitempty"`
	Known  bool              `json:"known"`
	Labels map[string]string `json:"labels,omitempty"`
	Source string            `json:"source,omitempty"`
}

// Sidecar is the decision for a sidecar that is not Istio's.
type Sidecar struct {
	Name     string `json:"name"`
	Injected bool   `json:"injected"`
	Reason   string `json:"reason"`
}

// Step is one question on the way to the decision.
type Step struct {
	Stage   string `json:"stage"`
	What    string `json:"what"`
	Answer  string `json:"answer"`
	Because string `json:"because,omitempty"`
}

// Of explains a report.
func Of(report *fn.Report) Explanation {
	e := Explanation{APIVersion: "prerig.dev/v1alpha1", Kind: "Explanation", Workloads: []Workload{}}
	problems := problemsOf(report)
	told := map[objectKey]bool{}
	for _, o := range report.Outcomes {
		e.Workloads = append(e.Workloads, newWorkload(o, problems))
		told[objectKey{o.Ref, o.File.Path, o.File.Index}] = true
	}
	for _, r := range report.Results {
		if r.Severity != result.Error || r.ResourceRef != nil && r.File != nil && told[objectKey{*r.ResourceRef, r.File.Path, r.File.Index}] {
			continue
		}
		p := Problem{Message: r.Message}
		if r.ResourceRef != nil {
			p.Message = r.ResourceRef.String() + ": " + r.Message
		}
		if r.File != nil {
			p.File, p.Line = r.File.Path, r.File.Line
		}
		e.Problems = append(e.Problems, p)
	}
	return e
}

// Failed reports whether something could not be read or worked on.
func (e Explanation) Failed() bool {
	return len(e.Problems) > 0 || slices.ContainsFunc(e.Workloads, func(w Workload) bool { return w.Action == fn.Failed })
}

// objectKey identifies an object in a report.
type objectKey struct {
	ref  result.ResourceRef
	path string
	// index of the document; elements of one list have the same, and differ in ref.
	index int
}

// problemsOf collects the warnings and errors about each object.
func problemsOf(report *fn.Report) map[objectKey][]string {
	out := map[objectKey][]string{}
	for _, r := range report.Results {
		if r.ResourceRef == nil || r.File == nil || r.Severity == result.Info {
			continue
		}
		p := objectKey{*r.ResourceRef, r.File.Path, r.File.Index}
		message := string(r.Severity) + ": " + r.Message
		if r.Field != nil && r.Field.Path != "" {
			message = string(r.Severity) + ": " + r.Field.Path + ": " + r.Message
		}
		out[p] = append(out[p], message)
	}
	return out
}

func newWorkload(o fn.Outcome, problems map[objectKey][]string) Workload {
	w := Workload{
		Object: o.Ref, File: o.File.Path, Line: o.File.Line, Field: o.Field,
		Injected: o.Action == fn.Injected, Action: o.Action, Policy: o.Policy, Version: o.Version,
		Templates: o.Templates, Reason: o.Reason,
		Problems: problems[objectKey{o.Ref, o.File.Path, o.File.Index}],
	}
	for _, s := range o.Sidecars {
		w.Sidecars = append(w.Sidecars, Sidecar{Name: s.Name, Injected: s.Inject, Reason: s.Reason})
	}
	if o.Decision != nil {
		w.setDecision(*o.Decision)
	}
	return w
}

// setDecision copies the decision about Istio.
func (w *Workload) setDecision(d decide.Decision) {
	w.Code, w.Revision = string(d.Code), d.Revision
	if w.Reason == "" {
		w.Reason = d.Reason
	}
	if d.Webhook != nil {
		m := newWebhook(*d.Webhook)
		w.Webhook = &m
	}
	for _, o := range d.Others {
		w.Others = append(w.Others, newWebhook(o))
	}
	if f := d.Deciding; f != nil {
		w.Deciding = &Fact{Level: string(f.Level), Kind: f.Kind, Key: f.Key, Value: f.Value, Missing: f.Missing,
			Source: f.Source, words: f.String()}
	}
	n := d.Namespace
	w.Namespace = &Namespace{Name: n.Name, Known: n.Known, Labels: n.Labels, Source: n.Source}
	for _, s := range d.Trace {
		w.Trace = append(w.Trace, Step{Stage: s.Stage, What: s.What, Answer: string(s.Answer), Because: s.Because})
	}
}

func newWebhook(m decide.Match) Webhook {
	return Webhook{Configuration: m.Config, Rule: m.Rule, Revision: m.Revision, Tag: m.Tag, Source: m.Source}
}

// Name is the workload in words, with the field where the object has several pod templates.
func (w Workload) Name() string { return w.Object.String() }

// shortRule is the webhook's rule in short: Istio's own rules all end in the same domain.
func (h Webhook) shortRule() string {
	return h.Configuration + "/" + strings.TrimSuffix(h.Rule, ".sidecar-injector.istio.io")
}
