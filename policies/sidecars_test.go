// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/policies"
)

// sidecarPolicies are the policies other than Istio's.
func sidecarPolicies() []string {
	return slices.DeleteFunc(policies.Names(), func(name string) bool { return name == "istio" })
}

// TestSidecars compares with what was looked through: CASE.expected.yaml is what the policy makes of CASE.input.yaml, with
// what it says about each workload at the end. CASE.policy.yaml is a policy that uses the built-in one with other values.
func TestSidecars(t *testing.T) {
	expected := map[string]bool{}
	for _, name := range sidecarPolicies() {
		found, err := filepath.Glob(filepath.Join("testdata", name, "*.input.yaml"))
		if err != nil || len(found) == 0 {
			t.Errorf("the policy %s has no tests: %v", name, err)
		}
		for _, path := range found {
			t.Run(name+"/"+strings.TrimSuffix(filepath.Base(path), ".input.yaml"), func(t *testing.T) {
				golden := strings.TrimSuffix(path, ".input.yaml") + ".expected.yaml"
				expected[golden] = true
				checkSidecar(t, name, path, golden)
			})
		}
		stale, err := filepath.Glob(filepath.Join("testdata", name, "*.expected.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range stale {
			if !expected[path] {
				t.Errorf("%s has no input any more", path)
			}
		}
	}
}

func checkSidecar(t *testing.T, name, path, golden string) {
	t.Helper()
	input, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile(strings.TrimSuffix(path, ".input.yaml") + ".policy.yaml")
	if errors.Is(err, fs.ErrNotExist) {
		policy, _ = policies.Get(name)
	} else if err != nil {
		t.Fatal(err)
	}
	got, results := apply(t, policy, input, v1alpha1.ModeInject)
	text := string(got) + results
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
	if twice, _ := apply(t, policy, got, v1alpha1.ModeInject); !bytes.Equal(got, twice) {
		t.Errorf("injecting twice is not injecting once:\n%s", cmp.Diff(strings.Split(string(got), "\n"), strings.Split(string(twice), "\n")))
	}
	if back, _ := apply(t, policy, got, v1alpha1.ModeRemove); !bytes.Equal(input, back) {
		t.Errorf("removing does not give the input:\n%s", cmp.Diff(strings.Split(string(input), "\n"), strings.Split(string(back), "\n")))
	}
}

// injectAndBack injects, and checks that a second time changes nothing and that removal gives the input back. Where Prerig or the injector
// that it is compared with refuses, there is no output, and the difference is what each of them says; "" where both refuse.
func injectAndBack(t *testing.T, policy, input []byte, injector, refusal string) (out []byte, difference string) {
	t.Helper()
	out, results := apply(t, policy, input, v1alpha1.ModeInject)
	if refused := strings.Contains(results, "# error: "); refused || refusal != "" {
		if refused && refusal != "" {
			return nil, ""
		}
		return nil, injector + ": " + refusal + "\nPrerig: " + results
	}
	if twice, _ := apply(t, policy, out, v1alpha1.ModeInject); !bytes.Equal(out, twice) {
		t.Errorf("injecting twice is not injecting once:\n%s", twice)
	}
	if back, _ := apply(t, policy, out, v1alpha1.ModeRemove); !bytes.Equal(input, back) {
		t.Errorf("removing does not give the input:\n%s", back)
	}
	return out, ""
}

// apply gives the output, and the results as comments.
func apply(t *testing.T, policy, input []byte, mode v1alpha1.Mode) ([]byte, string) {
	t.Helper()
	p, err := v1alpha1.Parse(policy)
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.Mode = mode
	injector, err := fn.New([]*v1alpha1.InjectionPolicy{p})
	if err != nil {
		t.Fatal(err)
	}
	file, err := manifest.Parse("input.yaml", input)
	if err != nil {
		t.Fatal(err)
	}
	items := make([]fn.Item, len(file.Docs))
	for i, doc := range file.Docs {
		items[i] = fn.Item{Doc: doc}
	}
	report, err := injector.Run(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, item := range report.Items {
		out = append(out, item.Doc.Raw()...)
	}
	for _, doc := range report.Added {
		out = append(append(out, "---\n"...), doc.Raw()...)
	}
	var results strings.Builder
	for _, r := range report.Results {
		if r.Severity != result.Info || strings.HasPrefix(r.Message, "sidecar") || r.Tags[result.TagCode] != "" {
			fmt.Fprintf(&results, "# %s\n", r)
		}
	}
	return out, results.String()
}

// TestSidecarPolicies sees that every policy can be used by its name.
func TestSidecarPolicies(t *testing.T) {
	for _, name := range sidecarPolicies() {
		text := "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec: {sidecars: [{builtIn: " + name + "}]}\n"
		if _, results := apply(t, []byte(text), []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: a}]}\n"), v1alpha1.ModeInject); !strings.Contains(results, "sidecar "+name+" skipped: ") {
			t.Errorf("%s: %s", name, results)
		}
	}
}
