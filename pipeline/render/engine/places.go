// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// documentPlaces records where the documents of a build are from, as injections change and add documents.
type documentPlaces struct {
	units map[int]string // by the index of a document, with Flux or Applications
	built map[builtPlace]builtDocument
}

// builtPlace is a document's file and position in it.
type builtPlace struct {
	path  string
	index int
}

// builtDocument is the line of a document before policies are applied, and the document with the gate, which names fields of it.
type builtDocument struct {
	line int
	doc  *manifest.Document
}

func newDocumentPlaces() documentPlaces {
	return documentPlaces{units: map[int]string{}, built: map[builtPlace]builtDocument{}}
}

// rememberBuilt records the documents of a build before policies are applied, which change them. The documents are kept where the
// gate is going to name places in them.
func (p documentPlaces) rememberBuilt(items []fn.Item, gated bool) {
	for _, item := range items {
		if item.Path == "" {
			continue
		}
		built := builtDocument{line: item.Doc.Line()}
		if gated {
			built.doc = item.Doc
		}
		p.built[builtPlace{item.Path, item.Index}] = built
	}
}

// lineOf returns the line of a document in its file before policies were applied, 0 for one without a file.
func (p documentPlaces) lineOf(item fn.Item) int {
	return p.built[builtPlace{item.Path, item.Index}].line
}

// numberUnit returns the documents of a unit with numbers of their own, from next on.
func (p documentPlaces) numberUnit(next *int, unit string, own []fn.Item) (items []fn.Item) {
	for _, item := range own {
		p.rememberUnit(*next, unit)
		items = append(items, fn.Item{Doc: item.Doc, Index: *next})
		*next++
	}
	return items
}

// rememberUnit records the unit of a document.
func (p documentPlaces) rememberUnit(index int, unit string) {
	if unit != "" {
		p.units[index] = unit
	}
}

// unitOf returns the unit of a document, "" where there are none.
func (p documentPlaces) unitOf(item fn.Item) string { return p.units[item.Index] }

// gateObjects reads the objects of documents, with the places in the source they come from: an injection may have
// changed the lines of a file, and kustomize does not report which file it was. locate finds the fields of other objects; without
// it they have no place.
func (p documentPlaces) gateObjects(items []fn.Item, locate func(object map[string]any, field []any) *result.File) ([]gate.Object, error) {
	var out []gate.Object
	for _, item := range items {
		built, known := p.built[builtPlace{item.Path, item.Index}]
		source := item.Doc
		if known {
			source = built.doc
		}
		objects, err := gate.ReadDocument(item.Doc, source, item.Path)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", item.Doc, err)
		}
		for _, o := range objects {
			if !known {
				o.File, o.Line = nil, nil
			}
			if !known && locate != nil {
				o.Locate = func(field []any) *result.File { return locate(o.Value, field) }
			}
			out = append(out, o)
		}
	}
	return out, nil
}
