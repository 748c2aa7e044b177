// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// CheckAliases refuses documents that grow to more than a number of values. Files without anchors and aliases cost two searches.
func CheckAliases(content []byte, most int) error {
	if !bytes.ContainsRune(content, '&') || !bytes.ContainsRune(content, '*') {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var doc yaml.Node
		if err := decoder.Decode(&doc); err != nil {
			return nil // the end, or not YAML: kustomize will report it if it matters
		}
		if !isWithin(&doc, most) {
			return fmt.Errorf("line %d: excessive aliasing: the document's aliases stand for more than %d values", max(doc.Line, 1), most)
		}
	}
}

// isWithin reports whether a document with its aliases expanded has at most the specified number of values.
func isWithin(doc *yaml.Node, most int) bool {
	return expandedSize(doc, most, map[*yaml.Node]int{}) <= most
}

// expandedSize counts the values of a node. A number over the bound is not exact.
func expandedSize(node *yaml.Node, most int, known map[*yaml.Node]int) int {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if count, ok := known[node]; ok {
		return count
	}
	known[node] = most + 1 // an alias inside its own anchor
	count := 1
	for _, child := range node.Content {
		if count += expandedSize(child, most, known); count > most {
			break
		}
	}
	known[node] = count
	return count
}
