// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package group

import (
	"bytes"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is where a line of a manifest is.
type fieldPlace struct {
	// path has one step for each level: a key, or the name of a list's element.
	path []string
	// exact distinguishes list elements without a name, by what precedes them.
	exact string
	// text is the first line of the value with several lines that the line is in, 0 outside of one.
	text int
}

// locatedManifest is a manifest with the place of each line; lines is nil where it cannot be read.
type locatedManifest struct {
	root  *yaml.Node
	lines []fieldPlace // by line, from 1
}

// locateLines finds the place of each line.
func locateLines(text []byte) locatedManifest {
	var doc yaml.Node
	if len(text) == 0 || yaml.Unmarshal(text, &doc) != nil || len(doc.Content) != 1 {
		return locatedManifest{}
	}
	l := locatedManifest{root: doc.Content[0], lines: make([]fieldPlace, bytes.Count(text, []byte("\n"))+3)}
	l.walkNode(l.root, nil, "")
	// What begins no field belongs to the one before.
	for i := 1; i < len(l.lines); i++ {
		if l.lines[i].path == nil && l.lines[i-1].path != nil {
			l.lines[i] = l.lines[i-1]
			if l.lines[i].text == 0 {
				l.lines[i].text = i - 1
			}
		}
	}
	return l
}

func (l *locatedManifest) setLine(at int, path []string, exact string) {
	if at > 0 && at < len(l.lines) && l.lines[at].path == nil {
		l.lines[at] = fieldPlace{path: path, exact: exact}
	}
}

func (l *locatedManifest) walkNode(n *yaml.Node, path []string, exact string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			below := appendStep(path, key.Value)
			l.setLine(key.Line, below, exact)
			l.walkNode(value, below, exact)
		}
	case yaml.SequenceNode:
		before := ""
		for i, item := range n.Content {
			label, more := "", ""
			switch {
			case item.Kind == yaml.ScalarNode:
				more, before = "<"+before, item.Value
			default:
				if label = nameOf(item); label == "" {
					more = "#" + strconv.Itoa(i)
				}
			}
			below := appendStep(path, "["+label+"]")
			if item.Kind == yaml.ScalarNode {
				l.setLine(item.Line, below, exact+more)
			}
			l.walkNode(item, below, exact+more)
		}
	}
}

func appendStep(path []string, next string) []string {
	return append(path[:len(path):len(path)], next)
}

// nameOf is what an element of a list is known by.
func nameOf(item *yaml.Node) string {
	for _, key := range []string{"name", "mountPath"} {
		if value := childNode(item, key); value != nil && value.Kind == yaml.ScalarNode {
			return value.Value
		}
	}
	return ""
}

func childNode(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var found *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				found = n.Content[i+1]
			}
		}
		n = found
	}
	return n
}

// fieldAt returns the place of a line.
func (l locatedManifest) fieldAt(number int) (fieldPlace, bool) {
	if number < 1 || number >= len(l.lines) || l.lines[number].path == nil {
		return fieldPlace{}, false
	}
	return l.lines[number], true
}

// podPath is where kinds keep a pod template, the longest first.
var podPaths = [][]string{{"spec", "jobTemplate", "spec", "template"}, {"spec", "template"}}

// podRoot returns the pod template of an object and its path, nil where it has none.
func podRoot(root *yaml.Node, kind string) (*yaml.Node, []string) {
	for _, path := range podPaths {
		if n := childNode(root, path...); n != nil && childNode(n, "spec", "containers") != nil {
			return n, path
		}
	}
	if kind == "Pod" {
		return root, []string{}
	}
	return nil, nil
}

// pathText is a path as people write it.
func pathText(path []string) string {
	var out strings.Builder
	for _, part := range path {
		switch {
		case strings.HasPrefix(part, "["):
		case strings.ContainsAny(part, "./[] "):
			part = "[" + part + "]"
		case out.Len() > 0:
			out.WriteByte('.')
		}
		out.WriteString(part)
	}
	return out.String()
}

// commonPath is the path that two have in common.
func commonPath(a, b []string) []string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
