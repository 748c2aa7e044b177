// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/invopop/jsonschema"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

const (
	module = "github.com/prerig/prerig"
	apiDir = "fn/api/v1alpha1"
)

// generatedFile is something generated, at its path from the root of the module.
type generatedFile struct {
	path string
	data []byte
}

// generateFiles reads the types' comments below the working directory and returns every generated file.
func generateFiles() ([]generatedFile, error) {
	text, table, err := policySchema()
	if err != nil {
		return nil, err
	}
	definition, err := functionDefinition(text)
	if err != nil {
		return nil, err
	}
	pipeline, err := pipelineSchema()
	if err != nil {
		return nil, err
	}
	lock, err := chartLockSchema()
	if err != nil {
		return nil, err
	}
	report, err := verifyReportSchema()
	if err != nil {
		return nil, err
	}
	pipelineStatus, policyStatus, err := statusSchemas()
	if err != nil {
		return nil, err
	}
	definitions, err := crdFiles(customResources(pipeline.data, pipelineStatus, text, policyStatus))
	if err != nil {
		return nil, err
	}
	alerts, err := alertFiles()
	if err != nil {
		return nil, err
	}
	definitions = append(definitions, alerts...)
	return append([]generatedFile{
		{"schemas/injectionpolicy_v1alpha1.json", text},
		{"schemas/krmfunctiondefinition.yaml", definition},
		{apiDir + "/zz_generated.fields.go", table},
		pipeline,
		lock,
		report,
	}, definitions...), nil
}

// policySchema returns the schema of an InjectionPolicy, and the table of its fields as Go.
func policySchema() (text, table []byte, err error) {
	r := &jsonschema.Reflector{ExpandedStruct: true, Anonymous: true}
	if err := r.AddGoComments(module, "./"+apiDir, jsonschema.WithFullComment()); err != nil {
		return nil, nil, fmt.Errorf("reading the comments of %s: %w", apiDir, err)
	}
	m := readMarkers(r.CommentMap)
	schema := r.Reflect(&v1alpha1.InjectionPolicy{})
	schema.ID = "https://prerig.dev/schemas/injectionpolicy_v1alpha1.json"
	schema.Title = "InjectionPolicy"
	setConst(schema, "apiVersion", v1alpha1.APIVersion)
	setConst(schema, "kind", v1alpha1.Kind)
	m.applyMarkersTo("InjectionPolicy", schema)
	for name, s := range schema.Definitions {
		m.applyMarkersTo(name, s)
	}
	if err := m.unusedMarkerError(); err != nil {
		return nil, nil, err
	}
	excludeSources(schema.Definitions["Injector"])

	text, err = json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, nil, fmt.Errorf("writing the schema: %w", err)
	}
	if table, err = m.goTable(); err != nil {
		return nil, nil, err
	}
	return append(text, '\n'), table, nil
}

func setConst(s *jsonschema.Schema, field, value string) {
	p, _ := s.Properties.Get(field)
	p.Const = value
}

// excludeSources adds that the sources of the configuration exclude each other.
func excludeSources(s *jsonschema.Schema) {
	for _, pair := range [][]string{{"config", "configMap"}, {"config", "builtIn"}, {"configMap", "builtIn"}} {
		s.AllOf = append(s.AllOf, &jsonschema.Schema{Not: &jsonschema.Schema{Required: pair}})
	}
	s.DependentRequired = map[string][]string{"values": {"config"}}
}

// commentMarkers are what the comments contain besides the description, by Type.field with the field's name in YAML, or
// by Type.
type commentMarkers struct {
	enums    map[string][]string
	patterns map[string]string
	lenient  map[string]bool
	used     map[string]bool
}

// readMarkers extracts the markers from the comments and joins the lines of the rest.
func readMarkers(comments map[string]string) *commentMarkers {
	m := &commentMarkers{enums: map[string][]string{}, patterns: map[string]string{}, lenient: map[string]bool{}, used: map[string]bool{}}
	for key, comment := range comments {
		name := strings.TrimPrefix(key, module+"/"+apiDir+".")
		var text []string
		for _, line := range strings.Split(comment, "\n") {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "+enum="):
				m.enums[name] = strings.Split(strings.TrimPrefix(line, "+enum="), ",")
			case strings.HasPrefix(line, "+pattern="):
				m.patterns[name] = strings.TrimPrefix(line, "+pattern=")
			case line == "+lenient":
				m.lenient[name] = true
			default:
				text = append(text, line)
			}
		}
		comments[key] = strings.TrimSpace(strings.Join(text, " "))
	}
	return m
}

// goName is the name of the Go field that a key of a type belongs to: the comments are known by it.
func goName(key string) string {
	switch key {
	case "apiVersion":
		return "APIVersion"
	}
	return strings.ToUpper(key[:1]) + key[1:]
}

