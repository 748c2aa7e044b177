// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/lint/baseline"
	"github.com/prerig/prerig/fn/result"
)

var update = flag.Bool("update", false, "rewrite golden files")

func sample() result.Results {
	shop := &result.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop", Namespace: "web"}
	return result.Results{
		{
			Message: `the proxy's "own" <traffic> & more`, Severity: result.Error, ResourceRef: shop,
			Field: &result.Field{Path: "spec.template.spec.containers[1].securityContext.runAsUser", CurrentValue: int64(1234), ProposedValue: int64(1337)},
			File:  &result.File{Path: "k8s/my shop.yaml", Index: 1, Line: 42},
			Tags:  map[string]string{result.TagCode: "PR502", lint.TagContainer: "istio-proxy"},
		},
		{
			Message: "first", Severity: result.Warning, ResourceRef: shop, File: &result.File{Path: "./k8s/shop.yaml"},
			Field: &result.Field{Path: "spec.template.spec.containers[1]"}, Tags: map[string]string{result.TagCode: "PR201", lint.TagContainer: "istio-proxy"},
		},
		{
			Message: "second of the same place", Severity: result.Warning, ResourceRef: shop, File: &result.File{Path: "./k8s/shop.yaml"},
			Field: &result.Field{Path: "spec.template.spec.containers[1]"}, Tags: map[string]string{result.TagCode: "PR201", lint.TagContainer: "istio-proxy"},
		},
		{Message: "about nothing in particular", Severity: result.Info},
		{Message: "from standard input", Severity: result.Info, File: &result.File{Path: "-", Line: 3}, Tags: map[string]string{result.TagCode: "PR107"}},
		{
			Message: "about the mesh", Severity: result.Info, Tags: map[string]string{result.TagCode: "PR107", lint.TagContainer: "istio-proxy", lint.TagScope: lint.ScopeMesh},
			Places: samplePlaces(7),
		},
		{Message: "decoding k8s/broken.yaml:3: mapping values are not allowed here", Severity: result.Error},
	}
}

// samplePlaces are places of a finding about the mesh.
func samplePlaces(n int) []result.Place {
	var out []result.Place
	for i := range n {
		out = append(out, result.Place{
			ResourceRef: result.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprintf("shop-%d", i), Namespace: "web"},
			Field:       &result.Field{Path: "spec.template.spec.containers[1]"},
			File:        &result.File{Path: "k8s/shops.yaml", Index: i, Line: 10 * (i + 1)},
		})
	}
	return out
}

