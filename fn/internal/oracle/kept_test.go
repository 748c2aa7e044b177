// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// immutablePart is what the API server does not let change of a Job or a Pod, written down apart from the engine: ValidateJobSpecUpdate
// and ValidatePodUpdate of Kubernetes.
func immutablePart(obj map[string]any) any {
	spec, _ := obj["spec"].(map[string]any)
	if obj["kind"] == "Job" {
		return []any{spec["template"], spec["selector"], spec["completions"], spec["completionMode"], spec["podFailurePolicy"]}
	}
	out := map[string]any{}
	for key, value := range spec {
		switch key {
		case "activeDeadlineSeconds", "tolerations":
			continue
		case "containers", "initContainers":
			var list []any
			for _, item := range value.([]any) {
				c := map[string]any{}
				for k, v := range item.(map[string]any) {
					if k != "image" {
						c[k] = v
					}
				}
				list = append(list, c)
			}
			value = list
		}
		out[key] = value
	}
	return out
}

func meshOf(t *testing.T, tag string) *fn.Injector {
	t.Helper()
	p := &v1alpha1.InjectionPolicy{Spec: v1alpha1.InjectionPolicySpec{Istio: &v1alpha1.Istio{Injector: v1alpha1.Injector{
		BuiltIn: "istio", Overrides: map[string]any{"global": map[string]any{"tag": tag, "logAsJson": tag != "1.31.1"}},
	}}}}
	p.SetDefaults()
	in, err := fn.New([]*v1alpha1.InjectionPolicy{p})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// TestUpgradeOfAnyJobOrPodIsAnUpdate upgrades the mesh under workloads that are made up: no Job or bare Pod that has a name changes in what
// the API server does not let change, in place and from its source with what is published known.
func TestUpgradeOfAnyJobOrPodIsAnUpdate(t *testing.T) {
	t.Parallel()
	const seed, count = 20261127, 900
	old, next := meshOf(t, "1.31.1"), meshOf(t, "1.31.2")
	upgraded := 0
	for number := range count {
		workload := Generate(seed, "default", number)
		meta, _ := workload["metadata"].(map[string]any)
		if kind := workload["kind"]; kind != "Job" && kind != "Pod" || meta["name"] == nil {
			continue
		}
		source, err := itemOf(workload, 0)
		if err != nil {
			t.Fatal(err)
		}
		first, err := old.WithPublished(nil).Run(t.Context(), []fn.Item{source})
		if err != nil {
			t.Fatal(err)
		}
		if first.Failed() || first.Outcomes[0].Action != fn.Injected {
			continue
		}
		upgraded++
		published := first.Items[0]
		for way, run := range map[string]func() (*fn.Report, error){
			"in place": func() (*fn.Report, error) { return next.Run(t.Context(), []fn.Item{published}) },
			"published": func() (*fn.Report, error) {
				return next.WithPublished([]*manifest.Document{published.Doc}).Run(t.Context(), []fn.Item{source})
			},
		} {
			second, err := run()
			if err != nil || second.Failed() {
				t.Fatalf("case %d %s: %v %v", number, way, err, second)
			}
			before, err := published.Doc.Object()
			if err != nil {
				t.Fatal(err)
			}
			after, err := second.Items[0].Doc.Object()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(immutablePart(before), immutablePart(after)); diff != "" {
				t.Errorf("case %d, %s %v, %s: %s\n%v", number, workload["kind"], meta["name"], way, diff, second.Results)
			}
		}
	}
	t.Logf("%d Jobs and Pods were upgraded", upgraded)
	if upgraded < 100 {
		t.Errorf("only %d were upgraded", upgraded)
	}
}
