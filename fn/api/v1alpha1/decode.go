// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// decode fills target, a settable value, from a value of maps, lists and scalars, and collects every problem instead of
// stopping at the first.
func (ps *problems) decode(at []any, v any, target reflect.Value) {
	switch target.Kind() {
	case reflect.Pointer:
		p := reflect.New(target.Type().Elem())
		ps.decode(at, v, p.Elem())
		target.Set(p)
	case reflect.Interface:
		if v != nil {
			target.Set(reflect.ValueOf(v))
		}
	case reflect.Struct:
		if m, ok := v.(map[string]any); ok {
			ps.decodeStruct(at, m, target)
		} else {
			ps.wrongType(at, v, "a map")
		}
	case reflect.Map:
		ps.decodeMap(at, v, target)
	case reflect.Slice:
		ps.decodeList(at, v, target)
	default:
		ps.decodeScalar(at, v, target)
	}
}

func (ps *problems) decodeStruct(at []any, m map[string]any, target reflect.Value) {
	info := infoOf(target.Type())
	for _, key := range sortedKeys(m) {
		f, ok := info.fields[key]
		switch {
		case !ok && info.lenient:
		case !ok:
			ps.add(child(at, key), "unknown field%s", suggestion(at, key, info))
		case m[key] == nil && info.lenient:
		default:
			before := len(ps.list)
			ps.decode(child(at, key), m[key], target.Field(f.index))
			if f.enum != nil && len(ps.list) == before {
				ps.checkEnums(child(at, key), target.Field(f.index), f.enum)
			}
		}
	}
	for _, name := range info.order {
		if f := info.fields[name]; f.required {
			if _, ok := m[name]; !ok {
				ps.add(child(at, name), "is required")
			}
		}
	}
}

// checkEnums checks a text, or every text of a map.
func (ps *problems) checkEnums(at []any, v reflect.Value, enum []string) {
	if m, ok := v.Interface().(map[string]string); ok {
		for _, key := range sortedKeys(m) {
			ps.checkEnum(child(at, key), m[key], enum)
		}
		return
	}
	ps.checkEnum(at, v.String(), enum)
}

func (ps *problems) checkEnum(at []any, value string, enum []string) {
	if !slices.Contains(enum, value) {
		ps.add(at, "%q is not one of %s%s", value, strings.Join(enum, ", "), didYouMean(value, enum))
	}
}

func (ps *problems) decodeMap(at []any, v any, target reflect.Value) {
	m, ok := v.(map[string]any)
	if !ok {
		ps.wrongType(at, v, "a map")
		return
	}
	if target.Type().Elem().Kind() == reflect.Interface {
		target.Set(reflect.ValueOf(m))
		return
	}
	out := reflect.MakeMapWithSize(target.Type(), len(m))
	for _, key := range sortedKeys(m) {
		e := reflect.New(target.Type().Elem()).Elem()
		ps.decode(child(at, key), m[key], e)
		out.SetMapIndex(reflect.ValueOf(key), e)
	}
	target.Set(out)
}

func (ps *problems) decodeList(at []any, v any, target reflect.Value) {
	l, ok := v.([]any)
	if !ok {
		ps.wrongType(at, v, "a list")
		return
	}
	out := reflect.MakeSlice(target.Type(), len(l), len(l))
	for i, e := range l {
		ps.decode(child(at, i), e, out.Index(i))
	}
	target.Set(out)
}

func (ps *problems) decodeScalar(at []any, v any, target reflect.Value) {
	switch target.Kind() {
	case reflect.String:
		if s, ok := v.(string); ok {
			target.SetString(s)
			return
		}
		ps.wrongType(at, v, "a string")
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			target.SetBool(b)
			return
		}
		ps.wrongType(at, v, "true or false")
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, ok := v.(int64)
		if f, isFloat := v.(float64); isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			i, ok = int64(f), true
		}
		if ok && !target.OverflowInt(i) {
			target.SetInt(i)
			return
		}
		ps.wrongType(at, v, "a whole number")
	case reflect.Float64:
		switch v := v.(type) {
		case float64:
			target.SetFloat(v)
		case int64:
			target.SetFloat(float64(v))
		default:
			ps.wrongType(at, v, "a number")
		}
	default:
		ps.add(at, "cannot be read: the type %s is not supported", target.Type())
	}
}

func (ps *problems) wrongType(at []any, v any, want string) {
	switch v := v.(type) {
	case nil:
		ps.add(at, "has no value; it must be %s, or remove the key", want)
	case string:
		ps.add(at, "must be %s, is the text %s", want, quoted(v))
	case map[string]any:
		ps.add(at, "must be %s, is a map", want)
	case []any:
		ps.add(at, "must be %s, is a list", want)
	default:
		text := fmt.Sprint(v)
		if f, ok := v.(float64); ok {
			text = strconv.FormatFloat(f, 'g', -1, 64)
		}
		if want == "a string" {
			ps.add(at, "must be a string, is %s; put it in quotes", text)
			return
		}
		ps.add(at, "must be %s, is %s", want, text)
	}
}

// quoted quotes a text, shortened if it is long.
func quoted(s string) string {
	if r := []rune(s); len(r) > 40 {
		return strconv.Quote(string(r[:40])) + "…"
	}
	return strconv.Quote(s)
}

// structInfo is what the decoder knows about a type of this package.
type structInfo struct {
	fields  map[string]fieldInfo
	order   []string
	lenient bool
}

type fieldInfo struct {
	index    int
	required bool
	enum     []string
}

func infoOf(t reflect.Type) *structInfo {
	info := &structInfo{fields: map[string]fieldInfo{}, lenient: slices.Contains(lenientTypes, t.Name())}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		info.order = append(info.order, name)
		info.fields[name] = fieldInfo{
			index:    i,
			required: !strings.Contains(options, "omitempty"),
			enum:     enums[t.Name()+"."+t.Field(i).Name],
		}
	}
	return info
}

// imageFields are what people look for to change the proxy's image, by where it is in the injector's values.
var imageFields = map[string]string{"tag": "global.tag", "hub": "global.hub", "variant": "global.variant"}

// suggestion says what is meant by an unknown field, or which ones there are.
func suggestion(at []any, key string, info *structInfo) string {
	value, ok := imageFields[key]
	outer := len(at) == 1 && at[0] == "spec" || len(at) > 1 && len(at) < 4 && at[1] == "istio"
	if !ok || !outer {
		return info.suggest(key)
	}
	return "; it is written as spec.istio.injector.overrides." + value
}

func (i *structInfo) suggest(key string) string {
	if s := didYouMean(key, i.order); s != "" {
		return s
	}
	names := slices.Clone(i.order)
	sort.Strings(names)
	return "; known fields are " + strings.Join(names, ", ")
}

// didYouMean names the known word that the given one was probably meant to be.
func didYouMean(word string, known []string) string {
	best, at := 3, ""
	for _, k := range known {
		d := distance(strings.ToLower(word), strings.ToLower(k))
		if d < best && d*3 <= len(k)+1 {
			best, at = d, k
		}
	}
	if at == "" {
		return ""
	}
	return ", did you mean " + at + "?"
}

// distance is the number of letters to change, insert or remove to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
