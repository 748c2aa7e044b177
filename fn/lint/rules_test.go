// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
)

// header is the comment of an archive: the facts that its cases share, and a severity for rules that are off by default.
type header struct {
	Istio      string `json:"istio"`
	Kubernetes string `json:"kubernetes"`
	CNI        bool   `json:"cni"`
	Severity   string `json:"severity"`
}

// TestRules runs each rule on its own archive, testdata/rules/CODE.txtar. A case is NAME.yaml under triggers/, clean/ or after/, with
// NAME.before.yaml (the pod before injection) and NAME.ns.yaml (its namespace) where the rule needs them, and NAME.txt with the findings. A case
// under after/ is a pod whose author followed the advice of the rule: the rule is silent about it, and no rule finds an error.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, file := range files {
		have = append(have, strings.TrimSuffix(filepath.Base(file), ".txtar"))
	}
	var want []string
	for _, r := range lint.Rules() {
		want = append(want, r.Code)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("rules and their archives (-rules +archives):\n%s", diff)
	}
	for i, file := range files {
		t.Run(have[i], func(t *testing.T) { testArchive(t, file, have[i]) })
	}
}

func testArchive(t *testing.T, file, code string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var h header
	if err := yaml.UnmarshalStrict(archive.Comment, &h); err != nil {
		t.Fatal(err)
	}
	byName := map[string][]byte{}
	for _, f := range archive.Files {
		byName[f.Name] = f.Data
	}
	out := &txtar.Archive{Comment: archive.Comment}
	count := map[string]int{}
	for _, f := range archive.Files {
		name, isCase := strings.CutSuffix(f.Name, ".yaml")
		if strings.HasSuffix(f.Name, ".txt") {
			if _, ok := byName[strings.TrimSuffix(f.Name, ".txt")+".yaml"]; !ok {
				t.Errorf("%s has no case", f.Name)
			}
			continue
		}
		out.Files = append(out.Files, f)
		if !isCase || strings.HasSuffix(name, ".before") || strings.HasSuffix(name, ".ns") {
			continue
		}
		kind, _, _ := strings.Cut(name, "/")
		count[kind]++
		got := caseFindings(t, h, code, f.Data, byName[name+".before.yaml"], byName[name+".ns.yaml"])
		if kind == "after" {
			if errs := caseErrors(t, h, f.Data, byName[name+".before.yaml"], byName[name+".ns.yaml"]); errs != "" {
				t.Errorf("%s: the advice leads to\n%s", name, errs)
			}
		}
		switch {
		case kind == "triggers" && got == "":
			t.Errorf("%s: the rule finds nothing", name)
		case kind != "triggers" && got != "":
			t.Errorf("%s: the rule finds\n%s", name, got)
		case kind == "triggers" && !*update:
			if diff := cmp.Diff(string(byName[name+".txt"]), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if kind == "triggers" {
			out.Files = append(out.Files, txtar.File{Name: name + ".txt", Data: []byte(got)})
		}
	}
	kinds := 2
	if count["after"] > 0 || slices.Contains(adviceTopics, code[2]) {
		kinds = 3
	}
	if count["triggers"] == 0 || count["clean"]+count["after"] == 0 || count["clean"] > 0 && len(count) != kinds || kinds == 3 && count["after"] == 0 {
		t.Errorf("cases: %v, want triggers and clean, and after where the rule is about how a pod starts or ends", count)
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// adviceTopics are the topics, by the first digit of a code, whose archives show that the advice of a rule ends its finding: how pods end and
// start, and Jobs.
var adviceTopics = []byte{'1', '2', '3'}

// caseErrors returns the errors that all rules together find in a case, a line each.
func caseErrors(t *testing.T, h header, after, before, ns []byte) string {
	t.Helper()
	var out []string
	for _, r := range lint.Rules() {
		if r.Severity == result.Error {
			out = append(out, caseFindings(t, h, r.Code, after, before, ns))
		}
	}
	return strings.Join(out, "")
}

// caseFindings returns what the one rule says of the objects of a case, a line each.
func caseFindings(t *testing.T, h header, code string, after, before, ns []byte) string {
	t.Helper()
	facts := lint.Facts{IstioVersion: h.Istio, KubernetesVersion: h.Kubernetes}
	if h.CNI {
		facts.CNI = lint.Yes
	}
	severity := h.Severity
	if severity == "" {
		rule, _ := lint.Lookup(code)
		severity = string(rule.Severity)
	}
	all := map[string]string{code: severity}
	for _, r := range lint.Rules() {
		if r.Code != code {
			all[r.Code] = "Off"
		}
	}
	sev, err := lint.NewSeverities(all)
	if err != nil {
		t.Fatal(err)
	}
	var results result.Results
	var pods []lint.Summary
	around := lint.Surroundings{IstioVersion: h.Istio}
	for _, obj := range decode(t, after) {
		if obj["kind"] == "Namespace" {
			around.Namespaces = append(around.Namespaces, lint.Namespace{Name: name(obj), Labels: labels(obj), Annotations: annotationsOf(obj)})
		}
		if version, ok := lint.ControlPlane(obj); ok {
			facts.ControlPlanes = append(facts.ControlPlanes, version)
		}
	}
	for _, obj := range decode(t, after) {
		if o := objectOf(obj); lint.ReadsKind(o.APIVersion, o.Kind) {
			around.Objects = append(around.Objects, o)
			continue
		}
		if obj["kind"] == "Namespace" {
			continue
		}
		var original map[string]any
		if before != nil {
			original = decode(t, before)[0]
		}
		in, ok := inputOf(t, original, obj, facts)
		if !ok {
			t.Fatalf("%v has no pod template", obj["kind"])
		}
		for _, known := range around.Namespaces {
			if known.Name == in.Namespace {
				in.NamespaceKnown, in.NamespaceLabels = true, known.Labels
			}
		}
		if ns != nil {
			in.NamespaceKnown, in.NamespaceLabels = true, labels(decode(t, ns)[0])
		}
		results = append(results, found(in, sev)...)
		if s, ok := lint.Summarize(in); ok {
			pods = append(pods, s)
		}
	}
	ofSet, _ := lint.CheckSet(pods, around, sev)
	results = append(results, ofSet...)
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}

func objectOf(obj map[string]any) lint.Object {
	meta, _ := obj["metadata"].(map[string]any)
	o := lint.Object{Name: name(obj), Object: obj}
	o.APIVersion, _ = obj["apiVersion"].(string)
	o.Kind, _ = obj["kind"].(string)
	o.Namespace, _ = meta["namespace"].(string)
	return o
}

func name(obj map[string]any) string {
	s, _ := obj["metadata"].(map[string]any)["name"].(string)
	return s
}

func labels(obj map[string]any) map[string]string {
	out := map[string]string{}
	m, _ := obj["metadata"].(map[string]any)["labels"].(map[string]any)
	for k, v := range m {
		out[k], _ = v.(string)
	}
	return out
}

func annotationsOf(obj map[string]any) map[string]string {
	out := map[string]string{}
	m, _ := obj["metadata"].(map[string]any)["annotations"].(map[string]any)
	for k, v := range m {
		out[k], _ = v.(string)
	}
	return out
}

// TestRulesAreDescribed keeps the list of rules whole: what every rule has to say, and codes that people can rely on.
func TestRulesAreDescribed(t *testing.T) {
	var codes []string
	for _, r := range lint.Rules() {
		codes = append(codes, r.Code)
		if r.Title == "" || r.Why == "" || r.Change == "" || r.Group() == "" {
			t.Errorf("%s: a rule needs a title, a group, and to say why and what to change", r.Code)
		}
	}
	if !slices.IsSorted(codes) || len(slices.Compact(slices.Clone(codes))) != len(codes) {
		t.Errorf("codes are not unique and in order: %v", codes)
	}
}

// TestRulesPage compares RULES.md with the rules.
func TestRulesPage(t *testing.T) {
	got := lint.Markdown()
	if *update {
		if err := os.WriteFile("RULES.md", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("RULES.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("RULES.md differs from the rules; run go test ./fn/lint -update (-page +rules):\n%s", diff)
	}
}
