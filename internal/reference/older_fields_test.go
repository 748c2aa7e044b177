// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/schemas"
)

var recordFields = flag.Bool("record-fields", false, "add the fields of today to testdata/fields.txt")

const olderFields = "testdata/fields.txt"

// TestNoOlderFieldIsGone has everything that a version has read in our objects be read still: testdata/fields.txt has all fields and values
// that there were. A field with a new name needs its former one read as well, with a warning, and a way to have files changed.
func TestNoOlderFieldIsGone(t *testing.T) {
	now := map[string]bool{}
	for kind, text := range map[string][]byte{
		"InjectionPolicy": schemas.InjectionPolicy, "RenderPipeline": schemas.RenderPipeline,
	} {
		var s schema
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		listFields(now, s, s.Defs, kind, 0)
	}
	recorded, err := os.ReadFile(olderFields)
	if err != nil {
		t.Fatal(err)
	}
	older := map[string]bool{}
	for line := range strings.Lines(string(recorded)) {
		older[strings.TrimSpace(line)] = true
	}
	if len(older) < 300 || len(now) < 300 {
		t.Fatalf("there are %d fields and values, and %d are recorded", len(now), len(older))
	}
	for _, field := range slices.Sorted(maps.Keys(older)) {
		if !now[field] {
			t.Errorf("%s is not read any more, and older files have it", field)
		}
	}
	if *recordFields {
		maps.Copy(older, now)
		if err := os.WriteFile(olderFields, []byte(strings.Join(slices.Sorted(maps.Keys(older)), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// listFields adds the fields below a schema, and the values that they can have.
func listFields(out map[string]bool, s schema, defs map[string]schema, at string, depth int) {
	const deepest = 16 // a schema that holds itself ends there
	if name, isRef := strings.CutPrefix(s.Ref, "#/$defs/"); isRef {
		s = defs[name]
	}
	if depth > deepest {
		return
	}
	for _, value := range s.Enum {
		text, _ := json.Marshal(value) // it has been read from JSON
		out[at+"="+string(text)] = true
	}
	for name, property := range s.Properties {
		out[at+"."+name] = true
		listFields(out, property, defs, at+"."+name, depth+1)
	}
	if s.Items != nil {
		listFields(out, *s.Items, defs, at+"[]", depth+1)
	}
	var more schema
	if len(s.AdditionalProperties) > 0 && json.Unmarshal(s.AdditionalProperties, &more) == nil {
		listFields(out, more, defs, at+"{}", depth+1)
	}
}
