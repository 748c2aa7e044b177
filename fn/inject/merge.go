// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// directivePrefix begins the keys of a strategic merge patch that are instructions and not fields.
const directivePrefix = '$'

// patchDirective is the instruction that replaces or deletes what it stands in.
const patchDirective = "$patch"

// overlay merges a patch into the pod with Kubernetes' rules for pods. The pod and the patch are used up: both are changed.
func (p *pod) overlay(patch map[string]any) error {
	obj := map[string]any{"metadata": p.meta, "spec": p.spec}
	out, err := mergePatch(podSchema(), obj, patch)
	if err != nil {
		return err
	}
	p.meta, _ = out["metadata"].(map[string]any)
	p.spec, _ = out["spec"].(map[string]any)
	if p.meta == nil {
		p.meta = map[string]any{}
	}
	if p.spec == nil {
		return fmt.Errorf("merging: nothing is left of the pod's spec")
	}
	return nil
}

// mergePatch merges a patch into an object of the schema. Both are used up.
func mergePatch(s *schema, obj, patch map[string]any) (map[string]any, error) {
	var b besides
	b.dropNew(s, obj, patch)
	out, err := strategicMerge(obj, patch, s)
	if err != nil {
		return nil, err
	}
	b.dropEmpty()
	return out, nil
}

// strategicMerge merges with Kubernetes' rules. The library panics on lists with elements that are null or of another type
// than the first; for Kubernetes such a list is an error.
func strategicMerge(obj, patch map[string]any, s *schema) (out map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("merging: a list of the pod or of the template has an element that is null, or of another type than the others")
		}
	}()
	if out, err = strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(obj, patch, s); err != nil {
		return nil, fmt.Errorf("merging: %w", err)
	}
	return out, nil
}

// fitPatch checks that a patch has the types that Kubernetes wants, and takes out of it what would leave empty fields in the
// pod although it means nothing there: {} and [] where Kubernetes does not tell them from none. A list that the patch
// replaces with an empty one is deleted. The error is about the first field, in order of the names, that is wrong.
func fitPatch(s *schema, patch map[string]any) error {
	err := fit(s, patch)
	if err == nil {
		return nil
	}
	if first := wrongType(s, patch, ""); first != nil {
		return first
	}
	return err
}

// fit is fitPatch with an error about any field that is wrong.
func fit(s *schema, patch map[string]any) *FieldError {
	for key, v := range patch {
		f := s.field(key)
		if f == nil || v == nil {
			continue
		}
		if !f.schema.accepts(v) {
			return &FieldError{Field: key, Err: f.schema.typeError(v)}
		}
		switch v := v.(type) {
		case map[string]any:
			if err := fitMap(f, v); err != nil {
				return under(key, err)
			}
			if len(v) == 0 && !f.pointer {
				delete(patch, key)
			}
		case []any:
			if err := fitList(f, v); err != nil {
				return under(key, err)
			}
			switch {
			case len(v) > 0:
			case f.merge:
				delete(patch, key)
			default:
				patch[key] = nil
			}
		}
	}
	return nil
}

// under puts a field before that of an error.
func under(parent string, err *FieldError) *FieldError {
	if err.Field == "" || err.Field[0] == '[' {
		err.Field = parent + err.Field
	} else {
		err.Field = parent + "." + err.Field
	}
	return err
}

func fitMap(f *schemaField, v map[string]any) *FieldError {
	if f.schema.kind == structKind {
		return fit(f.schema, v)
	}
	if f.schema.kind != mapKind {
		return nil
	}
	for k, e := range v {
		if !f.schema.elem.accepts(e) {
			return &FieldError{Field: "[" + k + "]", Err: f.schema.elem.typeError(e)}
		}
	}
	return nil
}

func fitList(f *schemaField, v []any) *FieldError {
	elem := f.schema.elem
	if elem == nil {
		return nil
	}
	for i, e := range v {
		if !elem.accepts(e) {
			return &FieldError{Field: fmt.Sprintf("[%d]", i), Err: elem.typeError(e)}
		}
		m, ok := e.(map[string]any)
		if !ok || elem.kind != structKind {
			continue
		}
		if err := fit(elem, m); err != nil {
			return under(fmt.Sprintf("[%d]", i), err)
		}
		if !f.merge {
			dropNulls(m)
		}
	}
	return nil
}

