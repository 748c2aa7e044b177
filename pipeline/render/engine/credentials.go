// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/secret/credential"
)

// findCredentials returns the credentials in the build output, and whether it contains any, or Secrets. It is called before
// injection moves lines.
func findCredentials(items []fn.Item) (found result.Results, secret bool, err error) {
	for _, item := range items {
		more, isSecret, err := findCredentialsIn(item.Doc)
		if err != nil {
			return nil, false, err
		}
		found = append(found, more...)
		secret = secret || isSecret
	}
	return found, secret, nil
}

func findCredentialsIn(doc *manifest.Document) (found result.Results, secret bool, err error) {
	if doc.Empty() {
		return nil, false, nil
	}
	elements, isList, err := doc.Items()
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", doc, err)
	}
	if isList {
		var items []fn.Item
		for _, element := range elements {
			items = append(items, fn.Item{Doc: element})
		}
		return findCredentials(items)
	}
	found = credential.Find(doc)
	meta, ok := doc.Peek()
	if !ok {
		object, err := doc.Object()
		if err != nil {
			return nil, false, fmt.Errorf("reading %s: %w", doc, err)
		}
		meta = metaOf(object)
	}
	return found, len(found) > 0 || meta.Kind == "Secret", nil
}
