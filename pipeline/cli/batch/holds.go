// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"bytes"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/source/content"
)

// isLock reports whether a document is an ImageLock.
func isLock(d *manifest.Document) bool {
	if !d.Contains(v1alpha1.KindImageLock) {
		return false // a search for the kind takes a tenth of the time of a scan
	}
	m, ok := d.Peek()
	return ok && v1alpha1.IsImageLock(m.APIVersion, m.Kind)
}

// HasLock reports whether the ImageLock of a name is among the documents that are worked on.
func (b *Batch) HasLock(name string) bool {
	return slices.ContainsFunc(b.Items(), func(item fn.Item) bool {
		m, _ := item.Doc.Peek()
		return isLock(item.Doc) && m.Name == name
	})
}

// isPolicy reports whether a document is an InjectionPolicy.
func isPolicy(d *manifest.Document) bool {
	if !d.Contains(v1alpha1.Kind) {
		return false
	}
	m, ok := d.Peek()
	return ok && v1alpha1.IsPolicy(m.APIVersion, m.Kind)
}

// Blank reports whether the file contains only blanks.
func (f *File) Blank() bool {
	return len(bytes.TrimSpace(f.Input.Data)) == 0 &&
		!slices.ContainsFunc(f.docs, func(d *manifest.Document) bool { return strings.TrimSpace(d.Text()) != "" })
}

// HasManifest reports whether there is an object of a cluster: not only empty files and Prerig's own objects. A stream
// counts if it has any text, such as comments: the output of a program may have no object.
func (b *Batch) HasManifest() bool {
	return slices.ContainsFunc(b.Files, func(f *File) bool {
		for i, d := range f.docs {
			if !f.idle[i] && !d.Empty() && !isOwnObject(d) {
				return true
			}
		}
		return f.Input.Stdin() && !f.Blank()
	})
}

// OwnObject returns the place and kind of an object that configures Prerig, or "".
func (b *Batch) OwnObject() string {
	for _, f := range b.Files {
		for _, d := range f.docs {
			if isOwnObject(d) {
				meta, _ := d.Peek()
				return f.Input.Path + " (" + meta.Kind + ")"
			}
		}
	}
	return ""
}

// ownGroup is the API group of Prerig's own objects.
const ownGroup = "prerig.dev"

func isOwnObject(d *manifest.Document) bool {
	if !d.Contains(ownGroup) {
		return false
	}
	meta, _ := d.Peek()
	group, _, _ := strings.Cut(meta.APIVersion, "/")
	return group == ownGroup
}

// Kustomization returns the path of the first kustomization that was skipped, or "".
func (b *Batch) Kustomization() string {
	for _, s := range b.passed {
		if s.Reason == content.Kustomization {
			return s.Place
		}
	}
	return ""
}

// IsEmpty reports whether the file has no object, only comments and separators of documents.
func (f *File) IsEmpty() bool {
	return !slices.ContainsFunc(f.docs, func(d *manifest.Document) bool { return !d.Empty() })
}
