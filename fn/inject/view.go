// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// typed is the pod as Kubernetes' Go types, which templates read. Fields that the types do not have are not in it.
func (p *pod) typed() (*corev1.Pod, error) {
	out := &corev1.Pod{}
	obj := map[string]any{"metadata": p.meta, "spec": p.spec}
	if err := decodeInto(obj, out); err != nil {
		if at := wrongType(podSchema(), obj, ""); at != nil {
			return nil, at
		}
		return nil, fmt.Errorf("reading the pod: %w", err)
	}
	// A template that prints them tells a map without keys from none, and the API server has dropped it by then.
	for _, m := range []*map[string]string{&out.Labels, &out.Annotations, &out.Spec.NodeSelector} {
		if len(*m) == 0 {
			*m = nil
		}
	}
	return out, nil
}

// typedContainer is one container as Kubernetes' Go type.
func typedContainer(c map[string]any) (*corev1.Container, error) {
	out := &corev1.Container{}
	if err := decodeInto(c, out); err != nil {
		return nil, fmt.Errorf("reading the container %v: %w", c["name"], err)
	}
	return out, nil
}

// decodeInto reads a value into a Go type as the API server does, with the result and the errors of JSON. What assign does not
// read goes by way of JSON. The converter of apimachinery would do the same, but its result hangs on an environment variable
// (KUBE_PATCH_CONVERSION_DETECTOR).
func decodeInto[T any](value map[string]any, out *T) error {
	target := reflect.ValueOf(out).Elem()
	if schemaOf(target.Type()).assign(value, target) {
		return nil
	}
	target.SetZero()
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, out)
}

// wrongType finds the first field, in order of the names, that does not have the type that Kubernetes wants.
func wrongType(s *schema, v any, path string) *FieldError {
	if !s.accepts(v) {
		return &FieldError{Field: path, Err: s.typeError(v)}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedNames(v) {
			next, at := s.elem, fmt.Sprintf("%s[%s]", path, key)
			if s.kind == structKind {
				f := s.field(key)
				if f == nil {
					continue
				}
				next, at = f.schema, strings.TrimPrefix(path+"."+key, ".")
			}
			if next == nil {
				continue
			}
			if err := wrongType(next, v[key], at); err != nil {
				return err
			}
		}
	case []any:
		for i, e := range v {
			if s.elem == nil {
				break
			}
			if err := wrongType(s.elem, e, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}
