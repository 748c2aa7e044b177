// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"flag"
	"os"
	"path/filepath"
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
	Images  map[string]string         `json:"images"`
	Answers map[string]injectorAnswer `json:"answers"`
}

// openTelemetryDataFile returns the file with the answers for the cases of a policy.
func openTelemetryDataFile(policy, version string) string {
	return filepath.Join("testdata", policy, version+".operator.json")
}

func readOpenTelemetryAnswers(t *testing.T, policy, version string) openTelemetryAnswers {
	t.Helper()
	return readAnswers[openTelemetryAnswers](t, openTelemetryDataFile(policy, version))
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
		got := askInjector[openTelemetryAnswers](t, *openTelemetryOperator, asked)
		checkVersion(t, got.Version, openTelemetryVersions...)
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
	return formatAnswers(t, answers.Version, "images", answers.Images, answers.Answers)
}
