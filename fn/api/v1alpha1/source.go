// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// source is a policy as text, read twice: as Kubernetes reads it for the values, and as nodes for the lines.
type source struct {
	object     map[string]any
	root       *yamlv3.Node
	duplicates []Problem
}

func readSource(data []byte) (*source, error) {
	switch {
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("it has %d bytes, which is more than the %d that a policy may have", len(data), MaxBytes)
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8 text")
	}
	root, err := onlyDocument(data)
	if err != nil {
		return nil, err
	}
	src := &source{root: root}
	src.findDuplicates(nil, root)
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	var v any
	if err := utiljson.Unmarshal(asJSON, &v); err != nil {
		return nil, err
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is %s, not an object with apiVersion and kind", describe(v))
	}
	src.object = obj
	return src, nil
}

func onlyDocument(data []byte) (*yamlv3.Node, error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	var first *yamlv3.Node
	for {
		doc := &yamlv3.Node{}
		err := decoder.Decode(doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
			continue
		}
		if first != nil {
			return nil, fmt.Errorf("line %d: a second document begins here; a policy is one object in one file", doc.Content[0].Line)
		}
		first = doc.Content[0]
	}
	if first == nil {
		return nil, errors.New("it is empty")
	}
	return first, nil
}

// findDuplicates collects keys that are given twice, of which a reader would silently take one. Below an alias there is
// nothing new to find.
func (s *source) findDuplicates(at []any, n *yamlv3.Node) {
	switch n.Kind {
	case yamlv3.MappingNode:
		lines := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			path := child(at, key.Value)
			if first, ok := lines[key.Value]; ok && key.ShortTag() != "!!merge" {
				s.duplicates = append(s.duplicates, Problem{Path: path, Line: key.Line, Column: key.Column, Message: fmt.Sprintf("is given twice, first in line %d", first)})
			}
			lines[key.Value] = key.Line
			s.findDuplicates(path, n.Content[i+1])
		}
	case yamlv3.SequenceNode:
		for i, e := range n.Content {
			s.findDuplicates(child(at, i), e)
		}
	}
}

// Locate gives the position of a key, or of a list element.
func (s *source) Locate(path ...any) (line, col int, ok bool) {
	n, mark := s.root, s.root
	for _, e := range path {
		if n.Kind == yamlv3.AliasNode {
			n = n.Alias
		}
		switch e := e.(type) {
		case string:
			mark, n = field(n, e, 0)
		case int:
			if n.Kind != yamlv3.SequenceNode || e >= len(n.Content) {
				return 0, 0, false
			}
			n = n.Content[e]
			mark = n
		}
		if n == nil {
			return 0, 0, false
		}
	}
	return mark.Line, mark.Column, true
}

// field finds a key and its value in a map, also among what is merged into it.
func field(n *yamlv3.Node, name string, depth int) (key, value *yamlv3.Node) {
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	if n.Kind != yamlv3.MappingNode || depth > 10 {
		return nil, nil
	}
	var merged []*yamlv3.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch k := n.Content[i]; {
		case k.ShortTag() == "!!merge" && n.Content[i+1].Kind == yamlv3.SequenceNode:
			merged = append(merged, n.Content[i+1].Content...)
		case k.ShortTag() == "!!merge":
			merged = append(merged, n.Content[i+1])
		case k.Value == name:
			return k, n.Content[i+1]
		}
	}
	for _, m := range merged {
		if key, value = field(m, name, depth+1); key != nil {
			return key, value
		}
	}
	return nil, nil
}
