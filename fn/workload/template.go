// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
)

// annotationLocalConfig marks an object that tools keep to themselves and never apply to a cluster.
const annotationLocalConfig = "config.kubernetes.io/local-config"

// Template is a pod template inside an object.
type Template struct {
	// Path is where the template is: map keys (string) and list indexes (int). It is empty for a pod, which is the
	// object itself.
	Path []any
	// Field is Path for messages: "spec.template", and "" for a pod.
	Field string
	// Pod has the keys metadata and spec, both always present, with the values of the object, which it shares: do
	// not change them in place. The template of a workload has no name here, and a namespace only if the manifest
	// has one in the template; the workload's is in Owner.
	Pod map[string]any
	// Owner is what the webhook finds to be the controller of the pods on a current cluster; see OwnerFor for older
	// versions of Istio.
	Owner Owner
	// Declared is the object with the apiVersion of its manifest: what istioctl kube-inject uses as the owner.
	Declared Owner
	// job is Owner before it was guessed whether a Job belongs to a CronJob.
	job Owner
	// NameGenerated reports that the workload has no name but a generateName, so that Owner.Name is only a prefix.
	NameGenerated bool
}

// Templates returns the pod templates of an object, usually one. It returns none for an object that holds no
// template and for one that is not meant for a cluster (config.kubernetes.io/local-config: "true"). A template that
// is missing or malformed is a *FieldError that names the field, and one that is in another object an
// *ElsewhereError.
func (r *Registry) Templates(obj map[string]any) ([]Template, error) {
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	k, ok := r.Lookup(apiVersion, kind)
	if !ok {
		return nil, nil
	}
	meta, err := mapAt(obj, "metadata")
	if err != nil {
		return nil, err
	}
	if annotations, ok := meta["annotations"].(map[string]any); ok && annotations[annotationLocalConfig] == "true" {
		return nil, nil
	}
	declared := Owner{APIVersion: apiVersion, Kind: kind}
	declared.Name, _ = meta["name"].(string)
	declared.Namespace, _ = meta["namespace"].(string)

	var out []Template
	for _, p := range k.Paths {
		if err := p.elsewhereError(obj); err != nil {
			return nil, err
		}
		places, err := p.findMatches(obj)
		if err != nil {
			return nil, err
		}
		for _, f := range places {
			t := Template{Path: f.at, Field: FieldString(f.at), Declared: declared}
			if t.Pod, err = podOf(f.at, f.value); err != nil {
				return nil, err
			}
			t.setOwners(k.owner, meta, f.key)
			out = append(out, t)
		}
	}
	return out, nil
}

// elsewhereError is an *ElsewhereError if the object names another one that has the template and holds none itself.
func (p Path) elsewhereError(obj map[string]any) error {
	if p.elsewhere == "" {
		return nil
	}
	ref, ok := valueAt(obj, p.elsewhere).(map[string]any)
	if !ok || valueAt(obj, p.String()) != nil {
		return nil
	}
	e := &ElsewhereError{Field: p.elsewhere}
	e.APIVersion, _ = ref["apiVersion"].(string)
	e.Kind, _ = ref["kind"].(string)
	e.Name, _ = ref["name"].(string)
	return e
}

// valueAt returns the value at a plain path, or nil.
func valueAt(obj map[string]any, at string) any {
	p, err := ParsePath(at)
	if err != nil {
		return nil
	}
	p.Optional = true
	places, err := p.findMatches(obj)
	if err != nil || len(places) != 1 {
		return nil
	}
	return places[0].value
}

// podOf reads metadata and spec of a template.
func podOf(at []any, v any) (map[string]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, wrongType(at, v, "a pod template, which is a map")
	}
	pod := map[string]any{"metadata": map[string]any{}}
	switch meta := m["metadata"].(type) {
	case nil:
	case map[string]any:
		pod["metadata"] = meta
	default:
		return nil, wrongType(childPath(at, "metadata"), meta, "a map")
	}
	switch spec := m["spec"].(type) {
	case nil:
		if len(at) > 0 {
			return nil, &FieldError{Field: FieldString(childPath(at, "spec")), Err: errMissing}
		}
		pod["spec"] = map[string]any{} // The webhook accepts a pod without one.
	case map[string]any:
		pod["spec"] = spec
	default:
		return nil, wrongType(childPath(at, "spec"), spec, "a map")
	}
	return pod, nil
}

// mapAt returns the map under a key, or an empty one if the key is absent.
func mapAt(obj map[string]any, key string) (map[string]any, error) {
	switch v := obj[key].(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	default:
		return nil, wrongType([]any{key}, v, "a map")
	}
}

// Write returns a copy of the object that has this pod's metadata and spec at the template's place. Unchanged parts
// are shared with obj, and obj itself is not modified. Other keys beside metadata and spec are kept. An empty
// metadata or spec is not added.
func (t Template) Write(obj map[string]any, pod map[string]any) map[string]any {
	out, _ := replaceAt(obj, t.Path, pod).(map[string]any)
	return out
}

func replaceAt(v any, at []any, pod map[string]any) any {
	if len(at) == 0 {
		return mergeMaps(v, pod)
	}
	switch e := at[0].(type) {
	case string:
		m, _ := v.(map[string]any)
		m = maps.Clone(m)
		if m == nil {
			m = map[string]any{}
		}
		m[e] = replaceAt(m[e], at[1:], pod)
		return m
	case int:
		l, _ := v.([]any)
		l = append([]any(nil), l...)
		if e < len(l) {
			l[e] = replaceAt(l[e], at[1:], pod)
		}
		return l
	}
	return v
}

func mergeMaps(v any, pod map[string]any) map[string]any {
	old, _ := v.(map[string]any)
	m := maps.Clone(old)
	if m == nil {
		m = map[string]any{}
	}
	for _, key := range []string{"metadata", "spec"} {
		value, ok := pod[key]
		if !ok {
			continue
		}
		if empty, isMap := value.(map[string]any); isMap && len(empty) == 0 {
			// Metadata that becomes empty is removed: only its content justified it. A pod keeps its spec.
			was, isMap := old[key].(map[string]any)
			if key == "metadata" && isMap && len(was) > 0 {
				delete(m, key)
			}
			if key == "metadata" || old[key] == nil {
				continue
			}
		}
		m[key] = value
	}
	return m
}

// Labels returns the labels of a pod, or of any object with metadata. A value that is not a string, such as an unquoted
// number, is a *FieldError: the API server would refuse it.
func Labels(obj map[string]any) (map[string]string, error) { return stringMap(obj, "labels") }

// Annotations returns the annotations of a pod, or of any object with metadata, and errors as Labels does.
func Annotations(obj map[string]any) (map[string]string, error) { return stringMap(obj, "annotations") }

func stringMap(obj map[string]any, key string) (map[string]string, error) {
	meta, err := mapAt(obj, "metadata")
	if err != nil {
		return nil, err
	}
	at := []any{"metadata", key}
	m, ok := meta[key].(map[string]any)
	if !ok {
		if meta[key] == nil {
			return nil, nil
		}
		return nil, wrongType(at, meta[key], "a map")
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		switch v := v.(type) {
		case string:
			out[k] = v
		case nil: // The API server reads null as the empty string.
			out[k] = ""
		default:
			return nil, &FieldError{Field: FieldString(childPath(at, k)), Err: fmt.Errorf("is %s, not a string; quote it", typeName(v))}
		}
	}
	return out, nil
}
