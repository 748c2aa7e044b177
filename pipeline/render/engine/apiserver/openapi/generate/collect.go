// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/openapi"
)

// collection is what the releases have, each thing once.
type collection struct {
	catalog openapi.Catalog
	schemas map[string]int // by their text
	kinds   map[string]int // by their text
	names   map[string]int
}

func newCollection() *collection {
	return &collection{schemas: map[string]int{}, kinds: map[string]int{}, names: map[string]int{}}
}

// swagger is the part of an OpenAPI 2 document that is read.
type swagger struct {
	Definitions map[string]*swaggerSchema      `json:"definitions"`
	Paths       map[string]map[string]rawField `json:"paths"`
}

type rawField = json.RawMessage

type swaggerSchema struct {
	Ref                  string                    `json:"$ref"`
	Type                 string                    `json:"type"`
	Format               string                    `json:"format"`
	Items                *swaggerSchema            `json:"items"`
	AdditionalProperties *swaggerSchema            `json:"additionalProperties"`
	Properties           map[string]*swaggerSchema `json:"properties"`
	Required             []string                  `json:"required"`
}

// addVersion adds the definitions and the kinds of a minor version.
func (c *collection) addVersion(minor string, swaggerText, enumText []byte) error {
	var doc swagger
	if err := json.Unmarshal(swaggerText, &doc); err != nil {
		return err
	}
	enums, err := readEnums(enumText)
	if err != nil {
		return err
	}
	version := openapi.CatalogVersion{Minor: minor}
	names := make([]string, 0, len(doc.Definitions))
	for name := range doc.Definitions {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		schema := compactSchema(doc.Definitions[name])
		setFormat(schema, name)
		for property, values := range enums[goName(name)] {
			if field := schema.Properties[property]; field != nil {
				setEnum(field, values)
			}
		}
		version.Definitions = append(version.Definitions, [2]int{c.nameIndex(name), c.schemaIndex(schema)})
	}
	kinds, err := readKinds(doc)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		version.Kinds = append(version.Kinds, c.kindIndex(kind))
	}
	c.catalog.Versions = append(c.catalog.Versions, version)
	return nil
}

func compactSchema(s *swaggerSchema) *openapi.Schema {
	if s == nil {
		return nil
	}
	out := &openapi.Schema{
		Ref: strings.TrimPrefix(s.Ref, "#/definitions/"), Type: s.Type, Format: s.Format,
		Items: compactSchema(s.Items), Values: compactSchema(s.AdditionalProperties), Required: s.Required,
	}
	for name, property := range s.Properties {
		if out.Properties == nil {
			out.Properties = map[string]*openapi.Schema{}
		}
		out.Properties[name] = compactSchema(property)
	}
	return out
}

// setFormat sets a dedicated format on the types of apimachinery that decode themselves.
func setFormat(s *openapi.Schema, name string) {
	switch name {
	case "io.k8s.apimachinery.pkg.api.resource.Quantity":
		s.Format = openapi.FormatQuantity
	case "io.k8s.apimachinery.pkg.apis.meta.v1.Duration":
		s.Format = openapi.FormatDuration
	}
}

func setEnum(s *openapi.Schema, values []string) {
	for s.Items != nil {
		s = s.Items
	}
	if s.Values != nil {
		s = s.Values
	}
	s.Enum = values
}

// goName is the end of the name of the function that zz_generated.openapi.go has for a definition.
func goName(definition string) string {
	parts := strings.Split(definition, ".")
	if len(parts) < 3 {
		return ""
	}
	return strings.Join(parts[len(parts)-3:], "_")
}

var (
	functionLine = regexp.MustCompile(`^func schema_(\w+)\(ref`)
	propertyLine = regexp.MustCompile(`^\t{5}"([^"]+)": \{$`)
	enumLine     = regexp.MustCompile(`Enum:\s+\[\]interface\{\}\{(.*)\},$`)
)

// readEnums returns the values of enumerations by the end of the function's name, and the property.
func readEnums(text []byte) (map[string]map[string][]string, error) {
	out := map[string]map[string][]string{}
	var function, property string
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := functionLine.FindStringSubmatch(line); m != nil {
			parts := strings.Split(m[1], "_")
			function, property = strings.Join(parts[max(0, len(parts)-3):], "_"), ""
		}
		if m := propertyLine.FindStringSubmatch(line); m != nil {
			property = m[1]
		}
		m := enumLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var values []string
		if err := json.Unmarshal([]byte("["+m[1]+"]"), &values); err != nil {
			return nil, fmt.Errorf("reading the enumeration %s: %w", m[0], err)
		}
		if out[function] == nil {
			out[function] = map[string][]string{}
		}
		out[function][property] = values
	}
	return out, lines.Err()
}

// readKinds returns the kinds that can be created, in the order of their names.
func readKinds(doc swagger) ([]openapi.Kind, error) {
	definitions := map[[3]string]string{}
	for path, methods := range doc.Paths {
		if strings.Contains(path, "{name}") {
			continue
		}
		var post struct {
			Parameters []struct {
				In     string        `json:"in"`
				Schema swaggerSchema `json:"schema"`
			} `json:"parameters"`
			Kind struct {
				Group, Version, Kind string
			} `json:"x-kubernetes-group-version-kind"`
		}
		text, ok := methods["post"]
		if !ok {
			continue
		}
		if err := json.Unmarshal(text, &post); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		for _, p := range post.Parameters {
			if p.In == "body" {
				key := [3]string{post.Kind.Group, post.Kind.Version, post.Kind.Kind}
				definitions[key] = strings.TrimPrefix(p.Schema.Ref, "#/definitions/") + " " + path
			}
		}
	}
	var out []openapi.Kind
	for key, value := range definitions {
		definition, path, _ := strings.Cut(value, " ")
		apiVersion := strings.TrimPrefix(key[0]+"/"+key[1], "/")
		out = append(out, openapi.Kind{
			APIVersion: apiVersion, Kind: key[2], Definition: definition,
			Resource: path[strings.LastIndex(path, "/")+1:], Namespaced: strings.Contains(path, "/namespaces/{namespace}/"),
		})
	}
	slices.SortFunc(out, func(a, b openapi.Kind) int {
		return strings.Compare(a.APIVersion+" "+a.Kind, b.APIVersion+" "+b.Kind)
	})
	return out, nil
}

func (c *collection) nameIndex(name string) int {
	i, ok := c.names[name]
	if !ok {
		i = len(c.catalog.Names)
		c.names[name], c.catalog.Names = i, append(c.catalog.Names, name)
	}
	return i
}

func (c *collection) schemaIndex(s *openapi.Schema) int {
	text := mustMarshal(s)
	i, ok := c.schemas[text]
	if !ok {
		i = len(c.catalog.Schemas)
		c.schemas[text], c.catalog.Schemas = i, append(c.catalog.Schemas, json.RawMessage(text))
	}
	return i
}

func (c *collection) kindIndex(k openapi.Kind) int {
	text := mustMarshal(k)
	i, ok := c.kinds[text]
	if !ok {
		i = len(c.catalog.Kinds)
		c.kinds[text], c.catalog.Kinds = i, append(c.catalog.Kinds, k)
	}
	return i
}

// mustMarshal is for plain data.
func mustMarshal(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
