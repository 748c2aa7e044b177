// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/internal/corpustest"
)

// decode reads a YAML stream into objects, as Kubernetes reads it, with the items of lists.
func decode(t testing.TB, data []byte) []map[string]any {
	t.Helper()
	var out []map[string]any
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := reader.Read()
		if err != nil {
			return out
		}
		asJSON, err := yaml.YAMLToJSON(doc)
		if err != nil {
			t.Fatal(err)
		}
		var obj map[string]any
		d := json.NewDecoder(bytes.NewReader(asJSON))
		d.UseNumber()
		if err := d.Decode(&obj); err != nil {
			continue // an empty document
		}
		obj = numbers(obj).(map[string]any)
		if items, ok := obj["items"].([]any); ok {
			for _, item := range items {
				out = append(out, item.(map[string]any))
			}
			continue
		}
		if obj != nil {
			out = append(out, obj)
		}
	}
}

// numbers makes int64 and float64 of numbers, as unstructured objects have them.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

// inputOf makes the input of one object; before may be nil.
func inputOf(t testing.TB, before, after map[string]any, facts lint.Facts) (lint.Input, bool) {
	t.Helper()
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	templates, err := registry.Templates(after)
	if err != nil {
		t.Fatal(err)
	}
	if len(templates) == 0 {
		return lint.Input{}, false
	}
	in := lint.Input{After: templates[0].Pod, Field: templates[0].Field, Facts: facts}
	in.APIVersion, _ = after["apiVersion"].(string)
	in.Kind, _ = after["kind"].(string)
	meta, _ := after["metadata"].(map[string]any)
	in.Name, _ = meta["name"].(string)
	in.Namespace, _ = meta["namespace"].(string)
	if in.Field != "" {
		in.Replicas = lint.Replicas(after)
		in.ObjectLabels, _ = workload.Labels(after)
		in.ObjectAnnotations, _ = workload.Annotations(after)
	}
	if before != nil {
		templates, err := registry.Templates(before)
		if err != nil || len(templates) == 0 {
			t.Fatalf("the input has no template: %v", err)
		}
		in.Before = templates[0].Pod
	}
	return in, true
}

type corpusCase struct {
	Name     string `json:"name"`
	Input    string `json:"input"`
	Expected string `json:"expected"`
}

// TestCorpus holds the findings on what Istio 1.31 itself makes of its test workloads. Each line of the list was gone through
// by hand; testdata/corpus-1.31.md says for each rule why its findings are right.
func TestCorpus(t *testing.T) {
	dir := filepath.Join(corpustest.Dir(t), "1.31.0-rc.0")
	data, err := os.ReadFile(filepath.Join(dir, "cases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []corpusCase
	if err := yaml.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	facts := lint.Facts{IstioVersion: "1.31", KubernetesVersion: "1.34"}
	var lines []string
	pods := 0
	for _, c := range cases {
		if c.Expected == "" {
			continue
		}
		before, after := read(t, filepath.Join(dir, c.Input)), read(t, filepath.Join(dir, c.Expected))
		if len(before) != len(after) {
			t.Fatalf("%s: %d documents before and %d after", c.Name, len(before), len(after))
		}
		for i := range after {
			in, ok := inputOf(t, before[i], after[i], facts)
			if !ok {
				continue
			}
			pods++
			for _, r := range found(in, lint.Severities{}) {
				lines = append(lines, fmt.Sprintf("%s %s %s %s: %s", r.Tags["prerig.dev/code"], c.Name, in.Kind, r.Field.Path, r.Message))
			}
			alone := in
			alone.Before = nil
			found(alone, lint.Severities{}) // must not panic on what is already injected
		}
	}
	sort.Strings(lines)
	got := strings.Join(lines, "\n") + "\n"
	golden := filepath.Join("testdata", "corpus-1.31.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("findings on %d pods (-want +got):\n%s", pods, diff)
	}
	t.Logf("%d cases, %d pods, %d findings", len(cases), pods, len(lines))
}

func read(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, data)
}
