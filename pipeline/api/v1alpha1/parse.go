// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// maxDocument bounds a document, so that aliases cannot make a small file large.
const maxDocument = 1 << 20

// Parse decodes one RenderPipeline strictly, sets its defaults and validates it. Errors name the key's path and line.
func Parse(data []byte) (*RenderPipeline, error) {
	all, err := ParseAll(data)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("expected one %s, found %d", Kind, len(all))
	}
	return all[0], nil
}

// ParseAll decodes every document of a YAML stream, each of which must be a RenderPipeline. Further checks are made after
// the validation; a FieldError of theirs gets the line of its field.
func ParseAll(data []byte, checks ...func(*RenderPipeline) error) ([]*RenderPipeline, error) {
	if len(data) > maxDocument {
		return nil, fmt.Errorf("file has %d bytes, more than %d", len(data), maxDocument)
	}
	var out []*RenderPipeline
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parsing YAML: %w", err)
		}
		if node.Kind != yaml.DocumentNode || len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
			continue
		}
		pipeline, err := fromNode(node.Content[0])
		if err != nil {
			return nil, err
		}
		for _, check := range checks {
			if err := check(pipeline); err != nil {
				return nil, located(err, node.Content[0])
			}
		}
		out = append(out, pipeline)
	}
}

func fromNode(root *yaml.Node) (*RenderPipeline, error) {
	if err := checkType(root); err != nil {
		return nil, err
	}
	var errs []error
	checkKeys(root, reflect.TypeFor[RenderPipeline](), "", &errs)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	text, err := yaml.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("reading RenderPipeline: %w", err)
	}
	pipeline := &RenderPipeline{}
	if err := sigsyaml.Unmarshal(text, pipeline); err != nil {
		return nil, fmt.Errorf("line %d: decoding RenderPipeline: %w", root.Line, err)
	}
	pipeline.Default()
	if err := pipeline.Validate(); err != nil {
		return nil, located(err, root)
	}
	return pipeline, nil
}

func checkType(root *yaml.Node) error {
	apiVersion, kind := scalar(root, "apiVersion"), scalar(root, "kind")
	if root.Kind != yaml.MappingNode || kind == "" {
		return fmt.Errorf("line %d: not an object with apiVersion and kind", root.Line)
	}
	if kind != Kind || apiVersion != APIVersion {
		return fmt.Errorf("line %d: found %s %s, expected %s %s", root.Line, apiVersion, kind, APIVersion, Kind)
	}
	return nil
}

func scalar(node *yaml.Node, key string) string {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Kind == yaml.MappingNode && node.Content[i].Value == key {
			return node.Content[i+1].Value
		}
	}
	return ""
}

// open are the fields under which unknown keys are accepted: tools add their own metadata, and status is not the user's.
var open = map[string]bool{"metadata": true, "status": true}

// checkKeys reports keys that the type does not have, keys given twice and values of a wrong shape. Aliases and merge
// keys are refused: a pipeline is short, and they only hide what it says.
func checkKeys(node *yaml.Node, t reflect.Type, path string, errs *[]error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if node.Kind == yaml.AliasNode {
		*errs = append(*errs, fmt.Errorf("line %d: %s: aliases are not supported here", node.Line, path))
		return
	}
	if node.Tag == "!!null" || open[path] {
		return
	}
	switch decodesItself := reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ UnmarshalJSON([]byte) error }]()); {
	case decodesItself:
		checkValue(node, t, path, errs)
	case t.Kind() == reflect.Struct:
		checkStruct(node, t, path, errs)
	case t.Kind() == reflect.Slice:
		if node.Kind != yaml.SequenceNode {
			*errs = append(*errs, fmt.Errorf("line %d: %s: expected a list", node.Line, path))
			return
		}
		for i, item := range node.Content {
			checkKeys(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i), errs)
		}
	case t.Kind() == reflect.Map:
		if node.Kind != yaml.MappingNode {
			*errs = append(*errs, fmt.Errorf("line %d: %s: expected a map", node.Line, path))
		}
	default:
		if node.Kind != yaml.ScalarNode {
			*errs = append(*errs, fmt.Errorf("line %d: %s: expected a single value", node.Line, path))
			return
		}
		checkValue(node, t, path, errs)
	}
}

// checkValue decodes one value on its own: what decodes the whole does not tell the line.
func checkValue(node *yaml.Node, t reflect.Type, path string, errs *[]error) {
	text, err := yaml.Marshal(node)
	if err == nil {
		err = sigsyaml.Unmarshal(text, reflect.New(t).Interface())
	}
	if err != nil {
		*errs = append(*errs, fmt.Errorf("line %d: %s: expected %s, found %.60s", node.Line, path, expected(t), strings.Join(strings.Fields(string(text)), " ")))
	}
}

func expected(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[metav1.Duration]():
		return "a time with its unit, such as 5m"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.String:
		return "a text"
	}
	return "another value"
}

func checkStruct(node *yaml.Node, t reflect.Type, path string, errs *[]error) {
	if node.Kind != yaml.MappingNode {
		*errs = append(*errs, fmt.Errorf("line %d: %s: expected an object", node.Line, path))
		return
	}
	fields := fieldsOf(t)
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		field, ok := fields[key.Value]
		switch {
		case seen[key.Value]:
			*errs = append(*errs, fmt.Errorf("line %d: %s: given twice", key.Line, at))
		case !ok:
			*errs = append(*errs, fmt.Errorf("line %d: %s: unknown key; known here: %s", key.Line, at, names(fields)))
		default:
			checkKeys(node.Content[i+1], field, at, errs)
		}
		seen[key.Value] = true
	}
}

func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && options == "inline" {
			for key, value := range fieldsOf(field.Type) {
				fields[key] = value
			}
			continue
		}
		fields[name] = field.Type
	}
	return fields
}

func names(fields map[string]reflect.Type) string {
	var out []string
	for name := range fields {
		out = append(out, name)
	}
	sort.Strings(out)
	return strings.Join(out, ", ")
}

// located adds the line of the key that a validation error is about.
func located(err error, root *yaml.Node) error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var out []error
		for _, one := range joined.Unwrap() {
			out = append(out, located(one, root))
		}
		return errors.Join(out...)
	}
	var field *FieldError
	if !errors.As(err, &field) {
		return err
	}
	line := root.Line
	node := root
	for _, part := range strings.FieldsFunc(field.Path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next, at := child(node, part)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return fmt.Errorf("line %d: %w", line, err)
}

func child(node *yaml.Node, part string) (*yaml.Node, int) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == part {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		index := 0
		if _, err := fmt.Sscanf(part, "%d", &index); err == nil && index < len(node.Content) {
			return node.Content[index], node.Content[index].Line
		}
	}
	return nil, 0
}
