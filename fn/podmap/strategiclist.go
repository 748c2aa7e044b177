// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// mergeOrdered merges the list that a patch orders, and removes it from the patch.
func mergeOrdered(s *Schema, obj, patch map[string]any, key string, value any) error {
	order, ok := value.([]any)
	if !ok {
		return errUnfitElements
	}
	name, ok := strings.CutPrefix(key, orderPrefix+"/")
	if !ok {
		return errBadOrder
	}
	was, has, err := listOf(obj, name)
	if err != nil {
		return err
	}
	changes, changed, err := listOf(patch, name)
	if err != nil {
		return err
	}
	f := s.listField(name)
	if err := checkOrder(f.MergeKey, changes, order); err != nil {
		return err
	}
	merged := was
	switch {
	case !has && !changed:
		return nil
	case !has:
		added, _ := withoutDirectives(changes)
		merged = added.([]any)
	case changed && f.Merges:
		merged, err = mergeLists(f, was, changes, false)
	case changed:
		merged = changes
	}
	if err != nil {
		return err
	}
	if _, err = haveMaps(was, changes); err != nil {
		return err
	}
	delete(patch, name)
	obj[name], err = arrange(f.MergeKey, merged, order, was)
	return err
}

// listOf returns the list of a field, and whether the object has the field.
func listOf(obj map[string]any, key string) (list []any, ok bool, err error) {
	value, ok := obj[key]
	if !ok {
		return nil, false, nil
	}
	list, isList := value.([]any)
	if !isList {
		return nil, true, errUnfitElements
	}
	return list, true, nil
}

// checkOrder returns an error unless the elements that a patch adds or changes are in an order, in the same sequence.
func checkOrder(mergeKey string, patch, order []any) error {
	if len(order) == 0 || len(patch) == 0 {
		return nil
	}
	rest := order
	for _, e := range patch {
		m, isMap := e.(map[string]any)
		if mergeKey != "" && !isMap {
			return errUnfitElements
		}
		directive, ok := m[patchDirective]
		if directive == "delete" || ok && len(rest) > 0 {
			continue
		}
		at, err := findInOrder(mergeKey, e, rest)
		if err != nil {
			return err
		}
		if at < 0 {
			return errUnfitLists
		}
		rest = rest[at+1:]
	}
	return nil
}

// findInOrder returns the place of an element in an order, or -1.
func findInOrder(mergeKey string, e any, order []any) (int, error) {
	if mergeKey == "" {
		return slices.Index(order, e), nil
	}
	for i, o := range order {
		if err := requireKey(mergeKey, e, o); err != nil {
			return -1, err
		}
		if keyOf(mergeKey, e) == keyOf(mergeKey, o) {
			return i, nil
		}
	}
	return -1, nil
}

// mergeLists merges the elements of a patch into a list that merges. If the patch deletes, scalars of it are removed
// instead.
func mergeLists(f *SchemaField, list, patch []any, deletes bool) ([]any, error) {
	if len(list) == 0 && len(patch) == 0 {
		return list, nil
	}
	maps, err := haveMaps(list, patch)
	switch {
	case err != nil:
		return nil, err
	case !maps && deletes:
		return slices.DeleteFunc(list, func(e any) bool { return slices.Contains(patch, e) }), nil
	case !maps:
		var merged []any
		for _, e := range slices.Concat(list, patch) {
			if !slices.Contains(merged, e) {
				merged = append(merged, e)
			}
		}
		return arrange(f.MergeKey, merged, patch, list)
	case f.MergeKey == "":
		return nil, fmt.Errorf("cannot merge lists without merge key for %s", f.Schema.elem().TypeName)
	}
	list, patch, err = applyElementDirectives(f.MergeKey, list, patch)
	if err != nil {
		return nil, err
	}
	merged, err := mergeElements(f, list, patch)
	if err != nil {
		return nil, err
	}
	return arrange(f.MergeKey, merged, patch, list)
}

// applyElementDirectives returns the list and the patch of a list after the elements of the patch that have a
// directive.
func applyElementDirectives(mergeKey string, list, patch []any) (rest, plain []any, err error) {
	replaces := false
	for _, e := range patch {
		m := e.(map[string]any)
		directive, ok := m[patchDirective]
		switch {
		case !ok:
			plain = append(plain, e)
		case directive == "delete":
			id, ok := m[mergeKey]
			if !ok {
				return nil, nil, errUnfitLists
			}
			list = deleteInPlace(mergeKey, list, id)
		case directive == "replace":
			replaces = true
		case directive == "merge":
			return nil, nil, errors.New("merging lists cannot yet be specified in the patch")
		default:
			return nil, nil, fmt.Errorf("unknown patch type: %s", directive)
		}
	}
	if replaces {
		return plain, nil, nil
	}
	return list, plain, nil
}

