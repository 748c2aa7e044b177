// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/manifest"
)

// Document is one document of a YAML file: its value, as Kubernetes reads it, and where its keys are.
type Document struct {
	// Value is made of maps, lists and scalars (int64 and float64 for numbers).
	Value any
	root  *yamlv3.Node
}

// ReadAll reads the documents of a YAML or JSON file as Kubernetes reads them. Those without content are left out. The
// error is about text that is no YAML, or that is longer than limit bytes.
func ReadAll(data []byte, limit int) ([]*Document, error) {
	switch {
	case len(data) > limit:
		return nil, fmt.Errorf("it has %d bytes, which is more than the %d that it may have", len(data), limit)
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8 text")
	}
	roots, err := rootsOf(data)
	if err != nil {
		return nil, explainSyntaxError(data, err)
	}
	docs := make([]*Document, len(roots))
	for i, root := range roots {
		text := data
		if len(roots) > 1 {
			if text, err = yamlv3.Marshal(root); err != nil {
				return nil, err
			}
		}
		docs[i] = &Document{root: root}
		if docs[i].Value, err = valueOf(text); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// ReadOne is ReadAll for a file that has to hold one document.
func ReadOne(data []byte, limit int) (*Document, error) {
	docs, err := ReadAll(data, limit)
	switch {
	case err != nil:
		return nil, err
	case len(docs) == 0:
		return nil, errors.New("it is empty")
	case len(docs) > 1:
		return nil, fmt.Errorf("line %d: a second document begins here; a file of this kind has one object%s", docs[1].Line(), describeKinds(docs))
	}
	return docs[0], nil
}

// describeKinds names the kinds of documents, for people who have named the wrong file.
func describeKinds(docs []*Document) string {
	var kinds []string
	for _, d := range docs {
		top, _ := d.Value.(map[string]any)
		if kind, ok := top["kind"].(string); ok && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return ", and this one has " + strings.Join(kinds, ", ")
}

// valueOf reads a document as Kubernetes does.
func valueOf(text []byte) (any, error) {
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	var v any
	err = utiljson.Unmarshal(asJSON, &v)
	return v, err
}

// rootsOf returns the root nodes of the documents that have content.
func rootsOf(data []byte) ([]*yamlv3.Node, error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	var roots []*yamlv3.Node
	for {
		doc := &yamlv3.Node{}
		err := decoder.Decode(doc)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return nil, err
		}
		if len(doc.Content) > 0 && doc.Content[0].ShortTag() != "!!null" {
			roots = append(roots, doc.Content[0])
		}
	}
}

// explainSyntaxError returns the error of Prerig's own parser, which names the place of the mistake and not where the parser of YAML
// noticed it, or err where it finds none.
func explainSyntaxError(data []byte, err error) error {
	file, own := manifest.Parse("", data)
	if own != nil {
		return err
	}
	for _, doc := range file.Docs {
		if doc.Empty() {
			continue
		}
		if _, own := doc.Object(); own != nil {
			return cmp.Or(errors.Unwrap(own), own)
		}
	}
	return err
}

// Line returns the line of the document's first key.
func (d *Document) Line() int { return d.root.Line }

// Duplicates returns the keys that occur twice, compared by the result of fold (nil: as they are). A reader would
// silently use one of each. An alias repeats its anchor's content and is not searched.
func (d *Document) Duplicates(fold func(string) string) []Problem {
	if fold == nil {
		fold = func(key string) string { return key }
	}
	var out []Problem
	walkNodes(nil, d.root, func(at []any, n *yamlv3.Node) {
		lines := map[string]int{}
		for i := 0; n.Kind == yamlv3.MappingNode && i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			name := fold(key.Value)
			if first, ok := lines[name]; ok && key.ShortTag() != "!!merge" {
				out = append(out, Problem{Path: Child(at, key.Value), Line: key.Line, Column: key.Column, Message: fmt.Sprintf("is given twice, first in line %d", first)})
			}
			lines[name] = key.Line
		}
	})
	return out
}

// Aliases returns the places of aliases, for objects in which they only obscure the content.
func (d *Document) Aliases() []Problem {
	var out []Problem
	walkNodes(nil, d.root, func(at []any, n *yamlv3.Node) {
		if n.Kind == yamlv3.AliasNode {
			out = append(out, Problem{Path: at, Line: n.Line, Column: n.Column, Message: "is an alias, which cannot be used here"})
		}
	})
	return out
}

// walkNodes visits a node and its descendants, but not the targets of aliases.
func walkNodes(at []any, n *yamlv3.Node, visit func(at []any, n *yamlv3.Node)) {
	visit(at, n)
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			walkNodes(Child(at, n.Content[i].Value), n.Content[i+1], visit)
		}
	case yamlv3.SequenceNode:
		for i, e := range n.Content {
			walkNodes(Child(at, i), e, visit)
		}
	}
}

// Locate returns the position of a key, or of a list element.
func (d *Document) Locate(path ...any) (line, col int, ok bool) {
	n, mark := d.root, d.root
	for _, e := range path {
		if n.Kind == yamlv3.AliasNode {
			n = n.Alias
		}
		switch e := e.(type) {
		case string:
			mark, n = findField(n, e, 0)
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

// LineIn returns the line of the field at a path, or of the nearest part of it that exists. A path may lead into a text
// that is YAML itself. Where the field is a block of text, line counts in it, from 1; 0 is the field itself.
func (d *Document) LineIn(path []any, line int) int {
	n, found := d.root, d.root.Line
	for i, e := range path {
		if n.Kind == yamlv3.AliasNode {
			n = n.Alias
		}
		if n.Kind == yamlv3.ScalarNode {
			inner, err := ReadOne([]byte(n.Value), len(n.Value))
			if err != nil || n.Style != yamlv3.LiteralStyle {
				return found
			}
			return n.Line + inner.LineIn(path[i:], line)
		}
		at, _, ok := (&Document{root: n}).Locate(e)
		if !ok {
			return found
		}
		found, n = at, childOf(n, e)
	}
	if line > 0 && n.Kind == yamlv3.ScalarNode && n.Style == yamlv3.LiteralStyle {
		return n.Line + line
	}
	return found
}

// childOf returns the value of a key or an element that exists.
func childOf(n *yamlv3.Node, e any) *yamlv3.Node {
	if i, ok := e.(int); ok {
		return n.Content[i]
	}
	_, value := findField(n, e.(string), 0)
	return value
}

// findField finds a key and its value in a map, also among what is merged into it.
func findField(n *yamlv3.Node, name string, depth int) (key, value *yamlv3.Node) {
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	if n.Kind != yamlv3.MappingNode || depth > 10 {
		return nil, nil
	}
	var merged []*yamlv3.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		switch {
		case k.ShortTag() == "!!merge" && n.Content[i+1].Kind == yamlv3.SequenceNode:
			merged = append(merged, n.Content[i+1].Content...)
		case k.ShortTag() == "!!merge":
			merged = append(merged, n.Content[i+1])
		case k.Value == name:
			return k, n.Content[i+1]
		}
	}
	for _, m := range merged {
		if key, value = findField(m, name, depth+1); key != nil {
			return key, value
		}
	}
	return nil, nil
}
