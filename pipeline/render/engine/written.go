// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// writtenObjects remembers the files that a build reads and that may contain objects: kustomize does not report
// where an object comes from.
type writtenObjects struct {
	tree.Reader
	// all reports whether every object matters, rather than only releases.
	all   bool
	texts map[string][]byte
	// byKind are the documents of the texts, once they are asked for.
	byKind map[string][]writtenObject
	read   int // how many texts they are of
}

type writtenObject struct {
	meta manifest.Meta
	file string
	doc  *manifest.Document
}

// rememberFiles notes the files that are read from now on, for the places of releases and of what the gate finds.
func (w *renderWorker) rememberFiles() {
	all := w.isGated()
	if all || w.request.Releases != nil || w.request.Flux != nil {
		w.written = &writtenObjects{Reader: w.files, all: all || w.request.Flux != nil, texts: map[string][]byte{}}
		w.files = w.written
	}
}

// Read implements tree.Reader.
func (r *writtenObjects) Read(name string) ([]byte, error) {
	content, err := r.Reader.Read(name)
	if err == nil && (r.all && bytes.Contains(content, []byte("kind")) || bytes.Contains(content, []byte("HelmRelease")) || bytes.Contains(content, []byte("argoproj.io/"))) {
		r.texts[render.CleanPath(name)] = content
	}
	return content, err
}

// documentsOfKind returns the documents of a kind, in the order of their files.
func (r *writtenObjects) documentsOfKind(kind string) []writtenObject {
	if r.byKind != nil && r.read == len(r.texts) {
		return r.byKind[kind]
	}
	r.byKind, r.read = map[string][]writtenObject{}, len(r.texts)
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		file, err := manifest.Parse(name, r.texts[name])
		if err != nil {
			continue
		}
		for _, doc := range file.Docs {
			meta, ok := doc.Peek()
			if !ok {
				value, err := doc.Object()
				if err != nil {
					continue
				}
				meta = metaOf(value)
			}
			if meta.Name != "" {
				r.byKind[meta.Kind] = append(r.byKind[meta.Kind], writtenObject{meta, name, doc})
			}
		}
	}
	return r.byKind[kind]
}

// candidateDocumentsFor returns the documents that an object may come from: those with its name, or otherwise those
// whose names are part of it, since a build can add a prefix and suffix to a name. It returns none if the latter have
// several names.
func (r *writtenObjects) candidateDocumentsFor(wanted manifest.Meta) []writtenObject {
	var exact, part []writtenObject
	for _, one := range r.documentsOfKind(wanted.Kind) {
		switch {
		case one.meta.Name == wanted.Name:
			exact = append(exact, one)
		case strings.Contains(wanted.Name, one.meta.Name):
			part = append(part, one)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	for _, one := range part {
		if one.meta.Name != part[0].meta.Name {
			return nil
		}
	}
	return part
}

// locateWrittenField returns where a field of an object is written, or what is above it; nil where no file has the
// object. Of several, such as a base and a patch, the one that has most of the field.
func (r *writtenObjects) locateWrittenField(object map[string]any, at []any) *result.File {
	wanted := metaOf(object)
	var best *result.File
	most := 0
	for _, one := range r.candidateDocumentsFor(wanted) {
		line, depth := locateField(one.doc, at)
		score := 1 + 2*depth
		if one.meta.Namespace == wanted.Namespace {
			score++
		}
		if score > most {
			best, most = &result.File{Path: one.file, Index: one.doc.Index(), Line: line}, score
		}
	}
	return best
}

// locateField returns the line of a field, or of the longest part of its path that a document has, and how long that is.
func locateField(doc *manifest.Document, at []any) (line, depth int) {
	for depth = len(at); depth > 0; depth-- {
		if line, _, ok := doc.Locate(at[:depth]...); ok {
			return line, depth
		}
	}
	return doc.Line(), 0
}
