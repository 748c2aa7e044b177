// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"reflect"
	"strconv"
	"strings"
)

// fieldInfo is the content of a field's tag.
type fieldInfo struct {
	index        int
	proto        string // name in the .proto file
	json         string // lowerCamel name
	oneof        string
	since, until int // 0: no bound
}

// existsInMinor reports whether the field is known at a minor version.
func (f fieldInfo) existsInMinor(minor int) bool {
	return (f.since == 0 || minor >= f.since) && (f.until == 0 || minor <= f.until)
}

// fieldsOf returns the fields of a message type in the order of their declaration.
func fieldsOf(t reflect.Type) []fieldInfo {
	fields := make([]fieldInfo, 0, t.NumField())
	for i := 0; i < t.NumField(); i++ {
		tag, ok := t.Field(i).Tag.Lookup("pb")
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(tag, ",")
		f := fieldInfo{index: i, proto: name, json: jsonName(name)}
		for rest != "" {
			var option string
			option, rest, _ = strings.Cut(rest, ",")
			key, value, _ := strings.Cut(option, "=")
			switch key {
			case "oneof":
				f.oneof = value
			case "since":
				f.since, _ = strconv.Atoi(value)
			case "until":
				f.until, _ = strconv.Atoi(value)
			}
		}
		fields = append(fields, f)
	}
	return fields
}

// jsonName returns the lowerCamel form of a proto name, as protoc makes it.
func jsonName(proto string) string {
	if !strings.Contains(proto, "_") {
		return proto
	}
	b := make([]byte, 0, len(proto))
	upper := false
	for i := 0; i < len(proto); i++ {
		c := proto[i]
		if c == '_' {
			upper = true
			continue
		}
		if upper && c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper = false
		b = append(b, c)
	}
	return string(b)
}
