// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// ownField is a field that an injection sets, with the values that it was seen to have, by the policy.
type ownField struct {
	// path leads to it: keys of maps, and names of elements of lists.
	path   []string
	values map[string]any
}

// minimalPod has one of each thing that injection changes.
const minimalPod = `{"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1",
	"ports": [{"name": "http", "containerPort": 8080}], "readinessProbe": {"httpGet": {"path": "/", "port": 8080}}}]}}`

// injectedFields injects a minimal pod with every policy and collects the fields that change.
func injectedFields(t *testing.T, policies []matrixPolicy) []ownField {
	t.Helper()
	found := map[string]*ownField{}
	var bare map[string]any
	if err := json.Unmarshal([]byte(minimalPod), &bare); err != nil {
		t.Fatal(err)
	}
	for _, p := range policies {
		for _, extra := range []map[string]any{nil, {"inject.istio.io/templates": "gateway"}} {
			pod := workloadOf("Pod", bare)
			if extra != nil {
				pod = workloadOf("Pod", withField(bare, []string{"metadata", "annotations"}, extra))
			}
			results, docs := runAll(t, p.policy, v1alpha1.ModeInject, []*manifest.Document{pod})
			if len(results[0].errors) > 0 {
				continue
			}
			after, err := docs[0].Object()
			if err != nil {
				t.Fatal(err)
			}
			collect(found, p.name, nil, bare, after)
		}
	}
	var out []ownField
	for _, key := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[key])
	}
	return out
}

// collect notes the fields that an injection has set: annotations, labels and fields of the spec, and elements of its lists.
func collect(found map[string]*ownField, policy string, path []string, before, after map[string]any) {
	note := func(path []string, v any) {
		key := strings.Join(path, "\x00")
		if found[key] == nil {
			found[key] = &ownField{path: path, values: map[string]any{}}
		}
		found[key].values[policy] = v
	}
	for name, v := range after {
		at := append(slices.Clone(path), name)
		was, there := before[name]
		if reflect.DeepEqual(v, was) || slices.Contains([]string{"apiVersion", "kind"}, name) && len(path) == 0 {
			continue
		}
		list, _ := v.([]any)
		switch {
		case list != nil:
			for _, e := range list {
				element, _ := e.(map[string]any)
				switch own, _ := element["name"].(string); own {
				case "":
				case "web":
					old, _ := was.([]any)
					web, _ := old[0].(map[string]any)
					for field, v := range element {
						if !reflect.DeepEqual(v, web[field]) {
							note(append(slices.Clone(at), own, field), v)
						}
					}
				default:
					note(append(slices.Clone(at), own), e)
				}
			}
			if !isContainers(name) {
				note(at, v)
			}
		case len(path) < 2 && isMap(v):
			inner, _ := was.(map[string]any)
			collect(found, policy, at, inner, v.(map[string]any))
			if len(path) == 1 && !there {
				whole := maps.Clone(v.(map[string]any)) // a whole status would be that of an injection
				delete(whole, "sidecar.istio.io/status")
				note(at, whole)
			}
		default:
			note(at, v)
		}
	}
}

func isMap(v any) bool { _, ok := v.(map[string]any); return ok }

// withField returns a copy of a pod with a value at a path. A key below a list is the name of an element.
func withField(pod map[string]any, path []string, v any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, pod)
	key := path[0]
	list, isList := out[key].([]any)
	switch {
	case len(path) == 1 && isList && len(list) > 0:
		more, _ := v.([]any)
		out[key] = append(slices.Clone(list), more...)
	case len(path) == 1:
		out[key] = v
	case isListOfNames(key):
		out[key] = withElement(list, path[1:], v)
	default:
		inner, _ := out[key].(map[string]any)
		out[key] = withField(inner, path[1:], v)
	}
	return out
}

// withElement returns a copy of a list with a further element, or with a field of one that is there.
func withElement(list []any, path []string, v any) []any {
	out := slices.Clone(list)
	for i, e := range out {
		if m, _ := e.(map[string]any); len(path) > 1 && m["name"] == path[0] {
			out[i] = withField(m, path[1:], v)
			return out
		}
	}
	return append(out, v)
}

func isListOfNames(key string) bool {
	return slices.Contains([]string{"containers", "initContainers", "volumes", "imagePullSecrets"}, key)
}

// variants are the values that a field has in the pod beforehand.
func (f *ownField) variants(policy string) map[string]any {
	same, ok := f.values[policy]
	if !ok {
		same = f.values[slices.Min(slices.Collect(maps.Keys(f.values)))]
	}
	out := map[string]any{"same": same}
	switch v := same.(type) {
	case string:
		out["another"], out["empty"] = "own", ""
	case map[string]any:
		if name, ok := v["name"]; ok && len(f.path) > 2 {
			out["another"], out["empty"] = map[string]any{"name": name, "own": "x"}, map[string]any{"name": name}
			if isContainers(f.path[1]) {
				out["another"] = map[string]any{"name": name, "image": "auto", "env": []any{map[string]any{"name": "OWN", "value": "x"}}}
				out["empty"] = map[string]any{"name": name, "image": "auto"}
			} else if f.path[1] == "volumes" {
				out["another"] = map[string]any{"name": name, "hostPath": map[string]any{"path": "/own"}}
			}
		} else {
			out["empty"] = map[string]any{}
		}
	case []any:
		out["empty"] = []any{}
	case int64, float64:
		out["another"], out["empty"] = int64(5), nil
	}
	return out
}

func isContainers(key string) bool { return key == "containers" || key == "initContainers" }

// workloadOf writes a pod as a document: a Pod, or a Deployment of it.
func workloadOf(kind string, pod map[string]any) *manifest.Document {
	obj := map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "template": pod}}
	if kind == "Pod" {
		obj = maps.Clone(pod)
		meta := map[string]any{"name": "web", "namespace": "shop"}
		inner, _ := pod["metadata"].(map[string]any)
		maps.Copy(meta, inner)
		obj["apiVersion"], obj["kind"], obj["metadata"] = "v1", kind, meta
	}
	f, err := manifest.Parse("", manifest.Marshal(obj))
	if err != nil || len(f.Docs) != 1 {
		panic(fmt.Sprint("writing a test's workload: ", err))
	}
	return f.Docs[0]
}
