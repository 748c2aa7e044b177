// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"reflect"
	"slices"
	"strings"
)

// typeInfo is what the decoder knows about a struct.
type typeInfo struct {
	fields map[string]fieldInfo
	// order are the keys as they are declared.
	order []string
	open  bool
}

type fieldInfo struct {
	name     string
	index    int
	of       reflect.Type
	required bool
	enum     []string
}

func (r *valueReader) infoOf(t reflect.Type) *typeInfo {
	info := &typeInfo{fields: map[string]fieldInfo{}, open: slices.Contains(r.Open, t.Name())}
	tag := r.Tag
	if tag == "" {
		tag = "json"
	}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get(tag), ",")
		if name == "" || name == "-" {
			continue
		}
		info.order = append(info.order, name)
		info.fields[name] = fieldInfo{
			name: name, index: i, of: t.Field(i).Type,
			required: !r.Optional && !strings.Contains(options, "omitempty"),
			enum:     r.Enums[t.Name()+"."+t.Field(i).Name],
		}
	}
	return info
}

// suggestKnownKey returns the likely meaning of an unknown key, or the keys that exist.
func (r *valueReader) suggestKnownKey(at []any, key string, info *typeInfo) string {
	if r.Suggest != nil {
		if s := r.Suggest(at, key); s != "" {
			return s
		}
	}
	if s := DidYouMean(key, info.order); s != "" {
		return s
	}
	if s := r.suggestOuter(at, key); s != "" {
		return s
	}
	if s := r.suggestInner(at, key, info); s != "" {
		return s
	}
	return "; known fields are " + strings.Join(slices.Sorted(slices.Values(info.order)), ", ")
}

// suggestOuter suggests the field of the same name of a struct around, for one that is indented too far.
func (r *valueReader) suggestOuter(at []any, key string) string {
	for up := 1; up <= 2 && up < len(r.around) && up <= len(at); up++ {
		if _, isKey := at[len(at)-up].(string); !isKey {
			return "" // an element of a list
		}
		outer := r.around[len(r.around)-1-up]
		if _, ok := outer.fields[r.foldKey(key)]; ok {
			return ", did you mean " + Problem{Path: Child(at[:len(at)-up], key)}.Field() + "?"
		}
	}
	return ""
}

// suggestInner suggests the field of the same name of a struct in the struct, for one that is not indented enough.
func (r *valueReader) suggestInner(at []any, key string, info *typeInfo) string {
	for _, name := range info.order {
		inner := info.fields[name].of
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() != reflect.Struct || r.Loose {
			continue
		}
		if _, ok := r.infoOf(inner).fields[r.foldKey(key)]; ok {
			return ", did you mean " + Problem{Path: Child(Child(at, name), key)}.Field() + "?"
		}
	}
	return ""
}
