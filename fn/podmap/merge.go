// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"errors"
	"fmt"
)

// DirectivePrefix begins the keys of a strategic merge patch that are instructions and not fields.
const DirectivePrefix = '$'

// mergePatch merges a patch into an object of the schema. Both are used up.
func mergePatch(s *Schema, obj, patch map[string]any) (map[string]any, error) {
	var b mergeExtras
	dropOmittedKeys(s, obj, patch)
	b.dropNew(s, obj, patch)
	out, err := strategicMerge(obj, patch, s)
	if err != nil {
		return nil, err
	}
	b.dropEmpty()
	return out, nil
}

// strategicMerge merges with Kubernetes' rules, and returns a FieldError for an element of the object without its merge
// key. Errors print no values. A merge key that is a map or a list cannot be compared, which is an error in Kubernetes
// too.
func strategicMerge(obj, patch map[string]any, s *Schema) (out map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("merging: %w", errUnfitElements)
		}
	}()
	missing := missingKey(s, obj, patch) // the merge leaves no part of the object to inspect
	out, err = mergeMaps(s, obj, patch)
	switch {
	case err == nil:
		return out, nil
	case missing != nil:
		return nil, missing
	default:
		return nil, fmt.Errorf("merging: %w", err)
	}
}

// missingKey returns a missing field of an object without which a list cannot be merged with that of the patch,
// such as the name of a container, or nil if none is missing. Of several it returns the first by name.
func missingKey(s *Schema, obj, patch map[string]any) (first *FieldError) {
	for key, v := range patch {
		f := s.Field(key)
		if f == nil || first != nil && key > first.Field {
			continue
		}
		var missing *FieldError
		switch v := v.(type) {
		case map[string]any:
			if was, ok := obj[key].(map[string]any); ok {
				missing = missingKey(f.Schema, was, v)
			}
		case []any:
			missing = missingInList(f, obj[key], v)
		}
		if missing != nil {
			first = underField(key, missing)
		}
	}
	return first
}

func missingInList(f *SchemaField, value any, patch []any) *FieldError {
	list, _ := value.([]any)
	if !f.Merges || f.MergeKey == "" || f.Schema.Elem == nil {
		return nil
	}
	for i, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		id, there := m[f.MergeKey]
		if !there {
			return &FieldError{Field: fmt.Sprintf("[%d].%s", i, f.MergeKey), Err: errors.New("is missing")}
		}
		if missing := missingKey(f.Schema.Elem, m, FindBy(patch, f.MergeKey, id)); missing != nil {
			return underField(fmt.Sprintf("[%d]", i), missing)
		}
	}
	return nil
}

// FitPatch checks that a patch has the types that Kubernetes expects, and removes from it what would leave
// meaningless empty fields in the pod: {} and [] if Kubernetes does not distinguish them from unset. A list that
// the patch replaces with an empty one is deleted. The error is about the first invalid field by name.
func FitPatch(s *Schema, patch map[string]any) error {
	err := fitStruct(s, patch)
	if err == nil {
		return nil
	}
	if first := WrongType(s, patch, ""); first != nil {
		return first
	}
	return err
}

// fitStruct is FitPatch with an error about any field that is wrong.
func fitStruct(s *Schema, patch map[string]any) *FieldError {
	for key, v := range patch {
		f := s.Field(key)
		if f == nil || v == nil {
			continue
		}
		if !f.Schema.Accepts(v) {
			return &FieldError{Field: key, Err: f.Schema.typeError(v)}
		}
		switch v := v.(type) {
		case map[string]any:
			if err := fitMap(f, v); err != nil {
				return underField(key, err)
			}
			if len(v) == 0 && !f.IsPointer {
				delete(patch, key)
			}
		case []any:
			if err := fitList(f, v); err != nil {
				return underField(key, err)
			}
			switch {
			case len(v) > 0:
			case f.Merges:
				delete(patch, key)
			default:
				patch[key] = nil
			}
		}
	}
	return nil
}

// underField puts a field before that of an error.
func underField(parent string, err *FieldError) *FieldError {
	if err.Field == "" || err.Field[0] == '[' {
		err.Field = parent + err.Field
	} else {
		err.Field = parent + "." + err.Field
	}
	return err
}

func fitMap(f *SchemaField, v map[string]any) *FieldError {
	if f.Schema.Kind == StructKind {
		return fitStruct(f.Schema, v)
	}
	if f.Schema.Kind != mapKind {
		return nil
	}
	for k, e := range v {
		if !f.Schema.Elem.Accepts(e) {
			return &FieldError{Field: "[" + k + "]", Err: f.Schema.Elem.typeError(e)}
		}
	}
	return nil
}

