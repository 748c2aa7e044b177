// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

// Item is a document together with where it came from.
type Item struct {
	// Doc is the document.
	Doc *manifest.Document
	// Path is the path of its file, for messages, or empty if it has none.
	Path string
	// Index among the documents of the file, from 0.
	Index int
}

// Action is what was done with a pod template.
type Action string

// What can be done with a pod template.
const (
	// Injected means that the pod now holds what the policies inject, also where it already did.
	Injected Action = "injected"
	// Skipped means that no policy injects the pod, and it had no injection to remove.
	Skipped Action = "skipped"
	// Removed means that an earlier injection was taken out.
	Removed Action = "removed"
	// Kept means that a Job or bare Pod stays as it was published, with or without an injection, although the
	// policies would produce a different one: the API server does not accept the change.
	Kept Action = "kept"
	// Failed means that an error kept the pod as it was; the error is among the results.
	Failed Action = "failed"
)

// Outcome is what became of one pod template. Every workload has one.
type Outcome struct {
	// Ref is the workload.
	Ref result.ResourceRef
	// File is where it is.
	File result.File
	// Field is the path of the pod template in the workload; empty for a Pod.
	Field string
	// Action is what was done.
	Action Action
	// UnknownKind reports whether the object looks as if pods were made of it and these were not inspected because
	// its kind is unknown.
	UnknownKind bool
	// WrongKind reports whether no cluster has the kind of such an object, as its API version is wrong or its kind is
	// misspelled.
	WrongKind bool
	// Changed reports whether the bytes of the document changed.
	Changed bool
	// Reason is one sentence that explains why.
	Reason string
	// Policy is the name of the policy that decided about Istio; empty where none injects Istio.
	Policy string
	// Decision is how it was decided about Istio; nil where no policy injects Istio.
	Decision *decide.Decision
	// Templates are the names of the injector's templates that were rendered, in their order.
	Templates []string
	// TemplateTexts are the texts of Templates, if the pods are kept.
	TemplateTexts []string
	// Version is the version of Istio whose behaviour was followed.
	Version string
	// EarlierImage is the image of the proxy that an earlier injection left in the pod, and Image that of the proxy
	// injected now; each is empty if no such proxy exists.
	EarlierImage, Image string
	// Sidecars are the generic sidecars, with what was decided for each.
	Sidecars []SidecarOutcome
	// Before and After are the pod before any injection and after it, where the Injector was made with [WithPods].
	Before, After map[string]any
}

// SidecarOutcome is what was decided for one generic sidecar.
type SidecarOutcome struct {
	Name   string
	Inject bool
	Reason string
}

// Report is the outcome of a run.
type Report struct {
	// Items are the documents in the order of the input. A document that did not change is the one that came in, and one that
	// is to go, an object that a sidecar added earlier and does not add any more, is empty.
	Items []Item
	// Added are further objects that sidecars ask for, in a fixed order.
	Added []*manifest.Document
	// Outcomes has one entry for each pod template, in the order of the input.
	Outcomes []Outcome
	// Results are the messages for the user, in input order, those about policies first.
	Results result.Results
	// Suppressed holds findings of lint's rules that an annotation or a policy suppresses. The tag lint.TagReason
	// holds the reason.
	Suppressed result.Results
}

// Failed reports whether an error is among the results.
func (r *Report) Failed() bool { return r.Results.Worst() == result.Error }

// Changed counts the documents that differ from the input.
func (r *Report) Changed() int {
	n := 0
	for _, o := range r.Outcomes {
		if o.Changed {
			n++
		}
	}
	return n
}
