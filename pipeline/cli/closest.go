// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"sort"
	"strings"

	"github.com/prerig/prerig/fn/strict"
)

// closestNames returns the names that are most like one, of those that are few letters away, or the same without a
// namespace, or that hold it.
func closestNames(name string, known []string, most int) []string {
	type near struct {
		name string
		far  int
	}
	var found []near
	short := withoutNamespace(name)
	for _, k := range known {
		far := strict.Distance(name, k)
		switch {
		case withoutNamespace(k) == short:
			far = 0
		case len(short) > 2 && strings.Contains(k, short):
			far = min(far, 1)
		default:
			far = min(far, 1+strict.Distance(short, withoutNamespace(k)))
		}
		if far <= 1+len(short)/4 {
			found = append(found, near{k, far})
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].far < found[j].far })
	var out []string
	for _, one := range found[:min(most, len(found))] {
		if one.far == found[0].far {
			out = append(out, one.name)
		}
	}
	return out
}

// withoutNamespace is a pipeline's name without its namespace.
func withoutNamespace(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
