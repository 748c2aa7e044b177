// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/internal/oracle"
	"github.com/prerig/prerig/fn/manifest"
)

// oddTexts look like something that a template, or what is made of one, could take for its own.
var oddTexts = []string{"{{ .Values }}", "$(POD_NAME)", "<no value>", "%s", "true", "0", "", "\u0000", "specialize", "istio-proxy", "a: b", "a\nb", "\"", "'"}

// leavesOf returns the texts and numbers in a value, each as a function that sets it.
func leavesOf(v any) []func(any) {
	var out []func(any)
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			switch v[k].(type) {
			case map[string]any, []any:
				out = append(out, leavesOf(v[k])...)
			default:
				out = append(out, func(to any) { v[k] = to })
			}
		}
	case []any:
		for i := range v {
			switch v[i].(type) {
			case map[string]any, []any:
				out = append(out, leavesOf(v[i])...)
			default:
				out = append(out, func(to any) { v[i] = to })
			}
		}
	}
	return out
}

// alikeWorkloads returns random workloads, each with others that differ from it in one field.
func alikeWorkloads(t *testing.T, r *rand.Rand, bases, variants int) []string {
	t.Helper()
	var out []string
	for base := range bases {
		text, err := json.Marshal(oracle.Generate(uint64(r.IntN(1000)), "default", base))
		if err != nil {
			t.Fatal(err)
		}
		for variant := range variants {
			var obj map[string]any
			if err := json.Unmarshal(text, &obj); err != nil {
				t.Fatal(err)
			}
			// Most of them change nothing that the templates ask once for all, so that there are enough alike.
			meta, _ := obj["metadata"].(map[string]any)
			meta["name"] = fmt.Sprintf("app-%d-%d", base, variant)
			if variant%2 == 1 {
				leaves := leavesOf(obj["spec"])
				leaves[r.IntN(len(leaves))](oddTexts[r.IntN(len(oddTexts))])
			}
			changed, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(changed))
		}
	}
	return out
}

// injectTogether gives what becomes of workloads in one run of an Injector: documents, and what is said.
func injectTogether(t *testing.T, policy *v1alpha1.InjectionPolicy, workloads []string) []string {
	t.Helper()
	in, err := fn.New([]*v1alpha1.InjectionPolicy{policy}, fn.WithWorkers(1))
	if err != nil {
		t.Fatal(err)
	}
	items := make([]fn.Item, len(workloads))
	for i, text := range workloads {
		file, err := manifest.Parse("", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		items[i] = fn.Item{Doc: file.Docs[0], Path: fmt.Sprintf("%d.yaml", i)}
	}
	report, err := in.Run(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(workloads))
	for i, item := range report.Items {
		out[i] = string(item.Doc.Raw())
	}
	for _, o := range report.Outcomes {
		var i int
		if _, err := fmt.Sscanf(o.File.Path, "%d.yaml", &i); err != nil {
			t.Fatal(err)
		}
		out[i] += fmt.Sprintf("\n%s %s %v", o.Action, o.Reason, o.Templates)
	}
	return out
}

// TestManyAlikeAreLikeFew compares the injection of many pods in one run, for which templates are evaluated once where pods are
// alike, with that of a few in each run, for which they are not.
func TestManyAlikeAreLikeFew(t *testing.T) {
	const few = 8
	r := rand.New(rand.NewPCG(16, 4)) //nolint:gosec // cases, not secrets
	workloads := alikeWorkloads(t, r, 24, 56)
	policy, err := v1alpha1.Parse([]byte(`apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: mesh}
spec:
  istio: {injector: {builtIn: istio}}
  namespaces: [{name: shop, labels: {istio-injection: enabled}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	got := injectTogether(t, policy, workloads)
	injected := 0
	for from := 0; from < len(workloads); from += few {
		part := workloads[from:min(from+few, len(workloads))]
		for i, want := range injectTogether(t, policy, part) {
			if got[from+i] != want {
				t.Errorf("workload %d, %s: among many it becomes\n%s\namong few\n%s", from+i, part[i], got[from+i], want)
			}
			if strings.Contains(want, "\ninjected ") {
				injected++
			}
		}
	}
	if injected < len(workloads)/2 {
		t.Errorf("%d of %d workloads are injected, which compares little", injected, len(workloads))
	}
}