// deleteInPlace removes the elements of a list with an id. It moves those behind them within the array, because
// Kubernetes orders by what that leaves in the longer list.
func deleteInPlace(mergeKey string, list []any, id any) []any {
	for {
		at := indexOf(mergeKey, list, id)
		if at < 0 {
			return list
		}
		list = append(list[:at], list[at+1:]...)
	}
}

// indexOf returns the index of the first element of a list with an id, or -1.
func indexOf(mergeKey string, list []any, id any) int {
	return slices.IndexFunc(list, func(e any) bool {
		was, there := e.(map[string]any)[mergeKey]
		return there && was == id
	})
}

// mergeElements merges elements without directives into those of a list that have the same key, or appends them.
func mergeElements(f *SchemaField, list, patch []any) ([]any, error) {
	for _, e := range patch {
		m := e.(map[string]any)
		id, ok := m[f.MergeKey]
		if !ok {
			return nil, errUnfitLists
		}
		at := indexOf(f.MergeKey, list, id)
		if at < 0 {
			list = append(list, e)
			continue
		}
		merged, err := mergeMaps(f.Schema.elem(), list[at].(map[string]any), m)
		if err != nil {
			return nil, err
		}
		list[at] = merged
	}
	return list, nil
}

// arrange orders a merged list: elements that order contains follow it, and the others follow the list before, whose
// relative positions decide between the two.
func arrange(mergeKey string, merged, order, before []any) ([]any, error) {
	if err := requireKey(mergeKey, slices.Concat(merged, order, before)...); err != nil {
		return nil, err
	}
	var ordered, others []any
	for _, e := range merged {
		if place(mergeKey, order, e) >= 0 {
			ordered = append(ordered, e)
		} else {
			others = append(others, e)
		}
	}
	sortBy(mergeKey, ordered, order)
	sortBy(mergeKey, others, before)
	out := make([]any, 0, len(merged))
	for len(ordered) > 0 && len(others) > 0 {
		other, first := place(mergeKey, before, others[0]), place(mergeKey, before, ordered[0])
		if other >= 0 && other < first {
			out, others = append(out, others[0]), others[1:]
		} else {
			out, ordered = append(out, ordered[0]), ordered[1:]
		}
	}
	return append(append(out, others...), ordered...), nil
}

// sortBy orders a list by the places of its elements in another one. Elements without a place come out as they do in
// Kubernetes, whose comparison calls them less than any other.
func sortBy(mergeKey string, list, order []any) {
	sort.SliceStable(list, func(i, j int) bool {
		a, b := place(mergeKey, order, list[i]), place(mergeKey, order, list[j])
		return a < 0 || b < 0 || a < b
	})
}

// place returns the index of the first element of a list with the same key, or that is equal if the merge key is empty,
// or -1.
func place(mergeKey string, list []any, e any) int {
	id := keyOf(mergeKey, e)
	return slices.IndexFunc(list, func(other any) bool { return keyOf(mergeKey, other) == id })
}

// keyOf returns what identifies an element of a list.
func keyOf(mergeKey string, e any) any {
	if mergeKey == "" {
		return e
	}
	return e.(map[string]any)[mergeKey]
}

// requireKey returns an error if one of the elements is not a map with the merge key. Without a merge key it accepts
// scalars only.
func requireKey(mergeKey string, elements ...any) error {
	for _, e := range elements {
		m, isMap := e.(map[string]any)
		_, hasKey := m[mergeKey]
		switch {
		case mergeKey == "" && isMap, mergeKey != "" && !isMap:
			return errUnfitElements
		case mergeKey != "" && !hasKey:
			return errUnfitLists
		}
	}
	return nil
}

// haveMaps reports whether the elements of lists are maps. They must have one type, and not be null or lists.
func haveMaps(lists ...[]any) (bool, error) {
	all := slices.Concat(lists...)
	if len(all) == 0 {
		return false, errUnfitLists
	}
	first := reflect.TypeOf(all[0])
	for _, e := range all {
		if e == nil || reflect.TypeOf(e) != first {
			return false, errUnfitElements
		}
	}
	switch all[0].(type) {
	case map[string]any:
		return true, nil
	case []any:
		return false, errNestedLists
	default:
		return false, nil
	}
}
