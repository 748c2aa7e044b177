// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Directives of a strategic merge patch (source: pkg/util/strategicpatch of k8s.io/apimachinery v0.37).
const (
	// patchDirective replaces or deletes the map or list that contains it.
	patchDirective = "$patch"
	// retainDirective lists the fields of a map that stay.
	retainDirective = "$retainKeys"
	// deletePrefix and orderPrefix begin the names of fields that delete elements of the list of the name behind them,
	// and order it.
	deletePrefix = "$deleteFromPrimitiveList"
	orderPrefix  = "$setElementOrder"
)

// Errors of a merge print no values, because containers may contain passwords.
var (
	errUnfitLists    = errors.New("the pod and the template have lists that do not fit together")
	errUnfitElements = errors.New("a list of the pod or of the template has an element that is null, or of another type than the others")
	errNestedLists   = errors.New("lists of lists are not supported")
	errBadDeletion   = errors.New("invalid patch format of primitive list")
	errBadRetention  = errors.New("invalid patch format of retainKeys")
	errBadOrder      = errors.New("invalid patch format of setElementOrder list")
)

// mergeMaps merges a patch into an object and returns the result, as the API server merges a strategic merge patch.
// Both are used up.
func mergeMaps(s *Schema, obj, patch map[string]any) (map[string]any, error) {
	if directive, ok := patch[patchDirective]; ok {
		return applyDirective(directive, patch)
	}
	if obj == nil {
		obj = map[string]any{}
	}
	if err := applyRetention(obj, patch); err != nil {
		return nil, err
	}
	for key, order := range patch {
		if strings.HasPrefix(key, orderPrefix) {
			delete(patch, key)
			if err := mergeOrdered(s, obj, patch, key, order); err != nil {
				return nil, err
			}
		}
	}
	for key, value := range patch {
		if err := mergeField(s, obj, key, value); err != nil {
			return nil, err
		}
	}
	return obj, nil
}

// applyDirective returns what a map becomes whose patch has a directive.
func applyDirective(directive any, patch map[string]any) (map[string]any, error) {
	switch directive {
	case "replace":
		delete(patch, patchDirective)
		return patch, nil
	case "delete":
		return map[string]any{}, nil
	default:
		return nil, fmt.Errorf("unknown patch type: %s", directive)
	}
}

// applyRetention removes the fields from an object that a patch does not retain.
func applyRetention(obj, patch map[string]any) error {
	value, ok := patch[retainDirective]
	if !ok {
		return nil
	}
	delete(patch, retainDirective)
	retained, ok := value.([]any)
	if !ok {
		return errBadRetention
	}
	for key, v := range patch {
		if v != nil && !strings.HasPrefix(key, deletePrefix) && !strings.HasPrefix(key, orderPrefix) &&
			!slices.Contains(retained, any(key)) {
			return errBadRetention
		}
	}
	for key := range obj {
		if !slices.Contains(retained, any(key)) {
			delete(obj, key)
		}
	}
	return nil
}

// mergeField merges one field of a patch, other than an order, into an object.
func mergeField(s *Schema, obj map[string]any, key string, value any) error {
	deletes := strings.HasPrefix(key, deletePrefix)
	if deletes {
		name, ok := strings.CutPrefix(key, deletePrefix+"/")
		if !ok {
			return errBadDeletion
		}
		key = name
	}
	if value == nil {
		delete(obj, key)
		return nil
	}
	was, ok := obj[key]
	if !ok || reflect.TypeOf(was) != reflect.TypeOf(value) {
		if !deletes {
			setField(obj, key, value)
		}
		return nil
	}
	var err error
	switch value := value.(type) {
	case map[string]any:
		obj[key], err = mergeMaps(s.mapField(key), was.(map[string]any), value)
	case []any:
		f := s.listField(key)
		obj[key] = value
		if f.Merges || deletes {
			obj[key], err = mergeLists(f, was.([]any), value, deletes)
		}
	default:
		obj[key] = value
	}
	return err
}

// setField sets a field to the value of a patch, without its nulls and directives.
func setField(obj map[string]any, key string, value any) {
	dropNullFields(value)
	value, ok := withoutDirectives(value)
	if !ok {
		delete(obj, key)
		return
	}
	obj[key] = value
}

// dropNullFields removes keys without a value at every depth.
func dropNullFields(v any) {
	switch v := v.(type) {
	case map[string]any:
		dropNulls(v)
	case []any:
		for _, e := range v {
			dropNullFields(e)
		}
	}
}

// withoutDirectives returns a new value without the parts that have a directive, and false if the value itself has one.
func withoutDirectives(v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v[patchDirective]; ok {
			return nil, false
		}
		for key, e := range v {
			if rest, ok := withoutDirectives(e); ok {
				v[key] = rest
			} else {
				delete(v, key)
			}
		}
		return v, true
	case []any:
		kept := make([]any, 0, len(v))
		for _, e := range v {
			if rest, ok := withoutDirectives(e); ok {
				kept = append(kept, rest)
			}
		}
		return kept, true
	default:
		return v, true
	}
}
