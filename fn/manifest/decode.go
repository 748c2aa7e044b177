// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strconv"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Decode reads plain YAML or JSON text as Kubernetes reads it (sigs.k8s.io/yaml and then JSON): the values are
// map[string]any, []any, string, bool, int64, float64 and nil. It reads only the first document of a stream.
// Duplicate keys, more than MaxDepth levels, more than MaxDocument bytes and aliases that expand to more than
// MaxAliased values are errors; errors name the line.
func Decode(src []byte) (any, error) {
	if err := checkText("", src); err != nil {
		return nil, err
	}
	text := string(src)
	if i := secondDocument(text); i >= 0 {
		text = text[:i]
	}
	v, err := decodeText(text, 0, -1, false, nil)
	if err != nil {
		return nil, atLine(err, text, 1)
	}
	return v, nil
}

// decodeText decodes the text of one document.
func decodeText(text string, col0, parent int, inFlow bool, outer func(string) *yamlNode) (any, error) {
	store := nodeStores.Get().(*nodeStore)
	defer store.releaseNodes()
	root, err := parseInto(store, text, col0, parent, inFlow, outer)
	if err == nil {
		d := nodeDecoder{}
		var v any
		if v, err = d.decodeValue(root); err == nil {
			return v, nil
		}
	}
	if se := asSyntaxError(err); se == nil || !se.unsure {
		return nil, err
	}
	v, ferr := decodeFallback(strings.Repeat(" ", col0) + text)
	if ferr != nil {
		if strings.Contains(ferr.Error(), "twice") {
			return nil, ferr
		}
		return nil, err // the own message has the place and speaks of the same trouble
	}
	return v, nil
}

// decodeFallback decodes with sigs.k8s.io/yaml what the parser here does not read.
func decodeFallback(text string) (any, error) {
	js, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil && strings.Contains(text, "<<") { // strict decoding reports an overridden merged key as a duplicate
		js, err = yaml.YAMLToJSON([]byte(text))
	}
	if err != nil {
		return nil, err
	}
	var raw any
	if err := yamlv2.Unmarshal([]byte(text), &raw); err != nil {
		return nil, err
	}
	if err := checkKeys(raw); err != nil {
		return nil, err
	}
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(js, &v); err != nil {
		return nil, err
	}
	if isDeeper(v, MaxDepth) {
		return nil, fmt.Errorf("the nesting is deeper than %d levels", MaxDepth)
	}
	return v, nil
}

