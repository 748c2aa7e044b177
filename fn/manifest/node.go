// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

// nodeKind is the kind of a node.
type nodeKind uint8

const (
	scalarKind nodeKind = iota
	mappingKind
	sequenceKind
	aliasKind
)

// nodeStyle is how a node is written. Collections are block or flow, scalars have the other styles; an absent value
// is a plain scalar of length zero.
type nodeStyle uint8

const (
	blockStyle nodeStyle = iota
	flowStyle
	plainStyle
	singleStyle
	doubleStyle
	literalStyle
	foldedStyle
)

// yamlNode is a place in the text. Offsets count bytes from the start of the text that was parsed. The span leaves out the
// properties (anchor, tag), the indicator before the node, and comments after it. A block scalar's span starts at its
// indicator and ends before the line break of its last line.
type yamlNode struct {
	kind       nodeKind
	style      nodeStyle
	open       bool // an anchored collection whose end is not reached yet
	foreign    bool // an alias whose anchor is in another text
	start, end int
	prop       int       // where the properties start; equal to start without any
	colon      int       // of a mapping key: just after its colon
	indent     int       // of block collections and block scalars: the column of their content
	anchor     string    // without &
	tag        string    // as written
	val        string    // of scalars: the text after unescaping and folding; of aliases: the name
	target     *yamlNode // of aliases
	first      *yamlNode // first child: an element, or a key that is followed by its value, and so on
	next       *yamlNode
	n          int // number of elements or of key and value pairs
	v          any // the value, where it was decoded to be kept
	known      bool
}

func (n *yamlNode) isFlow() bool { return n.style == flowStyle }

func (n *yamlNode) isCollection() bool { return n.kind == mappingKind || n.kind == sequenceKind }

// isAbsent reports whether the value has no text, as after a key with an empty value.
func (n *yamlNode) isAbsent() bool {
	return n.kind == scalarKind && n.style == plainStyle && n.start == n.end
}

// isMerge reports whether a key merges other mappings into its own (YAML 1.1, kept by every Kubernetes tool). Tools
// that rewrite YAML, such as yq, add its tag.
func (n *yamlNode) isMerge() bool {
	if n.kind != scalarKind || n.val != "<<" {
		return false
	}
	return n.tag == "" && n.style == plainStyle || n.tag == "!!merge" || n.tag == "!<tag:yaml.org,2002:merge>"
}

// keyValue is a key and its value.
type keyValue struct{ key, val *yamlNode }

// lastNode returns the node that the entry's text ends with.
func (p keyValue) lastNode() *yamlNode {
	if p.key.colon < 0 {
		return p.key
	}
	return p.val
}

// appendChild adds a child after last, which is nil before the first.
func (n *yamlNode) appendChild(last, child *yamlNode) {
	if last == nil {
		n.first = child
	} else {
		last.next = child
	}
}

func (n *yamlNode) mappingPairs() []keyValue {
	out := make([]keyValue, 0, n.n)
	for k := n.first; k != nil; k = k.next.next {
		out = append(out, keyValue{k, k.next})
	}
	return out
}

func (n *yamlNode) sequenceElements() []*yamlNode {
	out := make([]*yamlNode, 0, n.n)
	for e := n.first; e != nil; e = e.next {
		out = append(out, e)
	}
	return out
}

// walkNodes calls f for every node in the order of the text.
func walkNodes(n *yamlNode, f func(*yamlNode)) {
	f(n)
	for c := n.first; c != nil; c = c.next {
		walkNodes(c, f)
	}
}
