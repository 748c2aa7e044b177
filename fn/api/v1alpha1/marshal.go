// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Marshal encodes a policy as YAML that Parse decodes to the same policy: keys in the order of the types, maps
// sorted by key, multi-line texts as literal blocks, unset fields omitted.
func Marshal(p *InjectionPolicy) ([]byte, error) {
	w := &writer{}
	n, err := w.nodeForValue(reflect.ValueOf(*p))
	if err != nil {
		return nil, fmt.Errorf("writing InjectionPolicy %q: %w", p.Metadata.Name, err)
	}
	var b bytes.Buffer
	encoder := yamlv3.NewEncoder(&b)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(n); err != nil {
		return nil, fmt.Errorf("writing InjectionPolicy %q: %w", p.Metadata.Name, err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("writing InjectionPolicy %q: %w", p.Metadata.Name, err)
	}
	return w.replaceTextPlaceholders(b.Bytes()), nil
}

// writer converts a policy to nodes. Multi-line texts are left out at first: the encoder would write one with a
// trailing space on a line, as templates often have, as an unreadable single quoted line.
type writer struct {
	texts []string
}

func (w *writer) nodeForValue(v reflect.Value) (*yamlv3.Node, error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return encodeScalarNode(nil)
		}
		return w.nodeForValue(v.Elem())
	case reflect.Struct:
		return w.structNode(v)
	case reflect.Map:
		return w.mapNode(v)
	case reflect.Slice:
		out := &yamlv3.Node{Kind: yamlv3.SequenceNode}
		if v.Len() == 0 {
			out.Style = yamlv3.FlowStyle
		}
		for i := range v.Len() {
			e, err := w.nodeForValue(v.Index(i))
			if err != nil {
				return nil, err
			}
			out.Content = append(out.Content, e)
		}
		return out, nil
	case reflect.String:
		return w.encodeTextNode(v.String())
	}
	return encodeScalarNode(v.Interface())
}

func (w *writer) structNode(v reflect.Value) (*yamlv3.Node, error) {
	out := &yamlv3.Node{Kind: yamlv3.MappingNode}
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if name == "-" {
			continue
		}
		if strings.Contains(options, "omitempty") && isEmpty(f) {
			continue
		}
		if err := w.appendField(out, name, f); err != nil {
			return nil, err
		}
	}
	if len(out.Content) == 0 {
		out.Style = yamlv3.FlowStyle
	}
	return out, nil
}

func (w *writer) mapNode(v reflect.Value) (*yamlv3.Node, error) {
	out := &yamlv3.Node{Kind: yamlv3.MappingNode}
	keys := map[string]struct{}{}
	for _, k := range v.MapKeys() {
		keys[k.String()] = struct{}{}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if err := w.appendField(out, k, v.MapIndex(reflect.ValueOf(k))); err != nil {
			return nil, err
		}
	}
	if len(out.Content) == 0 {
		out.Style = yamlv3.FlowStyle
	}
	return out, nil
}

func (w *writer) appendField(out *yamlv3.Node, name string, v reflect.Value) error {
	key, err := encodeScalarNode(name)
	if err != nil {
		return err
	}
	value, err := w.nodeForValue(v)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	out.Content = append(out.Content, key, value)
	return nil
}

// isEmpty reports whether a field is omitted: as in encoding/json, plus structs without any set field. An empty
// list, map or selector behind a pointer counts as set.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

// encodeScalarNode lets the encoder choose the quotes, so that every text decodes to itself.
func encodeScalarNode(v any) (*yamlv3.Node, error) {
	n := &yamlv3.Node{}
	if err := n.Encode(v); err != nil {
		return nil, err
	}
	return n, nil
}

const placeholder = "prerig.dev/text-"

// encodeTextNode returns the node of a text, or a placeholder for one that becomes a literal block.
func (w *writer) encodeTextNode(s string) (*yamlv3.Node, error) {
	lines := strings.Contains(strings.TrimSuffix(s, "\n"), "\n") || strings.Contains(s, placeholder)
	if !lines || !fitsBlock(s) {
		return encodeScalarNode(s)
	}
	w.texts = append(w.texts, s)
	return &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!str", Value: placeholder + strconv.Itoa(len(w.texts)-1)}, nil
}

// fitsBlock reports whether a text has only letters that a literal block can hold (YAML 1.2.2, 5.1 and 5.4: printable, and
// no line break but the line feed).
func fitsBlock(s string) bool {
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r >= 0x20 && r <= 0x7e:
		case r >= 0xa0 && r <= 0xd7ff && r != 0x2028 && r != 0x2029, r >= 0xe000 && r <= 0xfffd && r != 0xfeff, r >= 0x10000:
		default:
			return false
		}
	}
	return true
}

// replaceTextPlaceholders replaces the placeholders. Each is at the end of its line, after a key or the dash of a list.
func (w *writer) replaceTextPlaceholders(data []byte) []byte {
	if len(w.texts) == 0 {
		return data
	}
	var b bytes.Buffer
	for line := range bytes.Lines(data) {
		at := bytes.Index(line, []byte(placeholder))
		index, err := -1, error(nil)
		if at >= 0 {
			index, err = strconv.Atoi(string(bytes.TrimSpace(line[at+len(placeholder):])))
		}
		if at < 0 || err != nil {
			b.Write(line)
			continue
		}
		b.Write(line[:at])
		indent := len(line) - len(bytes.TrimLeft(line, " -")) + 2
		if isElement := len(bytes.TrimLeft(line[:at], " -")) == 0; isElement {
			indent = at
		}
		writeBlock(&b, w.texts[index], indent)
	}
	return b.Bytes()
}

// writeBlock writes a literal block (YAML 1.2.2, 8.1): its header, with the indentation where the first line would
// mislead a reader about it, and its lines.
func writeBlock(b *bytes.Buffer, text string, indent int) {
	b.WriteByte('|')
	if first := strings.TrimLeft(text, "\n"); first == "" || first[0] == ' ' || first[0] == '\t' {
		b.WriteByte('2')
	}
	body := strings.TrimSuffix(text, "\n")
	switch {
	case body == text:
		b.WriteByte('-')
	case body == "" || strings.HasSuffix(body, "\n"):
		b.WriteByte('+')
	}
	b.WriteByte('\n')
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			b.WriteString(strings.Repeat(" ", indent))
			b.WriteString(line)
		}
		b.WriteByte('\n')
	}
}