// besides is what merging needs beside the library's rules.
type besides struct {
	// made are the fields that were put into the object, empty, for a patch to act on.
	made []madeField
}

type madeField struct {
	in  map[string]any
	key string
}

// dropEmpty takes fields that were made for a patch out again if it left them empty.
func (b *besides) dropEmpty() {
	for _, f := range b.made {
		if m, ok := f.in[f.key].(map[string]any); ok && len(m) == 0 {
			delete(f.in, f.key)
		}
	}
}

// dropNew takes nulls out of a patch where the object has nothing to delete, because the merge keeps them in new elements of
// lists.
func (b *besides) dropNew(s *schema, obj, patch map[string]any) {
	for key, v := range patch {
		old, had := obj[key]
		switch v := v.(type) {
		case nil:
			if !had {
				delete(patch, key)
			}
		case map[string]any:
			next, f := unknownSchema, s.field(key)
			if f != nil {
				next = f.schema
			}
			sub, ok := old.(map[string]any)
			if !ok && f != nil && f.alwaysThere() && v[patchDirective] != nil {
				// The webhook sees the JSON of Kubernetes' types, which has such a field even if it is empty.
				sub, ok = map[string]any{}, true
				obj[key] = sub
				b.made = append(b.made, madeField{obj, key})
			}
			if !ok {
				dropNulls(v)
				continue
			}
			b.dropNew(next, sub, v)
		case []any:
			b.dropNewElements(s.field(key), old, v)
		}
	}
}

func (b *besides) dropNewElements(f *schemaField, old any, list []any) {
	if f == nil || !f.merge || f.schema.elem == nil {
		return
	}
	have, _ := old.([]any)
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		if was := findBy(have, f.mergeKey, m[f.mergeKey]); was != nil {
			b.dropNew(f.schema.elem, was, m)
			continue
		}
		dropNulls(m)
		for _, field := range m {
			dropDirectives(field)
		}
	}
}

func findBy(list []any, key string, value any) map[string]any {
	for _, e := range list {
		if m, ok := e.(map[string]any); ok && m[key] == value {
			return m
		}
	}
	return nil
}

// dropDirectives takes the instructions of a patch out of a value that is new, at every depth: there is nothing that they
// could act on.
func dropDirectives(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if key != "" && key[0] == directivePrefix {
				delete(v, key)
				continue
			}
			dropDirectives(e)
		}
	case []any:
		for _, e := range v {
			dropDirectives(e)
		}
	}
}

// dropNulls takes keys without a value out of a map at every depth.
func dropNulls(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case map[string]any:
			dropNulls(v)
		case []any:
			for _, e := range v {
				if sub, ok := e.(map[string]any); ok {
					dropNulls(sub)
				}
			}
		}
	}
}

// meant takes out of a copy of a user's container what means the same as nothing there, so that it does not override the
// template: null, and empty values where Kubernetes does not tell them from none.
func meant(s *schema, m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, v := range m {
		f := s.field(key)
		if v == nil || f != nil && !f.pointer && isZero(v) {
			continue
		}
		if sub, ok := v.(map[string]any); ok && f != nil && f.schema.kind == structKind {
			if sub = meant(f.schema, sub); len(sub) == 0 && !f.pointer {
				continue
			}
			v = sub
		}
		out[key] = meantValue(f, v)
	}
	return out
}

// meantValue copies a value, and takes the same out of the elements of a list of structs.
func meantValue(f *schemaField, v any) any {
	list, ok := v.([]any)
	if !ok || f == nil || f.schema.elem == nil || f.schema.elem.kind != structKind {
		return copyValue(v)
	}
	out := make([]any, len(list))
	for i, e := range list {
		if m, ok := e.(map[string]any); ok {
			out[i] = meant(f.schema.elem, m)
		} else {
			out[i] = e
		}
	}
	return out
}

func isZero(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	default:
		return false
	}
}
