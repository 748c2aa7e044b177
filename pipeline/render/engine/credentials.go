// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/secret/credential"
)

// findCredentials warns of credentials in the build output, before injection moves lines, and records whether it
// contains any, or Secrets.
func (w *renderWorker) findCredentials(items []fn.Item) error {
	for _, item := range items {
		if err := w.findCredentialsIn(item.Doc); err != nil {
			return err
		}
	}
	return nil
}

func (w *renderWorker) findCredentialsIn(doc *manifest.Document) error {
	if doc.Empty() {
		return nil
	}
	elements, isList, err := doc.Items()
	if err != nil {
		return fmt.Errorf("reading %s: %w", doc, err)
	}
	for _, element := range elements {
		if err := w.findCredentialsIn(element); err != nil {
			return err
		}
	}
	if isList {
		return nil
	}
	found := credential.Find(doc)
	w.response.Results = append(w.response.Results, found...)
	meta, ok := doc.Peek()
	if !ok {
		object, err := doc.Object()
		if err != nil {
			return fmt.Errorf("reading %s: %w", doc, err)
		}
		meta = metaOf(object)
	}
	w.secret = w.secret || len(found) > 0 || meta.Kind == "Secret"
	return nil
}
