// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

// readGivenBuild returns the documents of a build that was done before.
func (w *renderWorker) readGivenBuild() ([]fn.Item, error) {
	w.response.Type = w.request.Given.Type
	items := make([]fn.Item, 0, len(w.request.Given.Items))
	for _, one := range w.request.Given.Items {
		doc, err := one.Document.Document()
		if err != nil {
			return nil, err
		}
		items = append(items, fn.Item{Doc: doc, Path: one.Path, Index: one.Index})
		w.places.rememberUnit(one.Index, one.Unit)
	}
	return items, nil
}

// sendBuilt sends what was built, where that can be kept. Documents with values that are secret, or look so, are not.
func (w *renderWorker) sendBuilt(items []fn.Item) error {
	cheap := w.response.Type == v1alpha1.BuildPlain && w.request.Releases == nil // to read it again is no more work
	if w.request.Keep == nil || w.secret || cheap {
		return nil
	}
	b := &render.Built{Response: w.response}
	size := int64(0)
	for _, item := range items {
		stored, ok := item.Doc.Stored()
		if size += int64(len(stored.Text)); !ok || size > w.request.Limits.Output {
			return nil
		}
		b.Items = append(b.Items, render.BuiltItem{Path: item.Path, Index: item.Index, Unit: w.places.unitOf(item), Document: stored})
	}
	return w.out.SendBuilt(b)
}
