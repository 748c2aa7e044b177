// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strconv"
	"strings"
)

// unknownField is a field of a spec that the types do not have: that of a newer Kubernetes.
type unknownField struct {
	name  string // as the fields of changes are written
	value any
}

// newUnknownField looks up a field by an error of the strict decoder, which names it by its path below the spec.
func newUnknownField(spec map[string]any, problem error) unknownField {
	path := strings.TrimSuffix(strings.TrimPrefix(problem.Error(), `unknown field "`), `"`)
	out := unknownField{name: "spec"}
	var at any = spec
	list := ""
	for path != "" {
		switch v := at.(type) {
		case map[string]any:
			key := path
			if _, ok := v[key]; !ok { // otherwise it is the last key, even if it contains dots
				if i := strings.IndexAny(path, ".["); i >= 0 {
					key = path[:i]
				}
			}
			at, list = v[key], key
			out.name += "." + key
			path = strings.TrimPrefix(path[len(key):], ".")
		case []any:
			number, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
			i, err := strconv.Atoi(number)
			if err != nil || i < 0 || i >= len(v) {
				return unknownField{name: out.name + "." + path}
			}
			element := number
			if fields := elementKeys[list]; len(fields) > 0 {
				steps, _ := elementsByIdentity(v, fields)
				element = steps[i].key
			}
			at = v[i]
			out.name += "[" + element + "]"
			path = strings.TrimPrefix(rest, ".")
		default:
			return unknownField{name: out.name + "." + path}
		}
	}
	out.value = at
	return out
}

// differingUnknownFields returns the unknown fields of a pod that a template does not have with the same values.
func (m *matching) differingUnknownFields(template map[string]any) []unknownField {
	if len(m.unknown) == 0 {
		return nil
	}
	_, committed, err := normalPod(template)
	if err != nil {
		return m.unknown
	}
	return slices.DeleteFunc(slices.Clone(m.unknown), func(f unknownField) bool {
		same := func(c unknownField) bool { return c.name == f.name && f.value != nil && sameJSON(c.value, f.value) }
		return slices.ContainsFunc(committed, same) || m.ignoresField(f.name)
	})
}

// toDifference describes an unknown field. Its value is not shown, as it may be anything.
func (f unknownField) toDifference() Difference {
	return Difference{
		Field: f.name, Cause: Cause{Kind: CauseUnknown},
		summary: "not as committed; this version of prerig does not know the field",
	}
}
