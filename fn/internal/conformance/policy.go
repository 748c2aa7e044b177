// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// Policy returns the InjectionPolicy that a user of the case's cluster would have.
func (c *Case) Policy() (*v1alpha1.InjectionPolicy, error) {
	p := &v1alpha1.InjectionPolicy{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind}
	p.Metadata.Name = "corpus"
	p.Spec.Mode = v1alpha1.ModeInject
	p.Spec.UnknownNamespace = v1alpha1.UnknownNamespaceInject
	spec := &v1alpha1.Istio{Version: c.version.String(), NativeSidecars: v1alpha1.NativeSidecarsDisabled,
		Admission: v1alpha1.AdmissionRaw, IstiodEnv: map[string]string{}}
	p.Spec.Istio = spec
	if c.NativeSidecars {
		spec.NativeSidecars = v1alpha1.NativeSidecarsEnabled
	}
	if c.Revision != "default" {
		spec.Revision = c.Revision
	}
	maps.Copy(spec.IstiodEnv, c.IstiodEnv)
	if c.CompliancePolicy != "" {
		spec.IstiodEnv["COMPLIANCE_POLICY"] = c.CompliancePolicy
	}
	for _, name := range slices.Sorted(maps.Keys(c.NamespaceAnnotations)) {
		p.Spec.Namespaces = append(p.Spec.Namespaces, v1alpha1.Namespace{
			Name: name, Labels: map[string]string{"istio-injection": "enabled"}, Annotations: c.NamespaceAnnotations[name]})
	}
	for _, f := range []struct {
		path string
		to   *string
	}{{c.Config, &spec.Injector.Config}, {c.Values, &spec.Injector.Values}, {c.Mesh, &spec.MeshConfig}} {
		text, err := c.readCaseFile(f.path)
		if err != nil {
			return nil, fmt.Errorf("making the policy of case %s: %w", c.Name, err)
		}
		*f.to = text
	}
	return p, nil
}

// Text returns one of the case's files.
func (c *Case) Text(path string) ([]byte, error) {
	text, err := c.readCaseFile(path)
	return []byte(text), err
}
