// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
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
	// Unit is the Kustomization of Flux that the object is from, as NAMESPACE/NAME; "" for other builds.
	Unit string `json:"unit,omitempty"`
	// Source is the object's place in the source; the zero value where a build makes the object.
	Source Place `json:"source,omitzero"`
	// YAML is the object's text as it was rendered, one document.
	YAML []byte `json:"-"`
}

// TagUnit is the tag of a result that names the unit it is from.
const TagUnit = "unit"

// UnitError returns why units have failed, or nil. Their published output is to stay as it is.
func (r *Response) UnitError() error {
	if len(r.Failed) == 0 {
		return nil
	}
	const show = 5
	var reasons []error
	for _, one := range r.Results {
		if one.Severity == result.Error && one.Tags[TagUnit] != "" && len(reasons) < show {
			reasons = append(reasons, fmt.Errorf("%s: %s", one.Tags[TagUnit], one.String()))
		}
	}
	return fmt.Errorf("not rendered, so that what is published of it stays: Kustomization %s: %w", foreign.List(r.Failed, show), errors.Join(reasons...))
}

// Place is a line of a file, from 1.
type Place struct {
	Path string `json:"path"`
	Line int    `json:"line"`
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
