// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"github.com/prerig/prerig/fn/result"
)

// Object is an object that is checked, or that defines how others are checked.
type Object struct {
	// Value is the complete object as decoded JSON. It is never changed.
	Value map[string]any
	// File is the origin of the object, or nil if unknown.
	File *result.File
	// Line returns the line of a field of the object in the file, or that of the nearest field around it; 0 where it is not known.
	Line func(path []any) int
	// Locate returns where a field of the object is written, in whatever file, nil where that is not known. It is for objects without
	// File.
	Locate func(path []any) *result.File
	// Before is the object before its injection; nil where that is the same or not known.
	Before map[string]any
	// Old is the object as the cluster has it; nil for a new object, and for one that does not change.
	Old map[string]any
}

// Ref names the object.
func (o Object) Ref() result.ResourceRef { return result.RefTo(o.Value) }

// Place returns where a field of the object is written, or nil where that is not known.
func (o Object) Place(path []any) *result.File {
	switch {
	case o.File != nil:
		file := *o.File
		if o.Line != nil {
			if line := o.Line(path); line > 0 {
				file.Line = line
			}
		}
		return &file
	case o.Locate != nil:
		return o.Locate(path)
	}
	return nil
}

// Options lists what objects are checked against.
type Options struct {
	// KubernetesVersion is that of the API server, such as 1.34; empty for the newest that is known.
	KubernetesVersion string
	// IstioVersions are those that the policies follow: Istio's kinds are checked by their definitions. Empty for all that are known.
	IstioVersions []string `json:"istioVersions,omitempty"`
	// Severities of the rules.
	Severities Severities `json:"-"`
	// Catalog holds objects that are in the cluster already: CustomResourceDefinitions, admission policies with their bindings and
	// parameters, Namespaces, LimitRanges and ServiceAccounts. They are not checked themselves.
	Catalog []Object `json:"-"`
	// Published reports whether all of the objects are published: then the annotation for tool-only objects keeps
	// none of them out of a cluster.
	Published bool
	// SkipSchemas and SkipAdmission leave out the schemas, or the admission policies and Pod Security.
	SkipSchemas, SkipAdmission bool
	// Validated are the answers of Kubernetes' own validation about the objects, in their order; nil where it was not asked.
	Validated []Validated
	// UpdatesOnly checks only the objects with Old, as updates; the other objects only describe the cluster.
	UpdatesOnly bool
	// PodSecurity is the level that namespaces without a label enforce, such as baseline or restricted:v1.34; empty for privileged.
	PodSecurity string
	// User and Groups are who applies the objects, for policies that read request.userInfo; an empty User is not known.
	User   string
	Groups []string
	// Complete are the kinds of which the catalog has all objects of the cluster: one that it lacks does not exist.
	Complete []string
	// Parameters are the kinds of which the catalog has all parameters that the policies and bindings in it mean.
	Parameters []string
	// NodeSelectors reports whether the API server runs the admission plugin PodNodeSelector.
	NodeSelectors bool
	// Written are the texts of spec.admission.policies of InjectionPolicies, which describe the cluster as the catalog does, and Ignored
	// the steps of admission that are left out.
	Written []string `json:"written,omitempty"`
	Ignored []string `json:"ignored,omitempty"`
}

// IsComplete reports whether the catalog has all objects of a kind.
func (o Options) IsComplete(kind string) bool { return slices.Contains(o.Complete, kind) }
