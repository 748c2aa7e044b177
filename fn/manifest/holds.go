// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "slices"

// nodeHolds reports whether a node certainly has a value.
func nodeHolds(n *yamlNode, want any) bool {
	if n.tag != "" {
		return false
	}
	switch n.kind {
	case scalarKind:
		return scalarHolds(n, want)
	case sequenceKind:
		list, ok := want.([]any)
		if !ok || n.n != len(list) {
			return false
		}
		i := 0
		for e := n.first; e != nil; e = e.next {
			if !nodeHolds(e, list[i]) {
				return false
			}
			i++
		}
		return true
	case mappingKind:
		m, ok := want.(map[string]any)
		return ok && mappingHolds(n, m)
	}
	return false
}

func scalarHolds(n *yamlNode, want any) bool {
	if text, ok := want.(string); ok {
		if text != n.val || n.style != plainStyle {
			return text == n.val
		}
		_, other := resolveNonString(text)
		return !other
	}
	if n.style != plainStyle {
		return false
	}
	got, err := (&nodeDecoder{}).decodeScalar(n)
	return err == nil && equalValues(got, want)
}

// manyKeys is how many keys a mapping may have so that looking for each among those before it is quick.
const manyKeys = 64

// mappingHolds compares a mapping. As many entries as the map has, all of them in it and no key twice, are all of it.
func mappingHolds(n *yamlNode, want map[string]any) bool {
	if n.n != len(want) || n.n > manyKeys {
		return false
	}
	var buffer [manyKeys]string
	seen := buffer[:0]
	for k := n.first; k != nil; k = k.next.next {
		if k.isMerge() || k.tag != "" || k.kind != scalarKind {
			return false
		}
		key, ok := keyText(k)
		if !ok || slices.Contains(seen, key) {
			return false
		}
		seen = append(seen, key)
		v, there := want[key]
		if !there || !nodeHolds(k.next, v) {
			return false
		}
	}
	return true
}
