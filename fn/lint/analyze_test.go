// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

var analyzer = flag.String("analyzer", "", "the program fn/internal/upstream/istio/analyzer, to ask anew what istioctl analyze says")

const (
	upstreamIstio = "../internal/upstream/istio"
	answersFile   = "testdata/analyze/answers.json"
)

// analyzerData returns the directory with the test data of istioctl analyze: PRERIG_ANALYZERS, or that of the module of Istio that is
// pinned for comparisons, where it was downloaded before.
func analyzerData(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("PRERIG_ANALYZERS"); dir != "" {
		return dir
	}
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/istio")
	cmd.Dir = upstreamIstio
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skip("Istio's source is not among the downloaded modules: make analyze downloads it")
	}
	return filepath.Join(dir, "pkg", "config", "analysis", "analyzers", "testdata")
}

// analyzed is one run of istioctl's analyzers.
type analyzed struct {
	Files        []string `json:"files"`
	MeshConfig   string   `json:"meshConfig,omitempty"`
	MeshNetworks string   `json:"meshNetworks,omitempty"`
	// Messages and Command are as the program has them.
	Messages []analyzerMessage `json:"messages,omitempty"`
	Command  []analyzerMessage `json:"command,omitempty"`
	Errors   string            `json:"errors,omitempty"`
}

type analyzerMessage struct {
	Code   string `json:"code"`
	Level  string `json:"level"`
	Object string `json:"object,omitempty"`
	Text   string `json:"text,omitempty"`
}

func (m analyzerMessage) String() string { return strings.TrimSpace(m.Code + " " + m.Object) }

// furtherRuns are the runs of analyzers_test.go over several files or with settings of the mesh.
var furtherRuns = []analyzed{
	{Files: []string{"injection.yaml", "common/sidecar-injector-enabled-nsbydefault.yaml"}},
	{Files: []string{"injection-with-mismatched-sidecar.yaml", "common/sidecar-injector-configmap.yaml"}},
	{Files: []string{"injection-image-distroless.yaml", "common/sidecar-injector-configmap.yaml"}, MeshConfig: "common/meshconfig.yaml"},
	{Files: []string{"injection-image-distroless-no-meshconfig.yaml", "common/sidecar-injector-configmap.yaml"}},
	{Files: []string{"injection-with-mismatched-sidecar.yaml", "sidecar-injector-configmap-absolute-override.yaml"}},
	{Files: []string{"injection-with-mismatched-sidecar.yaml", "sidecar-injector-configmap-absolute-override.yaml", "sidecar-injector-configmap-with-revision-canary.yaml"}},
	{Files: []string{"virtualservice_dupmatches.yaml", "virtualservice_overlappingmatches.yaml"}},
	{Files: []string{"serviceentry-missing-addresses-protocol.yaml"}, MeshConfig: "serviceentry-missing-addresses-protocol-mesh-cfg.yaml"},
	{Files: []string{"multicluster-unknown-serviceregistry.yaml"}, MeshNetworks: "common/meshnetworks.yaml"},
}

// notInputs are files of the directory that only others are read with.
var notInputs = []string{
	"serviceentry-missing-addresses-protocol-mesh-cfg.yaml", "serviceentry-address-allocated-mesh-cfg.yaml", "telemetry-lightstep-meshconfig.yaml",
	"mesh-with-automtls.yaml", "sidecar-injector-configmap-absolute-override.yaml", "sidecar-injector-configmap-with-revision-canary.yaml",
}

// analyzerRuns are all runs: one for each file by itself, and the further ones.
func analyzerRuns(t *testing.T, dir string) []analyzed {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) < 90 {
		t.Fatalf("%d files in %s, %v", len(files), dir, err)
	}
	var out []analyzed
	for _, f := range files {
		if name := filepath.Base(f); !slices.Contains(notInputs, name) {
			out = append(out, analyzed{Files: []string{name}})
		}
	}
	return append(out, furtherRuns...)
}

// askAnalyzer runs the program.
func askAnalyzer(t *testing.T, dir string, runs []analyzed) []analyzed {
	t.Helper()
	var in bytes.Buffer
	for _, r := range runs {
		line, err := json.Marshal(map[string]any{"directory": dir, "files": r.Files, "meshConfig": r.MeshConfig, "meshNetworks": r.MeshNetworks})
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	cmd := exec.Command(*analyzer)
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	runs = slices.Clone(runs)
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<22)
	for i := range runs {
		if !lines.Scan() {
			t.Fatalf("no answer for %v", runs[i].Files)
		}
		if err := json.Unmarshal(lines.Bytes(), &runs[i]); err != nil {
			t.Fatal(err)
		}
		for j := range runs[i].Command {
			runs[i].Command[j].Text = "" // it is that of the same message
		}
		for _, list := range [][]analyzerMessage{runs[i].Messages, runs[i].Command} {
			slices.SortFunc(list, func(a, b analyzerMessage) int { return strings.Compare(a.String()+a.Text, b.String()+b.Text) })
		}
	}
	return runs
}

