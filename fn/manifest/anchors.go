// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "slices"

// anchorTracker knows what becomes of the anchors of a document by the edits, and so of the values of aliases.
type anchorTracker struct {
	aliases bool        // the document has aliases
	expand  bool        // replace every alias by its value, as a last resort
	unnamed []*yamlNode // the mappings with an anchor that no alias names
	after   map[*yamlNode]any
	lost    map[*yamlNode]bool
}

func newAnchorTracker(root *yamlNode, expand bool) anchorTracker {
	a := anchorTracker{expand: expand, after: map[*yamlNode]any{}, lost: map[*yamlNode]bool{}}
	named := map[string]bool{}
	walkNodes(root, func(n *yamlNode) {
		switch {
		case n.kind == aliasKind:
			a.aliases, named[n.val] = true, true
		case n.anchor != "" && n.kind == mappingKind:
			a.unnamed = append(a.unnamed, n)
		}
	})
	a.unnamed = slices.DeleteFunc(a.unnamed, func(n *yamlNode) bool { return named[n.anchor] })
	return a
}

// valueAfterEdits returns the value that a node has after the edits, if it is known, and whether it is.
func (a *anchorTracker) valueAfterEdits(n *yamlNode) (any, bool) {
	if a.lost[n] {
		return goneValue{}, true
	}
	v, ok := a.after[n]
	return v, ok
}

// currentValue returns the value that a node has after the edits made so far: aliases follow their anchors.
func (a *anchorTracker) currentValue(n *yamlNode) (any, error) {
	dec := nodeDecoder{}
	if len(a.after) > 0 || len(a.lost) > 0 {
		dec.instead = a.valueAfterEdits
	} else if n.known {
		return n.v, nil
	}
	return dec.decodeValue(n)
}

// alreadyHasValue reports whether a node has a value already and can stay as it is.
func (a *anchorTracker) alreadyHasValue(n *yamlNode, want any) bool {
	if a.expand && a.aliases {
		has := false
		walkNodes(n, func(c *yamlNode) { has = has || c.kind == aliasKind })
		if has {
			return false
		}
	}
	got, err := a.currentValue(n)
	return err == nil && equalValues(got, want)
}

// recordLostAnchors notes that the anchors in a node are no longer in the text at their place.
func (a *anchorTracker) recordLostAnchors(n *yamlNode) {
	walkNodes(n, func(c *yamlNode) {
		if c.anchor != "" {
			a.lost[c] = true
			delete(a.after, c)
		}
	})
}

// findUnnamedAnchor finds the anchor of an equal mapping above a block mapping, if no alias of the document names the
// anchor: an earlier edit replaced the alias by its value, and this edit restores it.
func (a *anchorTracker) findUnnamedAnchor(n *yamlNode, want map[string]any) (string, bool) {
	if n.kind != mappingKind || n.isFlow() || n.n == 0 || n.anchor != "" || n.tag != "" || len(want) == 0 {
		return "", false
	}
	for _, m := range a.unnamed {
		if m.start >= n.start || a.lost[m] {
			continue
		}
		if v, err := a.currentValue(m); err == nil && equalValues(v, want) {
			return m.anchor, true
		}
	}
	return "", false
}

// mergeKeys holds the values that the merge keys of a mapping contribute, and whether the keys can stay.
type mergeKeys struct {
	merged   map[string]any
	shadowed map[string]bool // own keys that a later merge key overwrites with the wanted value
	expand   bool
}

// planMerges decides whether the merge keys of a mapping can stay: every key that they contribute must be wanted,
// and the mapping's own keys can only change after them.
func (a *anchorTracker) planMerges(pairs []keyValue, want map[string]any) mergeKeys {
	plan := mergeKeys{merged: map[string]any{}, shadowed: map[string]bool{}}
	own := map[string]bool{}
	dec := nodeDecoder{instead: a.valueAfterEdits}
	for _, p := range pairs {
		if !p.key.isMerge() {
			if k, ok := keyText(p.key); ok {
				own[k] = true
			}
			continue
		}
		if a.expand {
			plan.expand = true
		}
		got := map[string]any{}
		if err := dec.mergeInto(p.val, got); err != nil {
			plan.expand = true
			continue
		}
		for k, v := range got {
			plan.merged[k] = v
			w, ok := want[k]
			if !ok || own[k] && !equalValues(v, w) {
				plan.expand = true
			}
			if own[k] {
				plan.shadowed[k] = true
			}
		}
	}
	if plan.expand {
		plan.shadowed = nil
	}
	for _, p := range pairs { // an own key after the merge key decides
		if k, _ := keyText(p.key); own[k] && !plan.shadowed[k] {
			delete(plan.merged, k)
		}
	}
	return plan
}
