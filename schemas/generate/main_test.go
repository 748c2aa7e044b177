// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestUpToDate fails when the generated files are not those of the types.
func TestUpToDate(t *testing.T) {
	t.Chdir("../..")
	files, err := generateFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		got, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(f.data), string(got)); diff != "" {
			t.Errorf("%s is not up to date; run: go run ./schemas/generate\n%s", f.path, diff)
		}
	}
}

// TestEveryFieldIsDescribed keeps the schema useful in an editor.
func TestEveryFieldIsDescribed(t *testing.T) {
	t.Chdir("../..")
	files, err := generateFiles()
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Properties map[string]struct{ Description string }
		Defs       map[string]struct {
			Description string
			Properties  map[string]struct{ Description string }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(files[0].data, &s); err != nil {
		t.Fatal(err)
	}
	for name, d := range s.Defs {
		if d.Description == "" {
			t.Errorf("%s has no description", name)
		}
		for field, p := range d.Properties {
			if p.Description == "" && field != "maximum" { // minimum and maximum share theirs.
				t.Errorf("%s.%s has no description", name, field)
			}
			if strings.Contains(p.Description, "+enum") || strings.Contains(p.Description, "+pattern") {
				t.Errorf("%s.%s has a marker in its description: %s", name, field, p.Description)
			}
		}
	}
}

// TestFunctionDefinition has the schema without references.
func TestFunctionDefinition(t *testing.T) {
	t.Chdir("../..")
	files, err := generateFiles()
	if err != nil {
		t.Fatal(err)
	}
	var d map[string]any
	if err := yaml.Unmarshal(files[1].data, &d); err != nil {
		t.Fatal(err)
	}
	if d["kind"] != "KRMFunctionDefinition" {
		t.Errorf("kind is %v", d["kind"])
	}
	for _, word := range []string{"$ref", "$defs", "const:"} {
		if strings.Contains(string(files[1].data), word) {
			t.Errorf("%s is left in it", word)
		}
	}
}

func TestLostMarker(t *testing.T) {
	m := readMarkers(map[string]string{module + "/" + apiDir + ".Istio.Nowhere": "It has a marker.\n+enum=A,B"})
	if err := m.unusedMarkerError(); err == nil || !strings.Contains(err.Error(), "Istio.Nowhere") {
		t.Errorf("got %v", err)
	}
}
