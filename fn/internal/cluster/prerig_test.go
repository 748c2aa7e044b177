// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/fn/internal/oracle"
)

// TestInjectEachIsInject gives workloads to the program together and one by one: those that have a name, those that have none, and those
// that it refuses.
func TestInjectEachIsInject(t *testing.T) {
	p := &Prerig{Program: builtPrerig(t), Policy: filepath.Join(t.TempDir(), "prerig.yaml")}
	const policy = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: mesh}
spec: {istio: {injector: {builtIn: istio}}, unknownNamespace: Inject}
`
	if err := os.WriteFile(p.Policy, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	var workloads []*unstructured.Unstructured
	for i := range 130 {
		text, err := json.Marshal(oracle.Generate(3, "default", i))
		if err != nil {
			t.Fatal(err)
		}
		w := object(nil)
		if err := w.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		workloads = append(workloads, w)
	}
	began := time.Now()
	outs, refused, err := p.InjectEach(t.Context(), workloads)
	if err != nil {
		t.Fatal(err)
	}
	together, began := time.Since(began), time.Now()
	injected, refusals, unnamed := 0, 0, 0
	for i, w := range workloads {
		out, why, err := p.Inject(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if (out == nil) != (outs[i] == nil) || why != refused[i] {
			t.Errorf("%s %s: together it is refused with %q, alone with %q", w.GetKind(), w.GetName(), refused[i], why)
			continue
		}
		if out == nil {
			refusals++
			continue
		}
		if d := cmp.Diff(out.Object, outs[i].Object); d != "" {
			t.Errorf("%s %s (-alone +together):\n%s", w.GetKind(), w.GetName(), d)
		}
		if injectedInto(out) {
			injected++
		}
		if w.GetName() == "" {
			unnamed++
		}
	}
	t.Logf("%d workloads took %s together, and %s one by one", len(workloads), together, time.Since(began))
	if injected == 0 || refusals == 0 || unnamed == 0 {
		t.Errorf("%d are injected, %d refused and %d have no name", injected, refusals, unnamed)
	}
}
