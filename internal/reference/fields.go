// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/schemas"
)

// schema is the part of a JSON Schema that the tables show.
type schema struct {
	Ref                  string            `json:"$ref"`
	Type                 any               `json:"type"`
	Description          string            `json:"description"`
	Enum                 []any             `json:"enum"`
	Const                any               `json:"const"`
	Default              any               `json:"default"`
	Properties           map[string]schema `json:"properties"`
	Required             []string          `json:"required"`
	Items                *schema           `json:"items"`
	AdditionalProperties json.RawMessage   `json:"additionalProperties"`
	Defs                 map[string]schema `json:"$defs"`
}

// UnmarshalJSON parses a schema; true is the schema that accepts any value.
func (s *schema) UnmarshalJSON(text []byte) error {
	if string(text) == "true" || string(text) == "false" {
		return nil
	}
	type plain schema
	return json.Unmarshal(text, (*plain)(s))
}

// fieldsPage has a table for each type of our objects.
func fieldsPage() (string, error) {
	var b strings.Builder
	beginPage(&b, "Fields", "Every field of every object, as the [JSON Schemas](../../schemas) have them. The pages about\n"+
		"[InjectionPolicy](../injection-policy.md) and [RenderPipeline](../render-pipeline.md) explain them with examples; what may change is in\n"+
		"[compatibility](../compatibility.md).")
	for _, object := range []struct {
		kind string
		text []byte
	}{
		{"InjectionPolicy", schemas.InjectionPolicy}, {"RenderPipeline", schemas.RenderPipeline},
		{"ChartLock", schemas.ChartLock}, {"VerifyReport", schemas.VerifyReport},
	} {
		var s schema
		if err := json.Unmarshal(object.text, &s); err != nil {
			return "", fmt.Errorf("reading the schema of %s: %w", object.kind, err)
		}
		fmt.Fprintf(&b, "\n## %s\n", object.kind)
		writeObject(&b, object.kind, s)
	}
	return b.String(), nil
}

// writeObject writes the tables of a kind: that of the object itself, then those of its types.
func writeObject(b *strings.Builder, kind string, s schema) {
	rootName := strings.TrimPrefix(s.Ref, "#/$defs/")
	top := s
	if rootName != "" {
		top = s.Defs[rootName]
	}
	writeType(b, kind, top)
	for _, name := range slices.Sorted(maps.Keys(s.Defs)) {
		if name != rootName && len(s.Defs[name].Properties) > 0 {
			fmt.Fprintf(b, "\n### %s\n", typeHeading(kind, name))
			writeType(b, kind, s.Defs[name])
		}
	}
}

func typeHeading(kind, name string) string { return kind + ": " + name }

// typeAnchor returns the anchor that Git hosts assign to the heading of a type.
func typeAnchor(kind, name string) string { return strings.ToLower(kind + "-" + name) }

func writeType(b *strings.Builder, kind string, s schema) {
	if s.Description != "" {
		fmt.Fprintf(b, "\n%s\n", escapeTableCell(s.Description))
	}
	b.WriteString("\n| field | type | |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		var notes []string
		if slices.Contains(s.Required, name) {
			notes = append(notes, "Required.")
		}
		if field.Description != "" {
			notes = append(notes, endWithFullStop(escapeTableCell(field.Description)))
		}
		if field.Default != nil {
			notes = append(notes, fmt.Sprintf("Default: `%v`.", field.Default))
		}
		if values := valuesOf(field); values != "" {
			notes = append(notes, values)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, typeOf(kind, field), strings.Join(notes, " "))
	}
}

// valuesOf names the values of an enumeration.
func valuesOf(s schema) string {
	if s.Const != nil {
		return fmt.Sprintf("Always `%v`.", s.Const)
	}
	if s.Items != nil && len(s.Enum) == 0 {
		s.Enum = s.Items.Enum
	}
	if len(s.Enum) == 0 {
		return ""
	}
	var words []string
	for _, value := range s.Enum {
		words = append(words, fmt.Sprintf("`%v`", value))
	}
	return "One of " + strings.Join(words, ", ") + "."
}

// typeOf names the type of a field, with a link where that is a table of its own.
func typeOf(kind string, s schema) string {
	if name, found := strings.CutPrefix(s.Ref, "#/$defs/"); found {
		return fmt.Sprintf("[%s](#%s)", name, typeAnchor(kind, name))
	}
	if s.Items != nil {
		return "list of " + typeOf(kind, *s.Items)
	}
	var values schema
	if len(s.AdditionalProperties) > 0 && json.Unmarshal(s.AdditionalProperties, &values) == nil {
		return "map of " + typeOf(kind, values)
	}
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		var words []string
		for _, one := range t {
			words = append(words, fmt.Sprint(one))
		}
		return strings.Join(words, " or ")
	}
	return "any"
}
