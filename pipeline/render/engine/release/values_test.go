// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// TestValuesAsFlux compares values with what Flux's own code made of them: ChartValuesFromReferences of github.com/fluxcd/pkg/chartutil
// at commit e2cfd1a2 (July 2026), with values and references made at random. testdata/values.jsonl has its answers.
func TestValuesAsFlux(t *testing.T) {
	file, err := os.Open("testdata/values.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	count, refused := 0, 0
	for lines := bufio.NewScanner(file); lines.Scan(); count++ {
		var c struct {
			Values  json.RawMessage
			Refs    []meta.ValuesReference
			Objects map[string]map[string]string
			Want    map[string]any
			Error   bool
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Want == nil { // left out where it is empty
			c.Want = map[string]any{}
		}
		var objects []*Object
		for key, data := range c.Objects {
			kind, name, _ := strings.Cut(key, "/")
			values := map[string]any{}
			for k, v := range data {
				values[k] = v
			}
			field := "data"
			if kind == "Secret" {
				field = "stringData"
			}
			objects = append(objects, &Object{Value: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop"}, field: values}})
		}
		hr := &helmv2.HelmRelease{Spec: helmv2.HelmReleaseSpec{Values: &apiextensionsv1.JSON{Raw: c.Values}, ValuesFrom: c.Refs}}
		hr.Namespace = "shop"
		got, err := New(Inputs{Spec: &v1alpha1.Releases{}, Objects: objects}).fluxValues(&Object{Value: map[string]any{}}, hr, &Rendered{})
		if c.Error {
			refused++
		}
		switch {
		case (err != nil) != c.Error:
			t.Errorf("%d: got the error %v, and Flux's was %t\n%s", count, err, c.Error, lines.Bytes())
		case err == nil && cmp.Diff(c.Want, plain(t, got)) != "":
			t.Errorf("%d: (-Flux +here)\n%s\n%s", count, cmp.Diff(c.Want, plain(t, got)), lines.Bytes())
		}
	}
	if count < 300 || refused == 0 || refused == count {
		t.Errorf("%d cases, of which %d are refused", count, refused)
	}
}

// plain returns values as JSON has them.
func plain(t *testing.T, values map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The examples are those of helm-controller's own documentation and tests (internal/release/name_test.go).
func TestShortName(t *testing.T) {
	for name, want := range map[string]string{
		"release-name": "release-name",
		"release-name-with-very-long-name-which-is-longer-than-53-characters": "release-name-with-very-long-name-which-i-788ca0d0d7b0",
	} {
		if got := shortName(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
