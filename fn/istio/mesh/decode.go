// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/fn/strict"
)

// decoder decodes proto JSON into the model as istiod does: field names in lowerCamel or as in the .proto file,
// enums as names or numbers, durations as "5s", wrappers as bare values. A field that is set replaces the previous
// value; null leaves it. Unknown fields are dropped with a warning; a value of a wrong type is an error.
type decoder struct {
	release  release.Release
	warnings []string
}

// parseYAML reads one YAML document whose root is a mapping. An empty one is an empty map.
func parseYAML(text string) (map[string]any, error) {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	default:
		return nil, fmt.Errorf("want a mapping, have %s", kindOf(v))
	}
}

// decodeMessage decodes in over the struct dst.
func (d *decoder) decodeMessage(dst reflect.Value, in map[string]any, path string) error {
	fields := fieldsOf(dst.Type())
	used := make(map[string]bool, len(in))
	group := map[string]string{}
	for _, f := range fields {
		v, name, found := lookupField(in, f)
		if !found {
			continue
		}
		used[f.proto], used[f.json] = true, true
		where := joinPath(path, name)
		if !f.existsInMinor(d.release.Minor) {
			d.warnings = append(d.warnings, fmt.Sprintf("field %s does not exist in Istio 1.%d and is ignored", where, d.release.Minor))
			continue
		}
		if v == nil {
			continue
		}
		if f.oneof != "" {
			if other, ok := group[f.oneof]; ok {
				d.warnings = append(d.warnings, fmt.Sprintf("field %s is ignored: only one of %s and %s can be set", joinPath(path, other), other, name))
			}
			group[f.oneof] = name
			clearOneof(dst, fields, f.oneof)
		}
		if err := d.decodeValue(dst.Field(f.index), v, where); err != nil {
			return err
		}
		d.checkFormat(dst.Type().Name(), f.json, v, where)
	}
	unknown := make([]string, 0, len(in))
	for key := range in {
		if !used[key] {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	sort.Strings(unknown)
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		known = append(known, f.json)
	}
	for _, key := range unknown {
		d.warnings = append(d.warnings, fmt.Sprintf("field %s is not known and is ignored%s", joinPath(path, key), strict.DidYouMean(key, known)))
	}
	return nil
}

func lookupField(in map[string]any, f fieldInfo) (v any, name string, found bool) {
	if v, found = in[f.json]; found {
		return v, f.json, true
	}
	v, found = in[f.proto]
	return v, f.proto, found
}

func clearOneof(dst reflect.Value, fields []fieldInfo, group string) {
	for _, f := range fields {
		if f.oneof == group {
			dst.Field(f.index).SetZero()
		}
	}
}

// decodeValue decodes a JSON value that is not null into dst, replacing it.
func (d *decoder) decodeValue(dst reflect.Value, v any, path string) error {
	switch dst.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(dst.Type().Elem())
		if err := d.decodePointer(fresh, v, path); err != nil {
			return err
		}
		dst.Set(fresh)
		return nil
	case reflect.Slice:
		return d.decodeList(dst, v, path)
	case reflect.Map:
		return d.decodeMap(dst, v, path)
	default:
		return decodeScalar(dst, v, path)
	}
}

func (d *decoder) decodePointer(fresh reflect.Value, v any, path string) error {
	switch x := fresh.Interface().(type) {
	case *Duration:
		return decodeDuration(x, v, path)
	case *BoolValue, *Int32Value, *UInt32Value, *Int64Value:
		return decodeScalar(fresh.Elem().Field(0), v, path)
	}
	if fresh.Elem().Kind() != reflect.Struct {
		return decodeScalar(fresh.Elem(), v, path)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return wrongType(path, "a mapping", v)
	}
	if pc, ok := fresh.Interface().(*ProxyConfig); ok {
		pc.release = d.release
	}
	return d.decodeMessage(fresh.Elem(), m, path)
}

