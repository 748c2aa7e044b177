// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/definitions"
)

// reduce returns the CustomResourceDefinitions among the documents of a file, with what a check needs of them.
func reduce(name string, text []byte) ([]definitions.Definition, error) {
	var out []definitions.Definition
	for _, document := range strings.Split("\n"+strings.ReplaceAll(string(text), "\r\n", "\n"), "\n---") {
		if !strings.Contains(document, "CustomResourceDefinition") {
			continue
		}
		var crd map[string]any
		if err := yaml.Unmarshal([]byte(document), &crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if crd["kind"] != "CustomResourceDefinition" || crd["apiVersion"] != "apiextensions.k8s.io/v1" {
			continue
		}
		object := reduceDefinition(crd)
		spec := object["spec"].(map[string]any)
		id := fmt.Sprint(spec["group"], "/", spec["names"].(map[string]any)["kind"])
		if isLeftOut(id) {
			continue
		}
		if id == servedByOpenShift {
			removePatterns(object)
		}
		packed, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		out = append(out, definitions.Definition{Kind: id, Object: packed})
	}
	return out, nil
}

// The definition of defaultedByPlugin requires fields that an admission plugin of OpenShift sets, and servedByOpenShift has a
// server of its own, which accepts an empty host.
const (
	defaultedByPlugin = "security.openshift.io/SecurityContextConstraints"
	servedByOpenShift = "route.openshift.io/Route"
)

func removePatterns(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, isKeyword := v["pattern"].(string); isKeyword {
			delete(v, "pattern")
		}
		for _, child := range v {
			removePatterns(child)
		}
	case []any:
		for _, child := range v {
			removePatterns(child)
		}
	}
}

// reduceDefinition leaves out what is for people and for controllers.
func reduceDefinition(crd map[string]any) map[string]any {
	metadata, _ := crd["metadata"].(map[string]any)
	from, _ := crd["spec"].(map[string]any)
	names, _ := from["names"].(map[string]any)
	spec := map[string]any{"group": from["group"], "scope": from["scope"], "names": map[string]any{"kind": names["kind"], "plural": names["plural"]}}
	if from["preserveUnknownFields"] == true {
		spec["preserveUnknownFields"] = true
	}
	if conversion, ok := from["conversion"].(map[string]any); ok && conversion["strategy"] == "Webhook" {
		spec["conversion"] = map[string]any{"strategy": "Webhook"}
	}
	var versions []any
	all, _ := from["versions"].([]any)
	for _, one := range all {
		version, _ := one.(map[string]any)
		if version["served"] != true {
			continue
		}
		versions = append(versions, reduceVersion(version))
	}
	spec["versions"] = versions
	return map[string]any{
		"apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": map[string]any{"name": metadata["name"]}, "spec": spec,
	}
}

func reduceVersion(version map[string]any) map[string]any {
	out := map[string]any{"name": version["name"], "served": true, "storage": version["storage"]}
	holder, _ := version["schema"].(map[string]any)
	root, _ := holder["openAPIV3Schema"].(map[string]any)
	if root == nil {
		return out
	}
	root = reduceSchema(root)
	subresources, _ := version["subresources"].(map[string]any)
	if _, ok := subresources["status"]; ok {
		out["subresources"] = map[string]any{"status": map[string]any{}}
		rules, _ := json.Marshal(root["x-kubernetes-validations"])
		properties, _ := root["properties"].(map[string]any)
		if _, ok := properties["status"]; ok && !strings.Contains(string(rules), "self.status") {
			properties["status"] = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		}
	}
	out["schema"] = map[string]any{"openAPIV3Schema": root}
	return out
}

// reduceSchema returns a schema without the texts for people.
func reduceSchema(schema map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range schema {
		switch key {
		case "description", "example", "externalDocs", "title":
			continue
		case "properties", "patternProperties", "definitions":
			out[key] = reduceEach(value)
			continue
		case "items", "additionalProperties", "not":
			if below, ok := value.(map[string]any); ok {
				value = reduceSchema(below)
			}
		case "allOf", "anyOf", "oneOf":
			value = reduceList(value)
		}
		out[key] = value
	}
	return out
}

// reduceEach reduces the schemas of named properties.
func reduceEach(value any) any {
	named, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := map[string]any{}
	for name, schema := range named {
		out[name] = schema
		if below, ok := schema.(map[string]any); ok {
			out[name] = reduceSchema(below)
		}
	}
	return out
}

func reduceList(value any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}
	out := make([]any, len(list))
	for i, schema := range list {
		out[i] = schema
		if below, ok := schema.(map[string]any); ok {
			out[i] = reduceSchema(below)
		}
	}
	return out
}
