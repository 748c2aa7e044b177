// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openTelemetryOperator is a program made of the operator's code that answers as its webhooks do; see
// testdata/opentelemetry-sidecar/README.md.
var openTelemetryOperator = flag.String("opentelemetry-operator", "", "program that answers as OpenTelemetry's operator, to compare the stored answers with")

// openTelemetryAnswers are what one version of the operator makes of the cases.
type openTelemetryAnswers struct {
	Version string `json:"version"`
	// Images are the operator's own for collectors and instrumentations that name none.
	Images  map[string]string              `json:"images"`
	Answers map[string]openTelemetryAnswer `json:"answers"`
}

// openTelemetryAnswer is a pod, or why the operator refuses the objects or the pod.
type openTelemetryAnswer struct {
	Pod   map[string]any `json:"pod,omitempty"`
	Error string         `json:"error,omitempty"`
}

// openTelemetryDataFile returns the file with the answers for the cases of a policy.
func openTelemetryDataFile(policy, version string) string {
	return filepath.Join("testdata", policy, version+".operator.json")
}

func readOpenTelemetryAnswers(t *testing.T, policy, version string) openTelemetryAnswers {
	t.Helper()
	text, err := os.ReadFile(openTelemetryDataFile(policy, version))
	if err != nil {
		t.Fatal(err)
	}
	var out openTelemetryAnswers
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOpenTelemetryAnswers compares the stored answers with those of the program, or writes them anew.
func TestOpenTelemetryAnswers(t *testing.T) {
	if *openTelemetryOperator == "" {
		t.Skip("no program: make opentelemetry OPERATOR=…")
	}
	for policy, cases := range openTelemetryPolicies {
		asked := map[string]any{}
		for name, tc := range cases {
			asked[name] = tc.question(t)
		}
		in, err := json.Marshal(map[string]any{"cases": asked})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), *openTelemetryOperator)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(in), io.Discard
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var got openTelemetryAnswers
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(openTelemetryVersions, got.Version) {
			t.Fatalf("the program answers as %s, which is not one of %s", got.Version, strings.Join(openTelemetryVersions, ", "))
		}
		if !slices.Contains(comparedVersions(policy), got.Version) {
			continue
		}
		text := formatOpenTelemetryAnswers(t, got)
		path := openTelemetryDataFile(policy, got.Version)
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(text), "\n")); diff != "" {
			t.Errorf("%s: -stored +operator:\n%s", policy, diff)
		}
	}
}

// formatOpenTelemetryAnswers writes one case a line.
func formatOpenTelemetryAnswers(t *testing.T, answers openTelemetryAnswers) []byte {
	t.Helper()
	line := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\"version\": %s,\n\"images\": %s,\n\"answers\": {", line(answers.Version), line(answers.Images))
	for i, name := range slices.Sorted(maps.Keys(answers.Answers)) {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "\n%s: %s", line(name), line(answers.Answers[name]))
	}
	out.WriteString("\n}}\n")
	return out.Bytes()
}