func fitList(f *SchemaField, v []any) *FieldError {
	elem := f.Schema.Elem
	if elem == nil {
		return nil
	}
	for i, e := range v {
		if !elem.Accepts(e) {
			return &FieldError{Field: fmt.Sprintf("[%d]", i), Err: elem.typeError(e)}
		}
		m, ok := e.(map[string]any)
		if !ok || elem.Kind != StructKind {
			continue
		}
		if err := fitStruct(elem, m); err != nil {
			return underField(fmt.Sprintf("[%d]", i), err)
		}
		if !f.Merges {
			dropNulls(m)
		}
	}
	return nil
}

// mergeExtras is what merging needs beside the library's rules.
type mergeExtras struct {
	// made are the fields that were put into the object, empty, for a patch to act on.
	made []madeField
}

type madeField struct {
	in  map[string]any
	key string
}

// dropEmpty removes fields that were created for a patch if it left them empty.
func (b *mergeExtras) dropEmpty() {
	for _, f := range b.made {
		if m, ok := f.in[f.key].(map[string]any); ok && len(m) == 0 {
			delete(f.in, f.key)
		}
	}
}

// dropNew removes nulls from a patch if the object has no value to delete, because the merge keeps them in new
// elements of lists.
func (b *mergeExtras) dropNew(s *Schema, obj, patch map[string]any) {
	for key, v := range patch {
		old, had := obj[key]
		switch v := v.(type) {
		case nil:
			if !had {
				delete(patch, key)
			}
		case map[string]any:
			next, f := UnknownSchema, s.Field(key)
			if f != nil {
				next = f.Schema
			}
			sub, ok := old.(map[string]any)
			if !ok && f != nil && f.isAlwaysSerialized() && v[patchDirective] != nil {
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
			b.dropNewElements(s.Field(key), old, v)
		}
	}
}

func (b *mergeExtras) dropNewElements(f *SchemaField, old any, list []any) {
	if f == nil || !f.Merges || f.Schema.Elem == nil {
		return
	}
	have, _ := old.([]any)
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		if was := FindBy(have, f.MergeKey, m[f.MergeKey]); was != nil {
			b.dropNew(f.Schema.Elem, was, m)
			continue
		}
		id, written := m[f.MergeKey]
		dropNulls(m)
		if written && id == nil && f.mergesByOmitted() {
			m[f.MergeKey] = "" // as Kubernetes' types read null; the merge needs the key
		}
		for _, field := range m {
			dropDirectives(field)
		}
	}
}

// FindBy returns the first map of a list that has a value under a key, or nil.
func FindBy(list []any, key string, value any) map[string]any {
	for _, e := range list {
		if m, ok := e.(map[string]any); ok && m[key] == value {
			return m
		}
	}
	return nil
}

// dropDirectives removes the directives of a patch from a new value, at every depth: they have no target.
func dropDirectives(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if key != "" && key[0] == DirectivePrefix {
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

// dropOmittedKeys removes empty merge keys from the object's lists that the patch merges, if the JSON of
// Kubernetes' types, in which the webhook merges, omits them. Without its key an element cannot be merged, so the
// merge fails as in the webhook.
func dropOmittedKeys(s *Schema, obj, patch map[string]any) {
	for key, v := range patch {
		f := s.Field(key)
		if f == nil {
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			if was, ok := obj[key].(map[string]any); ok {
				dropOmittedKeys(f.Schema, was, v)
			}
		case []any:
			list, _ := obj[key].([]any)
			for _, e := range list {
				m, ok := e.(map[string]any)
				if ok && f.mergesByOmitted() && (m[f.MergeKey] == nil || IsZero(m[f.MergeKey])) {
					delete(m, f.MergeKey)
				}
			}
		}
	}
}

// dropNulls removes keys without a value from a map at every depth.
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

// Meant returns a copy of a user's container without the values that are equivalent to unset, so that they do not
// override the template: null, and empty values if Kubernetes does not distinguish them from unset.
func Meant(s *Schema, m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, v := range m {
		f := s.Field(key)
		if v == nil || f != nil && !f.IsPointer && IsZero(v) {
			continue
		}
		if sub, ok := v.(map[string]any); ok && f != nil && f.Schema.Kind == StructKind {
			if sub = Meant(f.Schema, sub); len(sub) == 0 && !f.IsPointer {
				continue
			}
			v = sub
		}
		out[key] = meantValue(f, v)
	}
	return out
}

// meantValue copies a value, and applies the same removal to the elements of a list of structs.
func meantValue(f *SchemaField, v any) any {
	list, ok := v.([]any)
	if !ok || f == nil || f.Schema.Elem == nil || f.Schema.Elem.Kind != StructKind {
		return CopyValue(v)
	}
	out := make([]any, len(list))
	for i, e := range list {
		if m, ok := e.(map[string]any); ok {
			out[i] = Meant(f.Schema.Elem, m)
		} else {
			out[i] = e
		}
	}
	return out
}

// IsZero reports whether a value is the zero value of its type: an empty text, list or map, false or 0.
func IsZero(v any) bool {
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
