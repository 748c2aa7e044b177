// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strconv"
	"strings"
)

// RepeatedKey is a key that a mapping has more than once.
type RepeatedKey struct {
	// Path is the mapping and the key, such as metadata.labels.app.
	Path string
	// Line is that of the last one, which counts, from 1.
	Line int
}

// WithLastKeys returns the document without the keys that a later one of the same mapping overrides, and these keys. Helm,
// kubectl and Argo CD read a document in this way, while Object refuses it. The document itself is returned if it repeats no key, and
// if it cannot be read for another reason.
func (d *Document) WithLastKeys() (*Document, []RepeatedKey) {
	if d.col0 == 0 && !d.inFlow && hasDistinctKeys(d.text) {
		return d, nil
	}
	return parseLastKeys(d)
}

// parseLastKeys is WithLastKeys for any document.
func parseLastKeys(d *Document) (*Document, []RepeatedKey) {
	store := nodeStores.Get().(*nodeStore)
	defer store.releaseNodes()
	root, err := parseInto(store, d.text, d.col0, d.parent, d.inFlow, d.outerAnchors())
	if err != nil || root == nil {
		return d, nil
	}
	f := &repeatedKeys{d: d}
	f.findIn(root, "")
	if len(f.found) == 0 {
		return d, nil
	}
	want, err := (&nodeDecoder{lastWins: true}).decodeValue(root)
	if err != nil {
		return d, nil
	}
	next := *d
	slices.SortFunc(f.cuts, func(a, b [2]int) int { return b[0] - a[0] })
	for _, cut := range f.cuts {
		next.text = next.text[:cut[0]] + next.text[cut[1]:]
	}
	if got, err := next.Object(); err != nil || !equalValues(got, want) { // an alias of what was cut
		next.text = string(Marshal(want))
	}
	return &next, f.found
}

// repeatedKeys finds the keys of a document that later ones override.
type repeatedKeys struct {
	d     *Document
	found []RepeatedKey
	cuts  [][2]int // the text of the overridden entries
}

func (r *repeatedKeys) findIn(n *yamlNode, at string) {
	switch n.kind {
	case sequenceKind:
		for i, e := range n.sequenceElements() {
			r.findIn(e, at+"["+strconv.Itoa(i)+"]")
		}
	case mappingKind:
		r.findInMapping(n, at)
	}
}

func (r *repeatedKeys) findInMapping(n *yamlNode, at string) {
	last := make(map[string]*yamlNode, n.n)
	for k := n.first; k != nil; k = k.next.next {
		if key, ok := keyText(k); ok && !k.isMerge() {
			last[key] = k
		}
	}
	reported := map[string]bool{}
	for k := n.first; k != nil; k = k.next.next {
		key, ok := keyText(k)
		winner := last[key]
		path := joinKey(at, key)
		switch {
		case !ok || k.isMerge():
		case winner == k:
			r.findIn(k.next, path)
		default:
			r.cuts = append(r.cuts, [2]int{k.prop, k.next.next.prop})
			if !reported[key] {
				reported[key] = true
				r.found = append(r.found, RepeatedKey{path, r.d.line + strings.Count(r.d.text[:winner.start], "\n")})
			}
		}
	}
}

// joinKey appends a key to a path.
func joinKey(at, key string) string {
	switch {
	case !isSimpleKey(key):
		return at + "[" + strconv.Quote(key) + "]"
	case at == "":
		return key
	}
	return at + "." + key
}

// isSimpleKey reports whether a key needs no quotes in a path.
func isSimpleKey(key string) bool {
	for i := range len(key) {
		if c := key[i]; !isAlphanumeric(c) && c != '_' && c != '-' {
			return false
		}
	}
	return key != ""
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
