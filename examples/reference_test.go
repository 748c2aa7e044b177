// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/schemas"
)

// node is a part of a JSON Schema, as far as it names fields.
type node struct {
	Ref                  string          `json:"$ref"`
	Properties           map[string]node `json:"properties"`
	Items                json.RawMessage `json:"items"`
	AdditionalProperties json.RawMessage `json:"additionalProperties"`
	Defs                 map[string]node `json:"$defs"`
}

// TestReferencesNameEveryField compares the pages that describe our objects with their schemas, which are generated from the
// Go types: a new field must be described, in `code`.
func TestReferencesNameEveryField(t *testing.T) {
	for page, tc := range map[string]struct {
		schema []byte
		least  int
	}{
		"../docs/injection-policy.md": {schemas.InjectionPolicy, 80},
		"../docs/render-pipeline.md":  {schemas.RenderPipeline, 60},
	} {
		var root node
		if err := json.Unmarshal(tc.schema, &root); err != nil {
			t.Fatal(err)
		}
		fields := map[string]bool{}
		root.collect(t, root.Defs, map[string]bool{}, fields)
		if len(fields) < tc.least {
			t.Errorf("found only %d fields in the schema of %s", len(fields), page)
		}
		named := map[string]bool{}
		for _, code := range regexp.MustCompile("`[^`\n]+`").FindAllString(string(read(t, page)), -1) {
			for _, word := range regexp.MustCompile(`[A-Za-z]+`).FindAllString(code, -1) {
				named[word] = true
			}
		}
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			if !named[field] {
				t.Errorf("%s does not describe the field %s", page, field)
			}
		}
	}
}

// collect adds the names of the fields in a schema. Those of status, which nobody writes, are left out.
func (n node) collect(t *testing.T, defs map[string]node, seen, fields map[string]bool) {
	t.Helper()
	if name, found := strings.CutPrefix(n.Ref, "#/$defs/"); found {
		if def, ok := defs[name]; !ok {
			t.Fatalf("the schema has no %s", n.Ref)
		} else if !seen[name] {
			seen[name] = true
			def.collect(t, defs, seen, fields)
		}
	}
	for name, property := range n.Properties {
		fields[name] = true
		if name != "status" {
			property.collect(t, defs, seen, fields)
		}
	}
	for _, elements := range []json.RawMessage{n.Items, n.AdditionalProperties} { // schemas, or only true or false
		var element node
		if len(elements) > 0 && json.Unmarshal(elements, &element) == nil {
			element.collect(t, defs, seen, fields)
		}
	}
}
