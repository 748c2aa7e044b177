// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
)

// Object is one rendered object.
type Object struct {
	// APIVersion, Kind, Namespace and Name are the object's identity. Name is empty for an object with a generateName.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// Unit is the Kustomization of Flux, or the Application with perApplication, that the object is from, as NAMESPACE/NAME; "" for
	// others.
	Unit string `json:"unit,omitempty"`
	// Source is the object's place in the source; the zero value where a build makes the object.
	Source Place `json:"source,omitzero"`
	// YAML is the object's text as it was rendered, one document.
	YAML []byte `json:"-"`
}

// TagUnit is the tag of a result that names the unit it is from.
const TagUnit = "unit"

// DropRepeated leaves out all but the last of the objects of one name in a unit, as they are applied one after the other, and warns of
// them.
func (r *Response) DropRepeated() {
	last := map[string]int{}
	for i, o := range r.Objects {
		last[o.Unit+" "+o.ID()] = i
	}
	kept := make([]Object, 0, len(r.Objects))
	for i, o := range r.Objects {
		if o.Name == "" || last[o.Unit+" "+o.ID()] == i {
			kept = append(kept, o)
			continue
		}
		ref := o.Ref()
		found := result.Result{Severity: result.Warning, Message: "is there twice; the last one is compared",
			ResourceRef: &ref}
		if o.Source.Path != "" {
			found.File = &result.File{Path: o.Source.Path, Line: o.Source.Line}
		}
		r.Results = append(r.Results, found)
	}
	r.Objects = kept
}

// NotRendered names what could not be rendered, such as Kustomization flux-system/apps and HelmRelease shop/web. What is published of
// them is to stay as it is.
func (r *Response) NotRendered() []string {
	var out []string
	for _, unit := range r.Failed {
		out = append(out, r.NameOfUnit(unit))
	}
	for _, one := range r.Results {
		if isOfFailedRelease(one) {
			out = append(out, r.nameOfFailed(one))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// PartialUnits returns the units that lack the objects of releases, without those in Failed; "" is that of a build without units.
func (r *Response) PartialUnits() []string {
	var out []string
	if slices.ContainsFunc(r.Failed, isHelmRelease) {
		out = append(out, "")
	}
	for _, one := range r.Results {
		if unit := one.Tags[TagUnit]; isOfFailedRelease(one) && !slices.Contains(out, unit) && !slices.Contains(r.Failed, unit) {
			out = append(out, unit)
		}
	}
	return out
}

// isHelmRelease reports whether a failed unit is a HelmRelease beside Applications: what it installs is otherwise of no unit.
func isHelmRelease(unit string) bool {
	_, name, _ := strings.Cut(unit, "/")
	return strings.HasPrefix(name, "HelmRelease ")
}

// UnitError returns why units and releases have failed, or nil. Their published output is to stay as it is.
func (r *Response) UnitError() error {
	names := r.NotRendered()
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("not rendered, so that what is published of it stays: %s: %w", foreign.List(names, shownFailures), r.ReasonsOf(names))
}

// shownFailures is how many units and releases an error names, and how many reasons.
const shownFailures = 5

// WithoutFailed returns the response without what has failed of some names, as NotRendered returns them.
func (r *Response) WithoutFailed(names []string) *Response {
	out := *r
	out.Failed = slices.DeleteFunc(slices.Clone(r.Failed), func(unit string) bool { return slices.Contains(names, r.NameOfUnit(unit)) })
	out.Results = slices.DeleteFunc(slices.Clone(r.Results), func(one result.Result) bool {
		return IsOfFailed(one) && slices.Contains(names, r.nameOfFailed(one))
	})
	return &out
}

// ReasonsOf returns the first reasons why some of NotRendered are not.
func (r *Response) ReasonsOf(names []string) error {
	var reasons []error
	for _, one := range r.Results {
		if !IsOfFailed(one) || !slices.Contains(names, r.nameOfFailed(one)) || len(reasons) == shownFailures {
			continue
		}
		reason := errors.New(one.String())
		if unit := one.Tags[TagUnit]; unit != "" {
			reason = fmt.Errorf("%s: %w", unit, reason)
		}
		reasons = append(reasons, reason)
	}
	return errors.Join(reasons...)
}

// nameOfFailed returns what has failed according to a result, as NotRendered names it.
func (r *Response) nameOfFailed(one result.Result) string {
	if ref := one.ResourceRef; isOfFailedRelease(one) && ref != nil {
		return ref.Kind + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
	}
	return r.NameOfUnit(one.Tags[TagUnit])
}

// NameOfUnit returns the kind and name of a unit: an Application, another release whose key has its kind, or a Kustomization of Flux.
func (r *Response) NameOfUnit(unit string) string {
	namespace, rest, _ := strings.Cut(unit, "/")
	if kind, name, ok := strings.Cut(rest, " "); ok {
		return kind + " " + namespace + "/" + name
	}
	isApplication := func(one result.Result) bool {
		return one.Tags[TagUnit] == unit && one.ResourceRef != nil && one.ResourceRef.Kind == "Application"
	}
	if slices.ContainsFunc(r.Results, isApplication) {
		return "Application " + unit
	}
	return "Kustomization " + unit
}

// FullName returns the kind and name of a unit, as NameOfUnit returns them for one that has failed.
func (u Unit) FullName() string {
	namespace, rest, _ := strings.Cut(u.Name, "/")
	if kind, name, ok := strings.Cut(rest, " "); ok {
		return kind + " " + namespace + "/" + name
	}
	return u.Kind + " " + u.Name
}

// IsOfFailed reports whether a result is the reason why a unit or a release is not among the objects.
func IsOfFailed(one result.Result) bool {
	return one.Severity == result.Error && (one.Tags[TagUnit] != "" || isOfFailedRelease(one))
}

// isOfFailedRelease reports whether a result is the reason why a release is not among the objects.
func isOfFailedRelease(one result.Result) bool { return one.Tags[result.TagCode] == CodeNotRendered }

// Place is a line of a file, from 1.
type Place struct {
	Path string `json:"path"`
	Line int    `json:"line"`
}

// Ref names the object in results.
func (o Object) Ref() result.ResourceRef {
	return result.ResourceRef{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// ID names the object in one line: group/version Kind namespace/name.
func (o Object) ID() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	return o.APIVersion + " " + o.Kind + " " + name
}

// Group is the API group, "" for core objects.
func (o Object) Group() string {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Decision is what the injection did with one pod template.
type Decision struct {
	// Object is the workload.
	Object result.ResourceRef `json:"object"`
	// Action is injected, skipped, removed, kept or failed.
	Action string `json:"action"`
	// Changed reports whether the object differs from the output of the build.
	Changed bool `json:"changed,omitempty"`
	// Reason explains why, in one sentence; Code is its stable name, "" where no policy injects Istio.
	Reason string `json:"reason"`
	Code   string `json:"code,omitempty"`
	// Policy that decided.
	Policy string `json:"policy,omitempty"`
	// Version of Istio whose behaviour was followed.
	Version string `json:"version,omitempty"`
	// Layer is the path of the kustomization whose transformer decided, "" for a policy of the pipeline.
	Layer string `json:"layer,omitempty"`
}
