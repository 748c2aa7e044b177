// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	batchv1 "k8s.io/api/batch/v1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	corev1 "k8s.io/api/core/v1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// scheme knows the API types that hold pods.
var scheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, appsv1beta1.AddToScheme, appsv1beta2.AddToScheme,
		batchv1.AddToScheme, batchv1beta1.AddToScheme, extensionsv1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
})

// diffObjectLists returns the difference of two lists of objects, without lists in them, as text, or "".
func diffObjectLists(got, want []map[string]any) (string, error) {
	if len(got) != len(want) {
		return fmt.Sprintf("%d objects, want %d", len(got), len(want)), nil
	}
	var out strings.Builder
	for i := range got {
		d, err := compareObject(got[i], want[i])
		if err != nil {
			return "", err
		}
		out.WriteString(d)
	}
	return out.String(), nil
}

// expandListItems puts the items of lists in place of the lists.
func expandListItems(objects []map[string]any) []map[string]any {
	var out []map[string]any
	for _, obj := range objects {
		items, ok := obj["items"].([]any)
		if obj["kind"] != "List" || !ok {
			out = append(out, obj)
			continue
		}
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				out = append(out, expandListItems([]map[string]any{m})...)
			}
		}
	}
	return out
}

func compareObject(got, want map[string]any) (string, error) {
	name := fmt.Sprintf("%v %v", want["kind"], nameOf(want))
	g, err := decodeTypedObject(got)
	if err != nil {
		return "", fmt.Errorf("decoding our %s: %w", name, err)
	}
	w, err := decodeTypedObject(want)
	if err != nil {
		return "", fmt.Errorf("decoding the expected %s: %w", name, err)
	}
	if equality.Semantic.DeepEqual(g, w) {
		return "", nil
	}
	d, err := lineDiff(w, g)
	return fmt.Sprintf("--- %s\n%s", name, d), err
}

func nameOf(obj map[string]any) any {
	meta, _ := obj["metadata"].(map[string]any)
	return meta["name"]
}

// decodeTypedObject returns the object in the API's type, or as a map without empty values if it has no type.
func decodeTypedObject(obj map[string]any) (any, error) {
	s, err := scheme()
	if err != nil {
		return nil, err
	}
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	typed, err := s.New(schema.FromAPIVersionAndKind(apiVersion, kind))
	if runtime.IsNotRegisteredError(err) {
		return decodeUnknown(obj)
	}
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, typed); err != nil {
		return nil, err
	}
	return typed, nil
}

// decodeUnknown returns an object of a kind without a type as a map, with its pod templates in the API's form.
func decodeUnknown(obj map[string]any) (any, error) {
	templates, err := templatesOf(obj)
	if err != nil {
		return nil, err
	}
	for _, t := range templates {
		var typed corev1.PodTemplateSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.Pod, &typed); err != nil {
			return nil, err
		}
		plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
		if err != nil {
			return nil, err
		}
		obj = t.Write(obj, plain)
	}
	return withoutEmpty(obj), nil
}

// withoutEmpty returns a value without null, false, 0, "", {} and [] at any depth: what a Go type would drop if one
// existed.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if e = withoutEmpty(e); e != nil {
				out[k] = e
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, withoutEmpty(e))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	case int64:
		if v == 0 {
			return nil
		}
	}
	return v
}

// lineDiff shows what differs, as lines of YAML.
func lineDiff(want, got any) (string, error) {
	w, err := yaml.Marshal(want)
	if err != nil {
		return "", err
	}
	g, err := yaml.Marshal(got)
	if err != nil {
		return "", err
	}
	return cmp.Diff(strings.Split(string(w), "\n"), strings.Split(string(g), "\n")), nil
}