// checkKeys refuses keys that are different to YAML and the same as text, such as 1 and "1": which of them JSON gets is
// left to chance.
func checkKeys(v any) error {
	switch v := v.(type) {
	case map[any]any:
		seen := make(map[string]bool, len(v))
		for k, e := range v {
			if f, ok := k.(float64); ok {
				k = strconv.FormatFloat(f, 'g', -1, 32)
			}
			text := fmt.Sprint(k)
			if seen[text] {
				return fmt.Errorf("found the key %q twice in the same mapping", text)
			}
			seen[text] = true
			if err := checkKeys(e); err != nil {
				return err
			}
		}
	case []any:
		for _, e := range v {
			if err := checkKeys(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func isDeeper(v any, limit int) bool {
	if limit == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if isDeeper(e, limit-1) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if isDeeper(e, limit-1) {
				return true
			}
		}
	}
	return false
}

// nodeDecoder turns nodes into values.
type nodeDecoder struct {
	aliased int // values made inside aliases so far
	inAlias int
	keep    bool // note the values in the nodes
	// lastWins has the last of several entries of one key count, which is an error otherwise.
	lastWins bool
	// instead, when set, returns the value that a node has after an edit.
	instead func(*yamlNode) (any, bool)
}

func (d *nodeDecoder) decodeValue(n *yamlNode) (any, error) {
	v, err := d.decodeNode(n)
	if d.keep && err == nil {
		n.v, n.known = v, true
	}
	return v, err
}

func (d *nodeDecoder) decodeNode(n *yamlNode) (any, error) {
	if d.inAlias > 0 {
		if d.aliased++; d.aliased > MaxAliased {
			return nil, &syntaxError{off: n.start, msg: fmt.Sprintf("the aliases stand for more than %d values", MaxAliased)}
		}
	}
	if d.instead != nil {
		if v, ok := d.instead(n); ok {
			return v, nil
		}
	}
	switch n.kind {
	case scalarKind:
		return d.decodeScalar(n)
	case aliasKind:
		d.inAlias++
		v, err := d.decodeValue(n.target)
		d.inAlias--
		return v, err
	case sequenceKind:
		if err := checkTag(n, "!!seq"); err != nil {
			return nil, err
		}
		out := make([]any, 0, n.n)
		for e := n.first; e != nil; e = e.next {
			v, err := d.decodeValue(e)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	if err := checkTag(n, "!!map"); err != nil {
		return nil, err
	}
	return d.decodeMapping(n)
}

func checkTag(n *yamlNode, want string) error {
	if n.tag != "" && n.tag != want {
		return &syntaxError{off: n.prop, msg: fmt.Sprintf("found the tag %s", n.tag), unsure: true}
	}
	return nil
}

func (d *nodeDecoder) decodeScalar(n *yamlNode) (any, error) {
	switch {
	case n.tag == "!!str":
		return n.val, nil
	case n.tag != "":
		return d.decodeTagged(n)
	case n.style != plainStyle:
		return n.val, nil
	}
	switch v := resolveScalar(n.val).(type) {
	case float64:
		f, ok := jsonNumber(v)
		if !ok {
			return nil, &syntaxError{off: n.start, msg: fmt.Sprintf("%s is a number that JSON does not have; quote it if it is meant as text", n.val)}
		}
		return f, nil
	case uint64:
		return float64(v), nil
	default:
		return v, nil
	}
}

// decodeTagged resolves a scalar with a tag, which decides whatever the quotes are.
func (d *nodeDecoder) decodeTagged(n *yamlNode) (any, error) {
	v, err := decodeFallback(n.tag + " " + doubleQuoted(n.val))
	if err != nil {
		return nil, checkTag(n, "")
	}
	return v, nil
}

// decodeMapping fills a map in the order of the text: a merge key overwrites the keys before it and is overwritten
// by the keys after it, as in go.yaml.in/yaml/v2.
func (d *nodeDecoder) decodeMapping(n *yamlNode) (any, error) {
	out := make(map[string]any, n.n)
	merged := false
	var explicit map[string]bool
	for k := n.first; k != nil; k = k.next.next {
		if k.isMerge() {
			if !merged {
				merged = true
				explicit = make(map[string]bool, n.n)
				for key := range out {
					explicit[key] = true
				}
			}
			if err := d.mergeInto(k.next, out); err != nil {
				return nil, err
			}
			continue
		}
		key, ok := keyText(k)
		if !ok || k.tag != "" && k.tag != "!!str" {
			return nil, &syntaxError{off: k.start, msg: "found a key that is not a string", unsure: true}
		}
		_, dup := out[key]
		if merged {
			dup = explicit[key]
			explicit[key] = true
		}
		if dup && !d.lastWins {
			return nil, &syntaxError{off: k.start, msg: fmt.Sprintf("found the key %q twice in the same mapping", key)}
		}
		v, err := d.decodeValue(k.next)
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	return out, nil
}

// mergeInto puts the entries of one mapping or of a list of mappings, of which the first wins, into out.
func (d *nodeDecoder) mergeInto(n *yamlNode, out map[string]any) error {
	list := []*yamlNode{n}
	if n.kind == sequenceKind {
		list = n.sequenceElements()
	}
	for i := len(list) - 1; i >= 0; i-- {
		target := list[i]
		if target.kind == aliasKind {
			target = target.target
		}
		if target.kind != mappingKind {
			return &syntaxError{off: list[i].start, msg: "a merge key needs mappings"}
		}
		v, err := d.decodeValue(list[i])
		if err != nil {
			return err
		}
		m, ok := v.(map[string]any)
		if !ok {
			return &syntaxError{off: list[i].start, msg: "a merge key needs mappings"}
		}
		for k, e := range m {
			out[k] = e
		}
	}
	return nil
}

// atLine puts the line into a syntax error, counted from the line of the text's first byte.
func atLine(err error, text string, first int) error {
	se := asSyntaxError(err)
	if se == nil || se.line > 0 {
		return err
	}
	e := *se
	if line, marker := conflictMarker(text); line > 0 {
		return &syntaxError{line: first + line - 1, msg: fmt.Sprintf("%s is a marker of a conflict of Git; resolve the conflict", marker)}
	}
	e.line = first + strings.Count(text[:min(e.off, len(text))], "\n")
	if at := e.flow - 1; at >= 0 && at < min(e.off, len(text)) && strings.Contains(text[at:min(e.off, len(text))], "\n") {
		e.msg += fmt.Sprintf("; is the %q of line %d closed?", text[at:at+1], first+strings.Count(text[:at], "\n"))
	}
	return &e
}
