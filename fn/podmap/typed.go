// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// TypedContainer returns a container as Kubernetes' Go type.
func TypedContainer(c map[string]any) (*corev1.Container, error) {
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
	if SchemaOf(target.Type()).assign(value, target) {
		return nil
	}
	target.SetZero()
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, out)
}

// WrongType returns the first field, in order of the names, that does not have the type that Kubernetes wants.
func WrongType(s *Schema, v any, path string) *FieldError {
	if !s.Accepts(v) {
		return &FieldError{Field: path, Err: s.typeError(v)}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range SortedKeys(v) {
			next, at := s.Elem, fmt.Sprintf("%s[%s]", path, key)
			if s.Kind == StructKind {
				f := s.Field(key)
				if f == nil {
					continue
				}
				next, at = f.Schema, strings.TrimPrefix(path+"."+key, ".")
			}
			if next == nil {
				continue
			}
			if err := WrongType(next, v[key], at); err != nil {
				return err
			}
		}
	case []any:
		for i, e := range v {
			if s.Elem == nil {
				break
			}
			if err := WrongType(s.Elem, e, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}
