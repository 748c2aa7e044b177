// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/definitions"
)

// A catalogue has a file GROUP/KIND_VERSION.json for each version of each kind, with the schema as JSON Schema. It was made for
// validators of JSON Schema, so that some of what a CustomResourceDefinition states is written otherwise, and the scope and the plural
// are unknown. Its index has most kinds with their capital letters.

const catalogueIndex = "index.yaml"

// isCataloguePath reports whether a file of a catalogue is its index, or holds the schema of a custom resource.
func isCataloguePath(name string) bool {
	if name == catalogueIndex {
		return true
	}
	group, file := path.Split(name)
	return strings.Contains(group, ".") && strings.Count(name, "/") == 1 && path.Ext(file) == ".json" && strings.Contains(file, "_")
}

// servedByProducts returns the GROUP/KIND_VERSION, in lower case, that the newest definitions of products serve.
func servedByProducts() (map[string]bool, error) {
	all, err := definitions.Products()
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	var library definitions.Library
	for _, product := range all {
		if product.Name == definitions.Catalogue {
			continue
		}
		for _, id := range product.Kinds {
			group, kind, _ := strings.Cut(id, "/")
			found, err := library.Of(product, group, kind, "")
			if err != nil {
				return nil, err
			}
			for _, d := range found {
				var object struct {
					Spec struct{ Versions []struct{ Name string } }
				}
				if err := json.Unmarshal(d.Object, &object); err != nil {
					return nil, fmt.Errorf("reading %s: %w", d.Kind, err)
				}
				for _, version := range object.Spec.Versions {
					out[strings.ToLower(id)+"_"+version.Name] = true
				}
			}
		}
	}
	return out, nil
}

// readCatalogue returns one definition for each kind, with the versions that are not served otherwise. It leaves out files that are no
// schema of an object.
func readCatalogue(files []file, served map[string]bool) ([]definitions.Definition, error) {
	kinds, err := spelledKinds(files)
	if err != nil {
		return nil, err
	}
	versions := map[string][]any{}
	for _, f := range files {
		if f.name == catalogueIndex {
			continue
		}
		var root map[string]any
		if err := json.Unmarshal(f.text, &root); err != nil {
			return nil, fmt.Errorf("reading %s: %w", f.name, err)
		}
		group, rest := path.Split(f.name)
		kind, version, _ := strings.Cut(strings.TrimSuffix(rest, ".json"), "_")
		id := group + cmp.Or(kinds[group+kind], kind)
		if _, ok := root["properties"].(map[string]any); !ok || isLeftOut(id) || served[strings.TrimSuffix(f.name, ".json")] {
			continue
		}
		schema, err := toStructural(root)
		if err != nil {
			continue
		}
		schema["type"] = "object"
		if strings.EqualFold(id, servedByOpenShift) {
			removePatterns(schema)
		}
		versions[id] = append(versions[id], reduceVersion(map[string]any{
			"name": version, "storage": len(versions[id]) == 0, "schema": map[string]any{"openAPIV3Schema": schema},
			"subresources": map[string]any{"status": map[string]any{}},
		}))
	}
	var out []definitions.Definition
	for _, id := range slices.Sorted(maps.Keys(versions)) {
		group, kind, _ := strings.Cut(id, "/")
		plural := pluralOf(strings.ToLower(kind))
		packed, err := json.Marshal(map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
			"spec": map[string]any{"group": group, "names": map[string]any{"kind": kind, "plural": plural}, "versions": versions[id]},
		})
		if err != nil {
			return nil, err
		}
		out = append(out, definitions.Definition{Kind: id, Object: packed})
	}
	return out, nil
}

// spelledKinds returns the kinds by GROUP/KIND in lower case, as the index spells them for any version.
func spelledKinds(files []file) (map[string]string, error) {
	at := slices.IndexFunc(files, func(f file) bool { return f.name == catalogueIndex })
	if at < 0 {
		return nil, errors.New("finding the index of the catalogue: it has none")
	}
	var index map[string][]struct {
		Filename string `json:"filename"`
		Kind     string `json:"kind"`
	}
	if err := yaml.Unmarshal(files[at].text, &index); err != nil {
		return nil, fmt.Errorf("reading %s: %w", catalogueIndex, err)
	}
	out := map[string]string{}
	for _, group := range index {
		for _, entry := range group {
			if id, _, ok := strings.Cut(entry.Filename, "_"); ok && entry.Kind != strings.ToLower(entry.Kind) {
				out[id] = entry.Kind
			}
		}
	}
	return out, nil
}

// isLeftOut reports whether a kind is not checked by definitions.
func isLeftOut(id string) bool { return strings.EqualFold(id, defaultedByPlugin) }

// pluralOf returns the usual plural of a kind.
func pluralOf(kind string) string {
	switch {
	case strings.HasSuffix(kind, "s"), strings.HasSuffix(kind, "x"), strings.HasSuffix(kind, "ch"):
		return kind + "es"
	case strings.HasSuffix(kind, "y") && !strings.HasSuffix(kind, "ey") && !strings.HasSuffix(kind, "ay"):
		return strings.TrimSuffix(kind, "y") + "ies"
	}
	return kind + "s"
}

var errReference = errors.New("the schema refers to another one")

// toStructural returns a schema as a CustomResourceDefinition has it.
func toStructural(schema map[string]any) (map[string]any, error) {
	if _, ok := schema["$ref"]; ok {
		return nil, errReference
	}
	if isIntOrString(schema) {
		return map[string]any{"x-kubernetes-int-or-string": true}, nil
	}
	out := map[string]any{}
	for key, value := range schema {
		var err error
		switch v := value.(type) {
		case map[string]any:
			value, err = belowStructural(key, v)
		case []any:
			value, err = listStructural(key, v)
		}
		if err != nil {
			return nil, err
		}
		out[key] = value
	}
	delete(out, "$schema")
	if out["additionalProperties"] == false { // was added where properties are listed
		delete(out, "additionalProperties")
	}
	if types, ok := out["type"].([]any); ok {
		types = slices.DeleteFunc(slices.Clone(types), func(one any) bool { return one == "null" })
		if len(types) != 1 {
			return nil, fmt.Errorf("the schema has %d types", len(types))
		}
		out["type"], out["nullable"] = types[0], true
	}
	return out, nil
}

// isIntOrString reports whether a schema is what catalogues write for a number or a string.
func isIntOrString(schema map[string]any) bool {
	text, err := json.Marshal(schema["oneOf"])
	return err == nil && string(text) == `[{"type":"string"},{"type":"integer"}]`
}

// belowStructural converts what is below a keyword of a schema.
func belowStructural(keyword string, value map[string]any) (any, error) {
	switch keyword {
	case "items", "additionalProperties", "not":
		return toStructural(value)
	case "properties", "patternProperties", "definitions":
		out := map[string]any{}
		for name, below := range value {
			schema, ok := below.(map[string]any)
			if !ok {
				continue // additionalProperties, which was added because a field is called properties
			}
			converted, err := toStructural(schema)
			if err != nil {
				return nil, err
			}
			out[name] = converted
		}
		return out, nil
	}
	return value, nil
}

func listStructural(keyword string, list []any) (any, error) {
	switch keyword {
	case "allOf", "anyOf", "oneOf":
	default:
		return list, nil
	}
	out := make([]any, len(list))
	for i, one := range list {
		schema, ok := one.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s has a value that is no schema", keyword)
		}
		converted, err := toStructural(schema)
		if err != nil {
			return nil, err
		}
		out[i] = converted
	}
	return out, nil
}
