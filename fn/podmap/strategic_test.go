// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// podMaker makes pods and patches of few names and values, so that most of what a patch names exists.
type podMaker struct {
	*rand.Rand
	// directs is how many of a hundred maps and lists of a patch have a directive, and blunders how many elements are not as they must be.
	directs, blunders int
}

func (m podMaker) chance(percent int) bool { return m.IntN(100) < percent }

func pick[T any](m podMaker, of ...T) T { return of[m.IntN(len(of))] }

// fill adds fields, each of them as often as not.
func (m podMaker) fill(obj map[string]any, fields map[string]func() any) map[string]any {
	for _, key := range SortedKeys(fields) {
		if m.chance(50) {
			obj[key] = fields[key]()
		}
		if m.directs > 0 && m.chance(10) {
			obj[key] = nil
		}
	}
	if m.chance(m.directs) {
		obj["$patch"] = pick(m, "replace", "delete", "merge", "other")
	}
	if m.chance(m.directs) {
		var keys []any
		for _, key := range SortedKeys(fields) {
			if m.chance(90) {
				keys = append(keys, key)
			}
		}
		obj["$retainKeys"] = append(keys, "name", "mountPath", "containerPort")
	}
	return obj
}

// list returns up to four elements of different ids.
func (m podMaker) list(key string, ids []any, element func(map[string]any)) []any {
	out := []any{}
	for _, i := range m.Perm(len(ids))[:m.IntN(len(ids)+1)] {
		e := map[string]any{key: ids[i]}
		element(e)
		if m.chance(m.blunders) {
			delete(e, key)
		}
		out = append(out, e)
	}
	if m.chance(m.blunders) {
		out = append(out, pick[any](m, nil, "text", map[string]any{}, []any{}))
	}
	if len(out) > 0 && m.chance(m.blunders) {
		out = append(out, CopyValue(out[0]))
	}
	return out
}

// order adds orders and deletions to a patch with lists.
func (m podMaker) order(patch map[string]any, lists map[string]string) {
	for _, key := range SortedKeys(lists) {
		if m.chance(m.directs) {
			list, _ := patch[key].([]any)
			var order []any
			for _, e := range list {
				if sub, ok := e.(map[string]any); ok && lists[key] != "" {
					e = map[string]any{lists[key]: sub[lists[key]]}
				}
				if m.chance(98) {
					order = append(order, e)
				}
			}
			if lists[key] == "name" && m.chance(50) {
				order = append(order, map[string]any{"name": pick(m, "a", "b", "z")})
			}
			patch["$setElementOrder/"+key] = order
		}
		// With a list and deletions of it, Kubernetes' result depends on the order of a Go map.
		if _, changes := patch[key]; !changes && m.chance(m.directs/2) {
			patch["$deleteFromPrimitiveList/"+key] = []any{pick(m, "a", "b", "z")}
		}
	}
}

func (m podMaker) container(e map[string]any) {
	text := func() any { return pick[any](m, "x", "y", "") }
	m.fill(e, map[string]func() any{
		"image": text,
		"args":  func() any { return pick(m, []any{}, []any{"a"}, []any{"b", "a"}) },
		"env": func() any {
			return m.list("name", []any{"A", "B", "C"}, func(e map[string]any) { m.fill(e, map[string]func() any{"value": text}) })
		},
		"ports": func() any {
			return m.list("containerPort", []any{int64(80), int64(443), int64(9)}, func(e map[string]any) { m.fill(e, map[string]func() any{"name": text}) })
		},
		"volumeMounts": func() any {
			return m.list("mountPath", []any{"/a", "/b"}, func(e map[string]any) { e["name"] = text() })
		},
		"securityContext": func() any {
			return m.fill(map[string]any{}, map[string]func() any{
				"runAsUser":    func() any { return int64(m.IntN(2)) },
				"capabilities": func() any { return map[string]any{"drop": []any{"ALL"}} },
			})
		},
	})
	m.order(e, map[string]string{"env": "name", "ports": "containerPort", "args": ""})
}

