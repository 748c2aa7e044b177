// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestReadCatalogue: what a JSON Schema adds is taken back, and versions that products serve, references and other files are left out.
func TestReadCatalogue(t *testing.T) {
	t.Parallel()
	files := []file{
		{"index.yaml", []byte("example.org:\n- {filename: example.org/gateway_v1.json, kind: Gateway}\n")},
		{"example.org/gateway_v1.json", []byte(`{"type": "object", "description": "a", "properties": {
			"spec": {"type": ["object", "null"], "additionalProperties": false, "properties": {
				"port": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
				"labels": {"type": "object", "additionalProperties": {"type": "string"}},
				"properties": {"type": "string"}, "additionalProperties": false}},
			"status": {"type": "object", "properties": {"a": {"type": "string"}}}}}`)},
		{"example.org/gateway_v2.json", []byte(`{"type": "object", "properties": {"spec": {"$ref": "a.json#/b"}}}`)},
		{"example.org/box_v1.json", []byte(`{"properties": {"spec": {"type": "object"}}}`)},
		{"example.org/served_v1.json", []byte(`{"properties": {"spec": {"type": "object"}}}`)},
		{"example.org/list_v1.json", []byte(`{"enum": []}`)},
	}
	found, err := readCatalogue(files, map[string]bool{"example.org/served_v1": true})
	if err != nil || len(found) != 2 || found[0].Kind != "example.org/Gateway" || found[1].Kind != "example.org/box" {
		t.Fatalf("%v, %v", found, err)
	}
	var object struct {
		Metadata struct{ Name string }
		Spec     struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(found[0].Object, &object); err != nil || object.Metadata.Name != "gateways.example.org" || len(object.Spec.Versions) != 1 {
		t.Fatalf("%s: %v", found[0].Object, err)
	}
	const want = `{"properties":{"spec":{"nullable":true,"properties":{"labels":{"additionalProperties":{"type":"string"},"type":"object"},` +
		`"port":{"x-kubernetes-int-or-string":true},"properties":{"type":"string"}},"type":"object"},` +
		`"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},"type":"object"}`
	if got := string(object.Spec.Versions[0].Schema.OpenAPIV3Schema); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !strings.Contains(string(found[1].Object), `"boxes"`) {
		t.Errorf("%s", found[1].Object)
	}
	if _, err := readCatalogue(files[1:], nil); err == nil {
		t.Error("a catalogue without an index is read")
	}
}
