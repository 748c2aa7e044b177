// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Spec returns the schema of a kind as in an OpenAPI document, with all references inlined. Recursive references
// are cut off.
func (s *Server) Spec(k Kind) *spec.Schema {
	return s.toSpecSchema(&Schema{Ref: k.Definition}, nil)
}

func (s *Server) toSpecSchema(from *Schema, inside []string) *spec.Schema {
	for from.Ref != "" {
		if slices.Contains(inside, from.Ref) {
			return anyValue()
		}
		inside = append(slices.Clip(inside), from.Ref)
		from = s.decodeDefinition(from.Ref)
	}
	out := &spec.Schema{SchemaProps: spec.SchemaProps{Format: from.Format, Required: from.Required}}
	if from.Type != "" {
		out.Type = spec.StringOrArray{from.Type}
	}
	switch from.Format {
	case formatIntOrString, FormatQuantity:
		return anyScalar()
	case FormatDuration:
		out.Format = ""
	}
	if from.Items != nil {
		out.Items = &spec.SchemaOrArray{Schema: s.toSpecSchema(from.Items, inside)}
	}
	if from.Values != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: s.toSpecSchema(from.Values, inside)}
	}
	if len(from.Properties) > 0 {
		out.Type = spec.StringOrArray{"object"}
		out.Properties = map[string]spec.Schema{}
		for name, p := range from.Properties {
			out.Properties[name] = *s.toSpecSchema(p, inside)
		}
	}
	if len(out.Type) == 0 {
		return anyValue()
	}
	return out
}

// anyValue returns a schema without constraints.
func anyValue() *spec.Schema {
	out := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	out.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return out
}

func anyScalar() *spec.Schema {
	out := &spec.Schema{}
	out.AddExtension("x-kubernetes-int-or-string", true)
	return out
}
