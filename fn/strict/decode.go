// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Decoder decodes values of maps, lists and scalars (int64 and float64 for numbers) into Go types. The zero Decoder
// reads the tag json, requires every field without omitempty and converts no types.
type Decoder struct {
	// Tag is the name of the tag that has the key of a field; "" means json.
	Tag string
	// Optional makes every field optional.
	Optional bool
	// NullIsUnset treats a key without a value as absent. Otherwise it is a problem.
	NullIsUnset bool
	// Loose reads keys in any case; converts a text to a number, a time, true or false, or a list with commas if
	// the field has that type; and converts a number to a text or to a time in nanoseconds.
	Loose bool
	// Enums are the values that a field may have, by type and Go name of the field: "Images.OnMissing".
	Enums map[string][]string
	// Open are the names of types that may have keys which are not known.
	Open []string
	// Ignored are the names of types that are not read at all.
	Ignored []string
	// Suggest, where it is set, returns what to do about an unknown key, or "" for the usual words.
	Suggest func(at []any, key string) string
}

// Decode fills target, a pointer, from a value and adds everything that is wrong to ps. at is the path of the value.
func (d Decoder) Decode(at []any, v any, target any, ps *Problems) {
	r := valueReader{Decoder: d, problems: ps}
	r.decodeValue(at, v, reflect.ValueOf(target).Elem())
}

// valueReader is one decoding.
type valueReader struct {
	Decoder
	problems *Problems
	// around are the types of the structs around the one that is read, the outermost first.
	around []*typeInfo
}

func (r *valueReader) addProblem(at []any, format string, args ...any) {
	r.problems.Add(at, format, args...)
}

// decodeValue fills target, a settable value, from a value of maps, lists and scalars, and continues after a
// problem.
func (r *valueReader) decodeValue(at []any, v any, target reflect.Value) {
	if v == nil && r.NullIsUnset || slices.Contains(r.Ignored, target.Type().Name()) {
		return
	}
	if _, ok := target.Addr().Interface().(json.Unmarshaler); ok {
		r.decodeItself(at, v, target)
		return
	}
	switch target.Kind() {
	case reflect.Pointer:
		p := reflect.New(target.Type().Elem())
		r.decodeValue(at, v, p.Elem())
		target.Set(p)
	case reflect.Interface:
		if v != nil {
			target.Set(reflect.ValueOf(v))
		}
	case reflect.Struct:
		if m, ok := v.(map[string]any); ok {
			r.decodeStruct(at, m, target)
		} else {
			r.problems.WrongType(at, v, "a map")
		}
	case reflect.Map:
		r.decodeMap(at, v, target)
	case reflect.Slice:
		r.decodeList(at, v, target)
	default:
		r.decodeScalar(at, v, target)
	}
}

func (r *valueReader) decodeStruct(at []any, m map[string]any, target reflect.Value) {
	info := r.infoOf(target.Type())
	given := map[string]bool{}
	r.around = append(r.around, info)
	defer func() { r.around = r.around[:len(r.around)-1] }()
	for _, key := range slices.Sorted(maps.Keys(m)) {
		f, ok := info.fields[r.foldKey(key)]
		switch {
		case !ok && info.open:
		case !ok:
			r.addProblem(Child(at, key), "unknown field%s", r.suggestKnownKey(at, key, info))
		case m[key] == nil && info.open:
			given[f.name] = true
		default:
			given[f.name] = true
			before := len(r.problems.List)
			if isScalarOfOtherType(m[key]) && f.enum != nil {
				r.addProblem(Child(at, key), "must be one of %s, is %s", strings.Join(f.enum, ", "), Describe(m[key]))
				continue
			}
			r.decodeValue(Child(at, key), m[key], target.Field(f.index))
			if f.enum != nil && len(r.problems.List) == before {
				r.checkEnums(Child(at, key), target.Field(f.index), f.enum)
			}
		}
	}
	for _, name := range info.order {
		if info.fields[name].required && !given[name] {
			r.addProblem(Child(at, name), "is required")
		}
	}
}

// isScalarOfOtherType reports whether a value is a scalar and no text.
func isScalarOfOtherType(v any) bool {
	switch v.(type) {
	case bool, int64, float64:
		return true
	}
	return false
}

// foldKey returns a key as fields are looked up.
func (r *valueReader) foldKey(key string) string {
	if r.Loose {
		return strings.ToLower(key)
	}
	return key
}

// checkEnums checks a text, or every text of a map.
func (r *valueReader) checkEnums(at []any, v reflect.Value, enum []string) {
	if m, ok := v.Interface().(map[string]string); ok {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			r.checkEnum(Child(at, key), m[key], enum)
		}
		return
	}
	r.checkEnum(at, v.String(), enum)
}

func (r *valueReader) checkEnum(at []any, value string, enum []string) {
	if !slices.Contains(enum, value) {
		r.addProblem(at, "%q is not one of %s%s", value, strings.Join(enum, ", "), DidYouMean(value, enum))
	}
}

func (r *valueReader) decodeMap(at []any, v any, target reflect.Value) {
	m, ok := v.(map[string]any)
	if !ok {
		r.problems.WrongType(at, v, "a map")
		return
	}
	if target.Type().Elem().Kind() == reflect.Interface {
		target.Set(reflect.ValueOf(m))
		return
	}
	out := reflect.MakeMapWithSize(target.Type(), len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		e := reflect.New(target.Type().Elem()).Elem()
		r.decodeValue(Child(at, key), m[key], e)
		out.SetMapIndex(reflect.ValueOf(key), e)
	}
	target.Set(out)
}

func (r *valueReader) decodeList(at []any, v any, target reflect.Value) {
	l, ok := v.([]any)
	if text, isText := v.(string); isText && r.Loose && target.Type().Elem().Kind() == reflect.String {
		for part := range strings.SplitSeq(text, ",") {
			l = append(l, part)
		}
		ok = true
	}
	if !ok {
		r.problems.WrongType(at, v, "a list")
		return
	}
	out := reflect.MakeSlice(target.Type(), len(l), len(l))
	for i, e := range l {
		r.decodeValue(Child(at, i), e, out.Index(i))
	}
	target.Set(out)
}

// decodeItself hands a value to a type that reads JSON.
func (r *valueReader) decodeItself(at []any, v any, target reflect.Value) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, target.Addr().Interface())
	}
	switch {
	case err == nil:
	case target.Type().Name() == "Duration":
		r.problems.WrongType(at, v, wantTime)
	default:
		r.addProblem(at, "cannot be read: %v", err)
	}
}
