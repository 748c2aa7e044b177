// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// FuzzIstio injects any pod, and wants no panic, the request unchanged, the same result twice, and a second injection that
// changes nothing.
func FuzzIstio(f *testing.F) {
	pods, err := filepath.Glob(filepath.Join("testdata", "merge", "*", "pod.yaml"))
	if err != nil || len(pods) == 0 {
		f.Fatalf("there are no pods to begin with: %v", err)
	}
	for _, p := range pods {
		text, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	type injector struct {
		name string
		in   *istio.Injector
		req  Request
	}
	var injectors []injector
	for _, name := range []string{"plain", "native", "own-user-validation", "probes-1.31", "status-1.10"} {
		in, req := loadMerge(f, filepath.Join("testdata", "merge", name))
		injectors = append(injectors, injector{name, in, req})
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := manifest.Decode([]byte(text))
		if err != nil {
			return
		}
		pod, ok := v.(map[string]any)
		if !ok {
			return
		}
		for _, i := range injectors {
			in, req := i.in, i.req
			req.Pod = pod
			before := podmap.CopyMap(pod)
			once, err := Istio(in, req)
			if !reflect.DeepEqual(before, pod) {
				t.Fatalf("%s: the request has been changed:\n%s", i.name, cmp.Diff(before, pod))
			}
			if err != nil {
				continue
			}
			same, err := Istio(in, req)
			if err != nil || !reflect.DeepEqual(once.Pod, same.Pod) {
				t.Fatalf("%s: another run gives another pod, %v:\n%s", i.name, err, cmp.Diff(once.Pod, same.Pod))
			}
			// A null of the user's own proxy is kept as what it stands for, such as a quantity of 0.
			if _, had := stringIn(mapIn(pod, "metadata")["annotations"], statusAnnotation); had || holdsNull(pod) {
				continue
			}
			req.Pod = once.Pod
			twice, err := Istio(in, req)
			if err != nil {
				t.Fatalf("%s: injecting again: %v", i.name, err)
			}
			if !reflect.DeepEqual(once.Pod, twice.Pod) {
				t.Fatalf("%s: injecting again changes it:\n%s", i.name, cmp.Diff(once.Pod, twice.Pod))
			}
		}
	})
}

func holdsNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if holdsNull(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, holdsNull)
	}
	return false
}

func mapIn(m map[string]any, key string) map[string]any {
	sub, _ := m[key].(map[string]any)
	return sub
}

// FuzzOverlay merges any patch into any pod, and wants what Kubernetes' own merge by Go types gives.
func FuzzOverlay(f *testing.F) {
	f.Add("spec: {containers: [{name: a, env: [{name: X, value: y}]}]}", "spec: {containers: [{name: b}, {name: a, env: [{name: Z, value: z}]}]}")
	f.Add("metadata: {labels: {a: b}}\nspec: {volumes: [{name: v, emptyDir: {}}]}", "metadata: {labels: {a: null, c: d}}\nspec: {volumes: [{name: v, emptyDir: null}, {name: w, emptyDir: null}]}")
	f.Add("spec: {tolerations: [{key: a}], nodeSelector: {a: b}}", "spec: {tolerations: [], nodeSelector: {$patch: replace}}")
	f.Add("spec: {containers: [{name: a, ports: [{containerPort: 80}]}]}", "spec: {containers: [{name: a, ports: [{containerPort: 81, name: x}]}, {name: c, $patch: delete}]}")
	f.Fuzz(func(t *testing.T, podText, patchText string) {
		obj, patch := decodeMap(podText), decodeMap(patchText)
		if obj == nil || patch == nil {
			return
		}
		p, err := newPod(obj)
		if err != nil {
			return
		}
		if _, err := p.decodeTypedPod(); err != nil {
			return
		}
		plain := map[string]any{"metadata": podmap.CopyMap(p.meta), "spec": podmap.CopyMap(p.spec)}
		if podmap.FitPatch(podmap.PodSchema(), podmap.CopyMap(patch)) != nil {
			return
		}
		want, wantErr := strategicpatch.StrategicMergeMapPatch(plain, podmap.CopyMap(patch), corev1.Pod{})
		ours := podmap.CopyMap(patch)
		if err := podmap.FitPatch(podmap.PodSchema(), ours); err != nil {
			return
		}
		gotErr := p.applyStrategicMerge(ours)
		if wantErr != nil || gotErr != nil {
			return // a field that Kubernetes' types do not know is an error there and not here
		}
		wanted := &pod{}
		wanted.meta, _ = want["metadata"].(map[string]any)
		wanted.spec, _ = want["spec"].(map[string]any)
		a, errA := p.decodeTypedPod()
		b, errB := wanted.decodeTypedPod()
		if errA != nil || errB != nil {
			return
		}
		if x, y := normal(t, b), normal(t, a); !reflect.DeepEqual(x, y) {
			t.Fatalf("-Kubernetes +here:\n%s", cmp.Diff(x, y))
		}
	})
}

func decodeMap(text string) map[string]any {
	v, err := manifest.Decode([]byte(text))
	if err != nil {
		return nil
	}
	m, _ := v.(map[string]any)
	return m
}

// normal is a pod as its JSON says, which does not tell empty lists from none.
func normal(t *testing.T, p *corev1.Pod) any {
	t.Helper()
	out, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatal(err)
	}
	return withoutEmptyLists(v)
}

func withoutEmptyLists(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if e = withoutEmptyLists(e); e != nil {
				out[k] = e
			}
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = withoutEmptyLists(e)
		}
		return out
	default:
		return v
	}
}
