// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// AdmissionObjects returns the objects of spec.admission.policies of an InjectionPolicy. They have no place in a file.
func AdmissionObjects(text string) (out []Object, err error) {
	const field = "spec.admission.policies"
	file, err := manifest.Parse(field, []byte(text))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", field, err)
	}
	for _, doc := range file.Docs {
		objects, err := ReadDocument(doc, doc, field)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", field, err)
		}
		for _, o := range objects {
			out = append(out, Object{Value: o.Value})
		}
	}
	return out, nil
}

// AddPolicies adds the MutatingAdmissionPolicies that InjectionPolicies write, and the steps that they ignore.
func (o *Options) AddPolicies(policies []*v1alpha1.InjectionPolicy) {
	for _, p := range policies {
		if a := p.Spec.Admission; a.WritesPolicies() && !slices.Contains(o.Written, a.Policies) {
			o.Written = append(o.Written, a.Policies)
		}
		for _, step := range p.Spec.Admission.Ignored() {
			if !o.Ignores(step) {
				o.Ignored = append(o.Ignored, step)
			}
		}
	}
}

// Ignores reports whether a step of admission is left out.
func (o *Options) Ignores(step string) bool { return slices.Contains(o.Ignored, step) }
