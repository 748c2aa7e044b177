// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// Path is the position of a pod template in an object.
type Path struct {
	// Optional means that an object may lack the template at this path; otherwise a missing one is an error.
	Optional bool

	parts []pathPart
	// elsewhere is a field whose presence means that the template is in another object.
	elsewhere string
}

type pathPart struct {
	key string
	// each means that the value is a list or a map of which every element is meant.
	each bool
}

func newPath(keys ...string) Path {
	p := Path{}
	for _, k := range keys {
		p.parts = append(p.parts, pathPart{key: k})
	}
	return p
}

// ParsePath reads a path such as spec.template or spec.tfReplicaSpecs[].template. A part that ends in [] is a list or a
// map of which every element is meant.
func ParsePath(s string) (Path, error) {
	parts, err := v1alpha1.ParsePodTemplatePath(s)
	if err != nil {
		return Path{}, err
	}
	var p Path
	for _, q := range parts {
		p.parts = append(p.parts, pathPart{key: q.Key, each: q.Each})
	}
	return p, nil
}

// String returns the path as ParsePath reads it, and "" for the object itself.
func (p Path) String() string {
	words := make([]string, len(p.parts))
	for i, q := range p.parts {
		words[i] = q.key
		if q.each {
			words[i] += "[]"
		}
	}
	return strings.Join(words, ".")
}

func (p Path) hasLists() bool {
	for _, q := range p.parts {
		if q.each {
			return true
		}
	}
	return false
}

// pathMatch is one place that a path leads to. key is the last map key or list index that [] stood for.
type pathMatch struct {
	at    []any
	value any
	key   string
}

// findMatches walks the path. A missing field ends that branch: it is an error unless the path is optional.
func (p Path) findMatches(obj map[string]any) ([]pathMatch, error) {
	places := []pathMatch{{value: obj}}
	for _, q := range p.parts {
		var next []pathMatch
		for _, f := range places {
			m, ok := f.value.(map[string]any)
			if !ok {
				return nil, wrongType(f.at, f.value, "a map")
			}
			v, ok := m[q.key]
			at := childPath(f.at, q.key)
			if !ok || v == nil {
				if p.Optional {
					continue
				}
				return nil, &FieldError{Field: FieldString(at), Err: errMissing}
			}
			more := []pathMatch{{at: at, value: v, key: f.key}}
			if q.each {
				var err error
				if more, err = listElements(at, v); err != nil {
					return nil, err
				}
			}
			next = append(next, more...)
		}
		places = next
	}
	return places, nil
}

// listElements lists what a list or map holds, maps in the order of their keys.
func listElements(at []any, v any) ([]pathMatch, error) {
	var out []pathMatch
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			out = append(out, pathMatch{at: childPath(at, i), value: e, key: strconv.Itoa(i)})
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			out = append(out, pathMatch{at: childPath(at, k), value: v[k], key: k})
		}
	default:
		return nil, wrongType(at, v, "a list or a map")
	}
	return out, nil
}

func childPath(at []any, e any) []any {
	return append(at[:len(at):len(at)], e)
}

// FieldString writes a path of map keys and list indexes for people: spec.containers[0].name. A key that is not a plain
// field name is quoted: metadata.labels["app.kubernetes.io/name"].
func FieldString(at []any) string {
	var b strings.Builder
	for _, e := range at {
		switch e := e.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(e) + "]")
		case string:
			if e == "" || strings.ContainsAny(e, ".[]/\" ") {
				b.WriteString("[" + strconv.Quote(e) + "]")
				continue
			}
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(e)
		default:
			fmt.Fprintf(&b, "[%v]", e)
		}
	}
	return b.String()
}
