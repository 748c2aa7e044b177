// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"reflect"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

// ReadDocument returns the objects of a document: itself, or the elements of a list; none for an empty one. Lines are those of the
// document source, which is what the user wrote; it may be the document itself.
func ReadDocument(doc, source *manifest.Document, path string) ([]Object, error) {
	if doc.Empty() {
		return nil, nil
	}
	elements, isList, err := doc.Items()
	if err != nil {
		return nil, err
	}
	if isList {
		return readList(elements, source, path)
	}
	value, err := doc.Object()
	if err != nil {
		return nil, err
	}
	o := Object{Value: value, File: &result.File{Path: path, Index: source.Index(), Line: source.Line()}}
	written, err := source.Object()
	if err != nil {
		return nil, err
	}
	o.Line = func(at []any) int { return lineOf(source, writtenPath(at, value, written)) }
	if doc != source && !reflect.DeepEqual(value, written) {
		o.Before = written
	}
	return []Object{o}, nil
}

func readList(elements []*manifest.Document, source *manifest.Document, path string) ([]Object, error) {
	written, _, err := source.Items()
	if err != nil {
		return nil, err
	}
	var out []Object
	for i, element := range elements {
		from := source
		if i < len(written) {
			from = written[i]
		}
		objects, err := ReadDocument(element, from, path)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

// writtenPath maps the path of a field in the object to its path in what the user wrote: an injection may have
// added containers before those of the user. The path ends where only the object continues.
func writtenPath(path []any, object, written any) []any {
	var out []any
	for _, key := range path {
		object = Child(object, key)
		if list, ok := written.([]any); ok {
			if name := nameOf(object); name != "" && nameOf(Child(list, key)) != name {
				key = indexOf(list, name)
			}
		}
		if written = Child(written, key); written == nil {
			break
		}
		out = append(out, key)
	}
	return out
}

func nameOf(object any) string {
	fields, _ := object.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// indexOf returns the index of the element with a name, or -1 if none exists.
func indexOf(list []any, name string) int {
	for i, item := range list {
		if nameOf(item) == name {
			return i
		}
	}
	return -1
}

// lineOf returns the line of a field, or of the nearest one around it; that of the document where none is found.
func lineOf(doc *manifest.Document, path []any) int {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if line, _, ok := doc.Locate(path...); ok {
			return line
		}
	}
	return doc.Line()
}

// Child returns the value of a field or the element of a list, or nil if none exists.
func Child(object, key any) any {
	switch k := key.(type) {
	case string:
		fields, _ := object.(map[string]any)
		return fields[k]
	case int:
		if list, ok := object.([]any); ok && k >= 0 && k < len(list) {
			return list[k]
		}
	}
	return nil
}
