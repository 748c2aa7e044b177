// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"path"
	"strings"

	"github.com/prerig/prerig/fn/strict"
)

// SuggestPath returns ", did you mean PATH?" for a path that a source does not have: the first part that is missing is replaced by the
// entry of its directory with the most similar name. Without one, it names the entries of that directory, if they are few.
func SuggestPath(r Reader, name string) string {
	const few = 8
	at := "."
	parts := strings.Split(path.Clean(name), "/")
	for i, part := range parts {
		if _, err := r.Lookup(path.Join(at, part)); err == nil {
			at = path.Join(at, part)
			continue
		}
		entries, err := r.List(at)
		if err != nil || len(entries) == 0 {
			return ""
		}
		var names []string
		for _, e := range entries {
			names = append(names, path.Base(e.Path))
		}
		if near := strict.Closest(part, names); near != "" {
			whole := path.Join(append([]string{at, near}, parts[i+1:]...)...)
			if _, err := r.Lookup(whole); err == nil {
				return ", did you mean " + whole + "?"
			}
			return ", did you mean " + path.Join(at, near) + "?"
		}
		if len(names) > few {
			return ""
		}
		if at == "." {
			at = "the source"
		}
		return "; " + at + " has " + strings.Join(names, ", ")
	}
	return ""
}
