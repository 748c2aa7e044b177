// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// diffMaps returns the strategic merge patch that makes a map from another one, as kubectl writes it; empty if they are
// equal. It contains parts of the second map. If the patch retains, it names the fields that stay (source:
// pkg/util/strategicpatch of k8s.io/apimachinery v0.37).
func diffMaps(s *Schema, from, to map[string]any, retains bool) (map[string]any, error) {
	patch := map[string]any{}
	var retained []any
	for key, want := range to {
		if retains && want != nil {
			retained = append(retained, key)
		}
		if err := diffField(s, patch, key, from, want); err != nil {
			return nil, err
		}
	}
	for key := range from {
		if _, stays := to[key]; !stays {
			patch[key] = nil
		}
	}
	if len(retained) > 0 && len(patch) > 0 {
		patch[retainDirective] = sortByText("", retained)
	}
	return patch, nil
}

// diffField adds to a patch what makes a field's value from the one that it has in a map.
func diffField(s *Schema, patch map[string]any, key string, from map[string]any, want any) error {
	was, ok := from[key]
	if !ok || reflect.TypeOf(was) != reflect.TypeOf(want) {
		patch[key] = want
		return nil
	}
	switch want := want.(type) {
	case map[string]any:
		sub, err := diffMaps(s.mapField(key), was.(map[string]any), want, false)
		if err != nil {
			return err
		}
		if len(sub) > 0 {
			patch[key] = sub
		}
		return nil
	case []any:
		if f := s.listField(key); f.Merges {
			return diffLists(f, patch, key, was.([]any), want)
		}
	}
	if key == patchDirective && was != want {
		return fmt.Errorf("comparing pods: %s is a directive and not a field", patchDirective)
	}
	if !reflect.DeepEqual(was, want) {
		patch[key] = want
	}
	return nil
}

// diffLists adds to a patch what makes a list that merges from another one.
func diffLists(f *SchemaField, patch map[string]any, key string, from, to []any) error {
	if len(from) == 0 {
		if len(to) > 0 {
			patch[key] = to
		}
		return nil
	}
	maps, err := haveMaps(from, to)
	if err != nil {
		return err
	}
	diff := diffScalars
	if maps {
		diff = diffElements
	}
	changes, deletions, order, err := diff(f, from, to)
	if err != nil {
		return err
	}
	for name, list := range map[string][]any{key: changes, deletePrefix + "/" + key: deletions, orderPrefix + "/" + key: order} {
		if len(list) > 0 {
			patch[name] = list
		}
	}
	return nil
}

// diffScalars returns the scalars that a list gains and those that it loses, and the list if it changes.
func diffScalars(f *SchemaField, from, to []any) (added, deleted, order []any, err error) {
	for _, e := range to {
		if !slices.Contains(from, e) {
			added = append(added, e)
		}
	}
	for _, e := range from {
		if !slices.Contains(to, e) && !slices.Contains(deleted, e) {
			deleted = append(deleted, e)
		}
	}
	if !slices.Equal(from, to) {
		order = to
	}
	return added, sortByText("", deleted), order, nil
}

// diffElements returns the patch of a list of maps, and the merge keys in their order if the list changes. The patch
// deletes by directives.
func diffElements(f *SchemaField, from, to []any) (changes, _, order []any, err error) {
	if err := requireKey(f.MergeKey, slices.Concat(from, to)...); err != nil {
		return nil, nil, nil, err
	}
	var deletions []any
	was, want := sortByText(f.MergeKey, slices.Clone(from)), sortByText(f.MergeKey, slices.Clone(to))
	for len(was) > 0 || len(want) > 0 {
		switch compareHeads(f.MergeKey, was, want) {
		case -1:
			deletions = append(deletions, map[string]any{f.MergeKey: keyOf(f.MergeKey, was[0]), patchDirective: "delete"})
			was = was[1:]
		case 1:
			changes = append(changes, want[0])
			want = want[1:]
		default:
			change, err := diffMaps(f.Schema.elem(), was[0].(map[string]any), want[0].(map[string]any), f.retains)
			if err != nil {
				return nil, nil, nil, err
			}
			if len(change) > 0 {
				change[f.MergeKey] = keyOf(f.MergeKey, want[0])
				changes = append(changes, change)
			}
			was, want = was[1:], want[1:]
		}
	}
	sortBy(f.MergeKey, changes, to)
	changes = append(changes, deletions...)
	sameKeys := func(a, b any) bool { return keyOf(f.MergeKey, a) == keyOf(f.MergeKey, b) }
	if len(changes) == 0 && slices.EqualFunc(from, to, sameKeys) {
		return nil, nil, nil, nil
	}
	for _, e := range to {
		order = append(order, map[string]any{f.MergeKey: keyOf(f.MergeKey, e)})
	}
	return changes, nil, order, nil
}

// compareHeads compares the first elements of two lists by the texts of their keys. An empty list comes last.
func compareHeads(mergeKey string, a, b []any) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	default:
		return strings.Compare(textOfKey(mergeKey, a[0]), textOfKey(mergeKey, b[0]))
	}
}

// sortByText sorts a list by the texts of what identifies its elements, and returns it. Of equal ones the order is that
// of Kubernetes, whose comparison is not strict.
func sortByText(mergeKey string, list []any) []any {
	sort.Slice(list, func(i, j int) bool { return textOfKey(mergeKey, list[i]) <= textOfKey(mergeKey, list[j]) })
	return list
}

func textOfKey(mergeKey string, e any) string { return fmt.Sprint(keyOf(mergeKey, e)) }