// unreported is what the formats say of findings that they leave out.
func unreported() (result.Results, *Baseline) {
	suppressed := sample()[0]
	suppressed.Tags[lint.TagReason] = "accepted until the move"
	return result.Results{suppressed}, &Baseline{Known: 4, Gone: []baseline.Entry{{Code: "PR604", Object: "Deployment web/old"}}}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		name, format string
		results      result.Results
		colour       bool
	}{
		{"sample.txt", "text", sample(), false},
		{"sample.colour.txt", "text", sample(), true},
		{"sample.json", "json", sample(), false},
		{"sample.yaml", "yaml", sample(), false},
		{"sample.sarif", "sarif", sample(), false},
		{"none.txt", "text", nil, false},
		{"none.json", "json", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			o := Options{Version: "1.2.3", Pods: 3, Injected: 2, Colour: c.colour, AllPlaces: c.colour}
			if c.results != nil {
				o.Suppressed, o.Baseline = unreported()
			}
			if err := Write(&b, c.format, c.results, o); err != nil {
				t.Fatal(err)
			}
			got := b.Bytes()
			if c.format == "sarif" {
				got = withoutRules(t, got)
			}
			golden := filepath.Join("testdata", c.name)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// withoutRules leaves out the list of rules, which has tests of its own and changes often.
func withoutRules(t *testing.T, data []byte) []byte {
	t.Helper()
	var log sarifLog
	if err := json.Unmarshal(data, &log); err != nil {
		t.Fatal(err)
	}
	if len(log.Runs[0].Tool.Driver.Rules) != len(lint.Rules()) {
		t.Errorf("%d rules, want %d", len(log.Runs[0].Tool.Driver.Rules), len(lint.Rules()))
	}
	log.Runs[0].Tool.Driver.Rules = nil
	var b bytes.Buffer
	if err := writeIndentedJSON(&b, log); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSARIFSchema checks against the rules of SARIF 2.1.0 for what is written, and that nothing else is.
func TestSARIFSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(filepath.Join("testdata", "written.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, results := range map[string]result.Results{"results": sample(), "none": nil} {
		var b bytes.Buffer
		if err := SARIF(&b, results, Options{Version: "1.2.3"}); err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(&b)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSARIFRules checks what the schema cannot: that each result points at its own rule, and that fingerprints are its own.
func TestSARIFRules(t *testing.T) {
	var b bytes.Buffer
	if err := SARIF(&b, sample(), Options{}); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	fingerprints := map[string]bool{}
	for _, r := range run.Results {
		if r.RuleIndex != nil && run.Tool.Driver.Rules[*r.RuleIndex].ID != r.RuleID {
			t.Errorf("%s points at %s", r.RuleID, run.Tool.Driver.Rules[*r.RuleIndex].ID)
		}
		if r.RuleID != "" && r.RuleIndex == nil {
			t.Errorf("%s points at no rule", r.RuleID)
		}
		fingerprints[r.PartialFingerprints["prerig/v1"]] = true
	}
	if n := len(run.Invocations); n != 1 || run.Invocations[0].Successful || len(run.Invocations[0].Notifications) != 1 || len(run.Results) != len(sample())-1 {
		t.Errorf("what could not be checked: %d results, %+v", len(run.Results), run.Invocations)
	}
	if len(fingerprints) != len(run.Results) {
		t.Errorf("%d fingerprints for %d results", len(fingerprints), len(run.Results))
	}
	if page, err := os.ReadFile(filepath.Join("..", "RULES.md")); err != nil {
		t.Error(err)
	} else {
		for _, r := range run.Tool.Driver.Rules {
			if !strings.Contains(string(page), "\n### "+r.ID+"\n") || !strings.HasSuffix(r.HelpURI, "#"+strings.ToLower(r.ID)) {
				t.Errorf("%s: %s points at no section of the page", r.ID, r.HelpURI)
			}
		}
	}
}

// TestFingerprintOfMeshKeeps: a new workload does not make another finding of one about the mesh.
func TestFingerprintOfMeshKeeps(t *testing.T) {
	few, many := sample()[5], sample()[5]
	few.Places = samplePlaces(3)[1:]
	a := Options{}.resultOf(few, nil, map[string]int{}).PartialFingerprints
	b := Options{}.resultOf(many, nil, map[string]int{}).PartialFingerprints
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	many.Message = "another one"
	if diff := cmp.Diff(a, Options{}.resultOf(many, nil, map[string]int{}).PartialFingerprints); diff == "" {
		t.Error("two findings about the mesh have one fingerprint")
	}
}

// TestFingerprintKeeps holds that a finding is known again when a container is added in front of its own.
func TestFingerprintKeeps(t *testing.T) {
	one, other := sample()[0], sample()[0]
	other.Field = &result.Field{Path: "spec.template.spec.containers[4].securityContext.runAsUser"}
	other.File = &result.File{Path: "k8s/my shop.yaml", Line: 99}
	a := Options{}.resultOf(one, nil, map[string]int{}).PartialFingerprints
	b := Options{}.resultOf(other, nil, map[string]int{}).PartialFingerprints
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestErrors(t *testing.T) {
	for _, name := range Names {
		if err := Write(broken{}, name, sample(), Options{}); err == nil || !strings.Contains(err.Error(), "writing results: no space left") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Write(&bytes.Buffer{}, "xml", nil, Options{}); err == nil || !strings.Contains(err.Error(), `"xml" is not one of text, json, yaml, sarif`) {
		t.Error(err)
	}
}
