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

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/quantity"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// TypedContainer returns a container as Kubernetes' Go type.
func TypedContainer(c map[string]any) (*corev1.Container, error) {
	out := &corev1.Container{}
	if err := decodeInto(c, out); err != nil {
		return nil, fmt.Errorf("reading the container %v: %w", c["name"], err)
	}
	return out, nil
}

// decodeInto decodes a value into a Go type as the API server does, with the result and the errors of JSON. What
// assign does not handle is converted by way of JSON. The converter of apimachinery would do the same, but its
// result depends on an environment variable (KUBE_PATCH_CONVERSION_DETECTOR).
func decodeInto[T any](value map[string]any, out *T) error {
	target := reflect.ValueOf(out).Elem()
	if SchemaOf(target.Type()).assignDecodedValue(value, target) {
		return nil
	}
	target.SetZero()
	if err := CheckQuantities(value, out); err != nil {
		return err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, out)
}

// WrongType returns the first field, in order of the names, that does not have the type that Kubernetes wants.
func WrongType(s *Schema, v any, path string) *FieldError {
	return firstProblem(s, v, path, func(s *Schema, v any) error {
		if s.Accepts(v) {
			return nil
		}
		return s.typeError(v)
	})
}

// CheckQuantities returns an error about the first quantity of an object that Kubernetes would read into a Go type, a
// pointer to a struct, for minutes.
func CheckQuantities(object map[string]any, into any) error {
	if at := unboundedQuantity(SchemaOf(reflect.TypeOf(into).Elem()), object); at != nil {
		return at
	}
	return nil
}

// unboundedQuantity returns the first quantity that Kubernetes' own types would read for minutes.
func unboundedQuantity(s *Schema, v any) *FieldError {
	return firstProblem(s, v, "", func(s *Schema, v any) error {
		text, ok := v.(string)
		if !ok || s.TypeName != "Quantity" || quantity.IsBounded(text) {
			return nil
		}
		return fmt.Errorf("the exponent of %s is too large", foreign.Quote(text))
	})
}

// wrongQuantity returns the first field that has to be a quantity and cannot be read as one, such as a placeholder.
func wrongQuantity(s *Schema, v any) *FieldError {
	return firstProblem(s, v, "", func(s *Schema, v any) error {
		text, ok := v.(string)
		if !ok || s.TypeName != "Quantity" {
			return nil
		}
		if _, err := quantity.Parse(text); err != nil {
			return fmt.Errorf("%s is not a quantity such as 100m or 128Mi", foreign.Quote(text))
		}
		return nil
	})
}

// Unfilled returns the first field whose value is a text with a placeholder, where Kubernetes wants another type or a
// quantity. Its error names what a later step fills in.
func Unfilled(s *Schema, v any) *FieldError {
	return firstProblem(s, v, "", func(s *Schema, v any) error {
		text, ok := v.(string)
		if !ok || !HasPlaceholder(text) || s.Accepts(v) && s.TypeName != "Quantity" {
			return nil
		}
		return fmt.Errorf("%s is filled in by a later build", foreign.Quote(text))
	})
}

var placeholder = lazyregexp.New(`\$\{[^{}\n]+\}|\$\([\w.-]+\)|\$[A-Za-z_]|<[A-Za-z_][\w .:/#|-]*>|\{\{.*\}\}|@\w+@|%\w+%|__[A-Z][A-Z0-9_]*__`)

// HasPlaceholder reports whether a text has what other tools replace: ${X} of Flux and envsubst, $(X) of kustomize's
// vars, <X>, <path:X#y> of Argo CD's Vault plugin, __X__ and the like.
func HasPlaceholder(text string) bool {
	return (strings.ContainsAny(text, "$<{@%") || strings.Contains(text, "__")) && placeholder.MatchString(text)
}

// firstProblem walks over a value, in order of the names, and returns the first field that has a problem.
func firstProblem(s *Schema, v any, path string, problem func(*Schema, any) error) *FieldError {
	found := problemBelow(s, v, problem)
	if found != nil {
		found.Field = joinFields(path, found.Field)
	}
	return found
}

// problemBelow is firstProblem with the path below the value, which is made only if there is a problem.
func problemBelow(s *Schema, v any, problem func(*Schema, any) error) *FieldError {
	if err := problem(s, v); err != nil {
		return &FieldError{Err: err}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range SortedKeys(v) {
			next := s.Elem
			if s.Kind == StructKind {
				f := s.Field(key)
				if f == nil {
					continue
				}
				next = f.Schema
			}
			if next == nil {
				continue
			}
			if found := problemBelow(next, v[key], problem); found != nil {
				if s.Kind != StructKind {
					key = "[" + key + "]"
				}
				found.Field = joinFields(key, found.Field)
				return found
			}
		}
	case []any:
		if s.Elem == nil {
			return nil
		}
		for i, e := range v {
			if found := problemBelow(s.Elem, e, problem); found != nil {
				found.Field = joinFields(fmt.Sprintf("[%d]", i), found.Field)
				return found
			}
		}
	}
	return nil
}

// joinFields joins the path of a field with the one below it.
func joinFields(path, below string) string {
	if path == "" || below == "" || strings.HasPrefix(below, "[") {
		return path + below
	}
	return path + "." + below
}
