// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// CheckTypes returns the fields that a policy of the set reads but that its matched kinds lack, as the API server
// writes them to the policy's status. Such a policy works, but not as intended. schemaOf returns the schema of a
// kind, or nil if none exists.
func (s *Set) CheckTypes(name string, schemaOf func(schema.GroupVersionKind) *spec.Schema) []Problem {
	p := s.policies[name]
	if p == nil {
		return nil
	}
	checker := validating.TypeChecker{SchemaResolver: schemas(schemaOf), RestMapper: mapper{s: s}}
	var out []Problem
	for _, w := range checker.Check(p.ValidatingAdmissionPolicy) {
		out = append(out, Problem{Path: []any{w.FieldRef}, Message: strings.TrimSpace(w.Warning)})
	}
	return out
}

type schemas func(schema.GroupVersionKind) *spec.Schema

// ResolveSchema returns the schema of a kind.
func (s schemas) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	if found := s(kind); found != nil {
		return found, nil
	}
	return nil, resolver.ErrSchemaNotFound
}

// mapper maps resources to kinds; the type checker uses no other method.
type mapper struct {
	meta.RESTMapper

	s *Set
}

// KindsFor returns the kind of a resource.
func (m mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	for _, k := range m.s.cluster.Kinds {
		if k.GroupVersionResource() == resource {
			return []schema.GroupVersionKind{k.GroupVersionKind}, nil
		}
	}
	return nil, &meta.NoResourceMatchError{PartialResource: resource}
}
