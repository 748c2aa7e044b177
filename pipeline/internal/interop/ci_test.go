// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCI runs the steps of both files that are about Prerig in the checkout of a pull request.
func TestCI(t *testing.T) {
	files := example(t, "ci")
	type workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Uses, Run string }
		}
	}
	var steps []string
	for _, step := range decode[workflow](t, files["github-actions.yaml"])[0].Jobs["diff"].Steps {
		if strings.Contains(step.Run, "prerig diff") {
			steps = append(steps, step.Run)
		}
	}
	type pipeline struct {
		Job struct{ Script []string } `json:"rendered-diff"`
	}
	steps = append(steps, strings.Join(decode[pipeline](t, files["gitlab-ci.yaml"])[0].Job.Script, "\n"))
	if len(steps) != 2 || !strings.Contains(steps[1], "prerig diff") {
		t.Fatalf("the steps are %q", steps)
	}
	s := serve(t, files, nil)
	work := s.repository.Work
	for _, step := range steps {
		summary := filepath.Join(t.TempDir(), "summary.md")
		before := s.repository.Head("rendered")
		run := func() string {
			t.Helper()
			os.Remove(filepath.Join(work, "diff.md"))
			if _, stderr, err := shell(t, work, []string{"GITHUB_STEP_SUMMARY=" + summary}, "sh", "-euc", step); err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			text, err := os.ReadFile(filepath.Join(work, "diff.md"))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		app := filepath.Join(work, "apps", "shop", "web.yaml")
		if got := run(); strings.Contains(got, "```diff") {
			t.Errorf("a pull request that changes nothing has a difference:\n%s", got)
		}
		if err := os.WriteFile(app, []byte(strings.Replace(files["apps/shop/web.yaml"], ":2.14", ":2.15", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		got := run()
		for _, want := range []string{":2.14\n", ":2.15\n", "Deployment shop/web"} {
			if !strings.Contains(got, want) {
				t.Errorf("the comment lacks %q:\n%s", want, got)
			}
		}
		if strings.Contains(got, "istio-proxy") {
			t.Errorf("the comment tells of what does not change:\n%s", got)
		}
		if s.repository.Head("rendered") != before {
			t.Error("looking has published something")
		}
		if err := os.WriteFile(app, []byte(files["apps/shop/web.yaml"]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