// storedAnswers reads what istioctl's analyzers have said.
func storedAnswers(t *testing.T) []analyzed {
	t.Helper()
	text, err := os.ReadFile(answersFile)
	if err != nil {
		t.Fatal(err)
	}
	var out []analyzed
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAnalyzerAnswers holds that the stored answers are those of istioctl's analyzers; with -update it stores them.
func TestAnalyzerAnswers(t *testing.T) {
	if *analyzer == "" {
		t.Skip("-analyzer names no program: make analyze builds it")
	}
	dir := analyzerData(t)
	got := askAnalyzer(t, dir, analyzerRuns(t, dir))
	if *update {
		text, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(answersFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(answersFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Some texts name what comes first in a Go map, and so another thing each time.
	if diff := cmp.Diff(storedAnswers(t), got, cmpopts.IgnoreFields(analyzerMessage{}, "Text")); diff != "" {
		t.Errorf("(-stored +asked):\n%s", diff)
	}
}

// lintedPolicy injects with what comes with Prerig, and switches on what is off unless somebody has all manifests of a cluster at hand.
const lintedPolicy = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: all}
spec:
  istio: {injector: {builtIn: istio}}
  lint: {rules: {PR605: Info, PR821: Info}}
`

// lintFiles returns what prerig lint finds in the files together, by rule and object.
func lintFiles(t *testing.T, dir string, names []string) []result.Result {
	t.Helper()
	policy, err := v1alpha1.Parse([]byte(lintedPolicy))
	if err != nil {
		t.Fatal(err)
	}
	in, err := engine.New([]*v1alpha1.InjectionPolicy{policy})
	if err != nil {
		t.Fatal(err)
	}
	var items []engine.Item
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		f, err := manifest.Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range f.Docs {
			items = append(items, engine.Item{Doc: d, Path: name, Index: i})
		}
	}
	report, err := in.Run(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(report.Results, func(r result.Result) bool {
		_, ok := lint.Lookup(r.Tags[result.TagCode])
		return !ok
	})
}

// TestAnalyzers compares what lint finds in the test data of istioctl analyze with what istioctl analyze finds there. A message is answered
// by a finding about the same object of a rule that names its code; each other one has a reason in analyzerDifferences.
func TestAnalyzers(t *testing.T) {
	dir := analyzerData(t)
	answered, all := 0, 0
	used := make([]bool, len(analyzerDifferences))
	for _, run := range storedAnswers(t) {
		rules, found := map[string]bool{}, map[string]bool{} // rules, and codes of istioctl with and without an object
		for _, r := range lintFiles(t, dir, run.Files) {
			rule, _ := lint.Lookup(r.Tags[result.TagCode])
			rules[rule.Code] = true
			for _, code := range rule.Analyzers {
				found[code+" "+analyzerName(r.ResourceRef)] = true
			}
		}
		for _, m := range run.Messages {
			all++
			if found[m.String()] {
				answered++
				continue
			}
			i := slices.IndexFunc(analyzerDifferences, func(d difference) bool { return d.isAbout(run, m) })
			if i < 0 {
				t.Errorf("%v: not found: %s: %s", run.Files, m, m.Text)
				continue
			}
			used[i] = true
			if d := analyzerDifferences[i]; d.rule != "" && !rules[d.rule] {
				t.Errorf("%v: %s is said to be found by %s, which finds nothing: %s", run.Files, m, d.rule, m.Text)
			}
		}
	}
	for i, d := range analyzerDifferences {
		if !used[i] {
			t.Errorf("there is no such message: %+v", d)
		}
	}
	t.Logf("%d of %d messages are findings of lint about the same object", answered, all)
}

// TestNothingFurther holds that lint finds nothing else where istioctl analyze looks for the same, but for what furtherFindings explains.
func TestNothingFurther(t *testing.T) {
	dir := analyzerData(t)
	for _, run := range storedAnswers(t) {
		said := map[string]bool{}
		for _, m := range run.Messages {
			said[m.String()] = true
		}
		for _, r := range lintFiles(t, dir, run.Files) {
			rule, _ := lint.Lookup(r.Tags[result.TagCode])
			answers := slices.ContainsFunc(rule.Analyzers, func(code string) bool { return said[code+" "+analyzerName(r.ResourceRef)] })
			if len(rule.Analyzers) > 0 && !answers && furtherFindings[rule.Code] == "" {
				t.Errorf("%v: istioctl analyze does not say: %s", run.Files, r)
			}
		}
	}
}

// TestCommandReadsLess holds what the documentation says of the command itself: of files it reads no Services, Pods, Namespaces, Nodes and
// Secrets.
func TestCommandReadsLess(t *testing.T) {
	lost, all := 0, 0
	for _, run := range storedAnswers(t) {
		lost += countMissing(run.Messages, run.Command)
		all += len(run.Messages)
	}
	t.Logf("with --use-kube=false, istioctl analyze leaves out %d of %d messages", lost, all)
	if lost == 0 {
		t.Error("the command leaves nothing out: the documentation is out of date")
	}
}

// countMissing counts the messages that are in one list and not in the other.
func countMissing(list, other []analyzerMessage) int {
	n := 0
	for _, m := range list {
		if !slices.ContainsFunc(other, func(o analyzerMessage) bool { return o.String() == m.String() }) {
			n++
		}
	}
	return n
}

// analyzerName names an object as istioctl does.
func analyzerName(ref *result.ResourceRef) string {
	if ref.Namespace == "" {
		return ref.Kind + " " + ref.Name
	}
	return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}