func (d *decoder) decodeList(dst reflect.Value, v any, path string) error {
	items, ok := v.([]any)
	if !ok {
		return wrongType(path, "a list", v)
	}
	out := reflect.MakeSlice(dst.Type(), len(items), len(items))
	for i, item := range items {
		where := path + "[" + strconv.Itoa(i) + "]"
		if item == nil {
			setEmpty(out.Index(i))
			continue
		}
		if err := d.decodeValue(out.Index(i), item, where); err != nil {
			return err
		}
	}
	dst.Set(out)
	return nil
}

func (d *decoder) decodeMap(dst reflect.Value, v any, path string) error {
	m, ok := v.(map[string]any)
	if !ok {
		return wrongType(path, "a mapping", v)
	}
	if dst.Type() == reflect.TypeFor[Struct]() {
		dst.Set(reflect.ValueOf(Struct(m)))
		return nil
	}
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	out := reflect.MakeMapWithSize(dst.Type(), len(m))
	for _, key := range keys {
		element := reflect.New(dst.Type().Elem()).Elem()
		if m[key] == nil {
			setEmpty(element)
		} else if err := d.decodeValue(element, m[key], joinPath(path, key)); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(key), element)
	}
	dst.Set(out)
	return nil
}

// setEmpty makes an element of a list or map that is null what istiod's decoder makes of it: a message without fields, or a
// zero.
func setEmpty(element reflect.Value) {
	if element.Kind() == reflect.Pointer {
		element.Set(reflect.New(element.Type().Elem()))
	}
}

// decodeScalar decodes a string, bool, number or enum.
func decodeScalar(dst reflect.Value, v any, path string) error {
	if e, ok := dst.Interface().(enum); ok {
		return decodeEnum(dst, e.names(), v, path)
	}
	switch dst.Kind() {
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			return wrongType(path, "a string", v)
		}
		dst.SetString(s)
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return wrongType(path, "true or false", v)
		}
		dst.SetBool(b)
	case reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(numberDigits(v), 10, dst.Type().Bits())
		if err != nil {
			return wrongType(path, "a whole number of "+strconv.Itoa(dst.Type().Bits())+" bits", v)
		}
		dst.SetInt(n)
	case reflect.Uint32:
		n, err := strconv.ParseUint(numberDigits(v), 10, 32)
		if err != nil {
			return wrongType(path, "a whole number that is not negative", v)
		}
		dst.SetUint(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(numberDigits(v), 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return wrongType(path, "a number", v)
		}
		dst.SetFloat(n)
	default:
		return fmt.Errorf("%s: the model has a field of kind %s", path, dst.Kind())
	}
	return nil
}

// numberDigits returns the digits of a JSON number, which may be quoted.
func numberDigits(v any) string {
	switch v := v.(type) {
	case json.Number:
		return v.String()
	case string:
		return v
	default:
		return ""
	}
}

func decodeEnum(dst reflect.Value, names enumNames, v any, path string) error {
	if s, ok := v.(string); ok {
		n, ok := names.valueOfName(s)
		if !ok {
			known := make([]string, len(names))
			for i, e := range names {
				known[i] = e.name
			}
			return fmt.Errorf("%s: %q is none of %s", path, s, strings.Join(known, ", "))
		}
		dst.SetInt(int64(n))
		return nil
	}
	n, err := strconv.ParseInt(numberDigits(v), 10, 32)
	if err != nil {
		return wrongType(path, "the name or number of an enum value", v)
	}
	dst.SetInt(n)
	return nil
}

func decodeDuration(dst *Duration, v any, path string) error {
	s, ok := v.(string)
	if !ok {
		return wrongType(path, `a duration such as "5s"`, v)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf(`%s: want a duration such as "5s", have %q`, path, s)
	}
	*dst = *NewDuration(d)
	return nil
}

func wrongType(path, want string, v any) error {
	return fmt.Errorf("%s: want %s, have %s", path, want, kindOf(v))
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "the string " + strconv.Quote(v)
	case json.Number:
		return "the number " + v.String()
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	default:
		return fmt.Sprintf("%T", v)
	}
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
