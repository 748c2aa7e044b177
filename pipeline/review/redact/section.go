// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// section is an entry of an object: the lines from its key to the next key. Its start is taken from the parser: a
// line that looks like a key may be in the middle of a text, and a key need not look like one.
type section struct {
	field string
	line  int  // of the document, from 1
	open  bool // whether it contains no secret data except what kubectl apply records
	keys  map[string]bool
	noted []span
}

// span is the lines from one on and before another.
type span struct{ from, before int }

// isInLastApplied reports whether a line is in what kubectl apply notes.
func (s section) isInLastApplied(line int) bool {
	for _, one := range s.noted {
		if one.from <= line && line < one.before {
			return true
		}
	}
	return false
}

// openFields are the fields of a Secret without secret data, if they are in block style.
var openFields = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "type": true, "immutable": true}

// lastApplied ends the name of an annotation of kubectl apply.
const lastApplied = "last-applied-configuration"

// unambiguousSections returns the entries of the object, none where it is not certain which lines belong to which: all
// of it is then hidden.
func (d document) unambiguousSections() []section {
	entries, ok := d.read.Entries()
	if !ok || d.object == nil {
		return nil
	}
	var out []section
	for i, entry := range entries {
		value, there := d.object[entry.Key]
		if !there || entry.Col != 1 {
			return nil
		}
		one := section{field: entry.Key, line: entry.Line, keys: keysOf(value)}
		_, isMapping := value.(map[string]any)
		_, isList := value.([]any)
		if one.open = openFields[entry.Key] && !isList && isMapping == (entry.Key == "metadata"); one.open && isMapping {
			end := len(d.text) + 2 // beyond the last line
			if i+1 < len(entries) {
				end = entries[i+1].Line
			}
			one.noted, one.open = d.findLastAppliedLines(end)
		}
		out = append(out, one)
	}
	return out
}

// keysOf returns the keys of a mapping, or of those in a list.
func keysOf(value any) map[string]bool {
	keys := map[string]bool{}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, element := range list {
		mapping, _ := element.(map[string]any)
		for key := range mapping {
			keys[key] = true
		}
	}
	return keys
}

// findLastAppliedLines returns the lines that kubectl apply records in metadata, which ends before the line end, or
// false if it records something that cannot be separated from the rest.
func (d document) findLastAppliedLines(end int) (noted []span, ok bool) {
	metadata, _ := d.object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	names := 0
	for name := range annotations {
		if strings.Contains(name, lastApplied) {
			names++
		}
	}
	if names == 0 {
		return nil, true
	}
	fields, _ := d.read.Entries("metadata")
	entries, _ := d.read.Entries("metadata", "annotations")
	for i, field := range fields {
		if field.Key == "annotations" && i+1 < len(fields) {
			end = fields[i+1].Line
		}
	}
	for i, entry := range entries {
		if !strings.Contains(entry.Key, lastApplied) {
			continue
		}
		before := end
		if i+1 < len(entries) {
			before = entries[i+1].Line
		}
		noted = append(noted, span{entry.Line, before})
	}
	return noted, len(noted) == names
}