func (m podMaker) pod() map[string]any {
	names := []any{"a", "b", "c", "d"}
	spec := m.fill(map[string]any{}, map[string]func() any{
		"containers":     func() any { return m.list("name", names, m.container) },
		"initContainers": func() any { return m.list("name", names, m.container) },
		"volumes": func() any {
			return m.list("name", names, func(e map[string]any) {
				m.fill(e, map[string]func() any{
					"emptyDir":  func() any { return map[string]any{} },
					"configMap": func() any { return map[string]any{"name": pick(m, "x", "y")} },
				})
			})
		},
		"imagePullSecrets": func() any { return m.list("name", names, func(map[string]any) {}) },
		"tolerations":      func() any { return m.list("key", names[:2], func(map[string]any) {}) },
		"hostNetwork":      func() any { return pick[any](m, true, false, "true") },
	})
	m.order(spec, map[string]string{"containers": "name", "initContainers": "name", "volumes": "name", "imagePullSecrets": "name", "tolerations": ""})
	metadata := m.fill(map[string]any{}, map[string]func() any{
		"labels": func() any {
			return m.fill(map[string]any{}, map[string]func() any{"a": func() any { return "x" }, "b": func() any { return "y" }})
		},
		"annotations": func() any { return pick[any](m, map[string]any{}, map[string]any{"a": "b"}, nil) },
		"finalizers":  func() any { return pick(m, []any{}, []any{"a"}, []any{"b", "a"}, []any{"c", "a", "b"}) },
	})
	m.order(metadata, map[string]string{"finalizers": ""})
	return map[string]any{"metadata": metadata, "spec": spec}
}

// kubernetesSchema is the schema of Kubernetes' own library, made from its types.
func kubernetesSchema(t *testing.T) strategicpatch.LookupPatchMeta {
	t.Helper()
	s, err := strategicpatch.NewPatchMetaFromStruct(corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recovered returns the panic of a function as an error.
func recovered(f func() (map[string]any, error)) (out map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

func printed(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMergeEqualsKubernetes(t *testing.T) {
	t.Parallel()
	schema := kubernetesSchema(t)
	failed, merged := 0, 0
	for seed := range uint64(4_000) {
		m := podMaker{Rand: rand.New(rand.NewPCG(seed, 1))}
		m.blunders = pick(m, 0, 0, 1)
		obj := m.pod()
		m.directs = pick(m, 0, 2, 10)
		patch := m.pod()
		want, wantErr := recovered(func() (map[string]any, error) {
			return strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(CopyMap(obj), CopyMap(patch), schema)
		})
		got, err := strategicMerge(CopyMap(obj), CopyMap(patch), PodSchema())
		switch {
		case (err == nil) != (wantErr == nil):
			t.Fatalf("seed %d: got error %v, want %v\nobject: %s\npatch: %s", seed, err, wantErr, printed(t, obj), printed(t, patch))
		case err != nil:
			failed++
		case !reflect.DeepEqual(got, want):
			t.Fatalf("seed %d: got %s\nwant %s\nobject: %s\npatch: %s", seed, printed(t, got), printed(t, want), printed(t, obj), printed(t, patch))
		default:
			merged++
		}
	}
	if failed < 200 || merged < 200 {
		t.Errorf("%d merges failed and %d did not, want at least 200 of each", failed, merged)
	}
}

// dropNeedlessOrder drops the order that the library writes for equal scalars: it sorts one of the two lists before it compares them.
func dropNeedlessOrder(patch, from, to map[string]any) {
	const field = "finalizers"
	was, want := from["metadata"].(map[string]any)[field], to["metadata"].(map[string]any)[field]
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok || !reflect.DeepEqual(was, want) {
		return
	}
	delete(metadata, orderPrefix+"/"+field)
	if len(metadata) == 0 {
		delete(patch, "metadata")
	}
}

func TestDiffEqualsKubernetes(t *testing.T) {
	t.Parallel()
	schema := kubernetesSchema(t)
	failed, made := 0, 0
	for seed := range uint64(4_000) {
		m := podMaker{Rand: rand.New(rand.NewPCG(seed, 2))}
		m.blunders = pick(m, 0, 0, 1)
		from, to := m.pod(), m.pod()
		want, wantErr := recovered(func() (map[string]any, error) {
			return strategicpatch.CreateTwoWayMergeMapPatchUsingLookupPatchMeta(CopyMap(from), CopyMap(to), schema)
		})
		dropNeedlessOrder(want, from, to)
		got, err := diffMaps(PodSchema(), CopyMap(from), CopyMap(to), false)
		switch {
		case (err == nil) != (wantErr == nil):
			t.Fatalf("seed %d: got error %v, want %v\nfrom: %s\nto: %s", seed, err, wantErr, printed(t, from), printed(t, to))
		case err != nil:
			failed++
		case !reflect.DeepEqual(got, want):
			t.Fatalf("seed %d: got %s\nwant %s\nfrom: %s\nto: %s", seed, printed(t, got), printed(t, want), printed(t, from), printed(t, to))
		default:
			made++
		}
	}
	if failed < 20 || made < 200 {
		t.Errorf("%d comparisons failed and %d did not, want at least 20 and 200", failed, made)
	}
}