// applyMarkersTo puts the markers of a type into its schema.
func (m *commentMarkers) applyMarkersTo(typeName string, s *jsonschema.Schema) {
	if m.lenient[typeName] {
		m.used[typeName] = true
		s.AdditionalProperties = nil
	}
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		name := typeName + "." + goName(p.Key)
		if enum, ok := m.enums[name]; ok {
			m.used[name] = true
			target := elementSchema(p.Value)
			for _, e := range enum {
				target.Enum = append(target.Enum, e)
			}
		}
		if pattern, ok := m.patterns[name]; ok {
			m.used[name] = true
			elementSchema(p.Value).Pattern = pattern
		}
	}
}

// elementSchema is the schema that a marker is about: that of the elements for a list or a map.
func elementSchema(s *jsonschema.Schema) *jsonschema.Schema {
	switch {
	case s.Items != nil:
		return s.Items
	case s.AdditionalProperties != nil:
		return s.AdditionalProperties
	}
	return s
}

// unusedMarkerError fails on a marker that reached no field, so that none is lost without a word.
func (m *commentMarkers) unusedMarkerError() error {
	var lost []string
	for name := range m.lenient {
		if !m.used[name] {
			lost = append(lost, name)
		}
	}
	for name := range m.enums {
		if !m.used[name] {
			lost = append(lost, name)
		}
	}
	for name := range m.patterns {
		if !m.used[name] {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 {
		sort.Strings(lost)
		return fmt.Errorf("reading the comments of %s: the markers of %s reach no field", apiDir, strings.Join(lost, ", "))
	}
	return nil
}

// goTable is the Go file with what the decoder needs of the markers.
func (m *commentMarkers) goTable() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// SPDX-FileCopyrightText: The Prerig Authors\n// SPDX-License-Identifier: Apache-2.0\n\n" +
		"// Code generated by go run ./schemas/generate. DO NOT EDIT.\n\npackage v1alpha1\n\n" +
		"// enums has the values that a field may have, by type and Go name of the field.\nvar enums = map[string][]string{\n")
	for _, name := range slices.Sorted(maps.Keys(m.enums)) {
		fmt.Fprintf(&b, "%q: {", name)
		for i, e := range m.enums[name] {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%q", e)
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n\n// lenientTypes may have keys that are not known here.\nvar lenientTypes = []string{")
	for i, name := range slices.Sorted(maps.Keys(m.lenient)) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", name)
	}
	b.WriteString("}\n")
	return format.Source(b.Bytes())
}

// functionDefinition wraps the schema in the KRMFunctionDefinition (config.kubernetes.io/v1alpha1) of prerig-fn.
func functionDefinition(schema []byte) ([]byte, error) {
	var s map[string]any
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	definitions, _ := s["$defs"].(map[string]any)
	openAPI := inlineRefs(s, definitions)
	definition := map[string]any{
		"apiVersion": "config.kubernetes.io/v1alpha1",
		"kind":       "KRMFunctionDefinition",
		"metadata":   map[string]any{"name": "prerig-fn"},
		"spec": map[string]any{
			"group": strings.Split(v1alpha1.APIVersion, "/")[0],
			"names": map[string]any{"kind": v1alpha1.Kind},
			"description": "Injects sidecars into the workloads of a resource list according to an InjectionPolicy: Istio's from the user's own " +
				"injector configuration, and others.",
			"publisher": "prerig.dev",
			"tags":      []any{"mutator", "validator"},
			"versions": []any{map[string]any{
				"name":       strings.Split(v1alpha1.APIVersion, "/")[1],
				"idempotent": true,
				"schema":     map[string]any{"openAPIV3Schema": openAPI},
			}},
		},
	}
	text, err := yaml.Marshal(definition)
	if err != nil {
		return nil, fmt.Errorf("writing the KRMFunctionDefinition: %w", err)
	}
	header := "# SPDX-FileCopyrightText: The Prerig Authors\n# SPDX-License-Identifier: Apache-2.0\n# Generated by go run ./schemas/generate.\n"
	return append([]byte(header), text...), nil
}

// inlineRefs returns the schema as OpenAPI 3.0 knows it: without references, and without the words that it has not.
func inlineRefs(v any, definitions map[string]any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = inlineRefs(e, definitions)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		if ref, ok := v["$ref"].(string); ok {
			target, _ := inlineRefs(definitions[strings.TrimPrefix(ref, "#/$defs/")], definitions).(map[string]any)
			maps.Copy(out, target)
		}
		for k, e := range v {
			switch k {
			case "$ref", "$schema", "$id", "$defs", "dependentRequired":
			case "const":
				out["enum"] = []any{e}
			default:
				out[k] = inlineRefs(e, definitions)
			}
		}
		return out
	}
	return v
}
