// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// documentUnit is one object: a document, or an element of a list that is a document.
type documentUnit struct {
	doc   *manifest.Document
	path  string
	index int
	item  int // the index of the item that the document is, -1 for an element
	meta  manifest.Meta
	// peeked reports whether the metadata was read without decoding.
	peeked bool
	// typed is what a typed list, such as a DeploymentList, specifies for its elements; byList reports whether the
	// element itself omits it.
	typed  manifest.Meta
	byList bool
	// elements are the units of a list; broken reports whether the document cannot be read.
	elements []*documentUnit
	broken   bool

	// opened is the document while it is worked on.
	opened *manifest.Opened

	// What becomes of it.
	changed   *manifest.Document
	dropped   bool
	objects   []wantedObject
	outcomes  []Outcome
	results   result.Results
	kept      *keptPod // a Job or bare Pod that is published, and unchanged
	summaries []lint.Summary
	// suppressed are findings of rules that the object or a policy suppresses.
	suppressed result.Results
}

// flattenItems returns the units of all items, those of lists included, in their order.
func flattenItems(items []Item) []*documentUnit {
	units := make([]*documentUnit, 0, len(items))
	for i, item := range items {
		units = append(units, openUnit(&documentUnit{doc: item.Doc, path: item.Path, index: item.Index, item: i})...)
	}
	return units
}

// openUnit returns the unit, and after it the units of its elements where it is a list.
func openUnit(u *documentUnit) []*documentUnit {
	units := []*documentUnit{u}
	if u.doc.Empty() {
		return units
	}
	meta, isObject := u.doc.Peek()
	u.peeked = isObject
	if !isObject {
		obj, err := u.doc.Object()
		if err != nil {
			u.addError("", err)
			u.broken = true
			return units
		}
		meta, isObject = metaOf(obj), obj != nil
	}
	if isObject && meta.Kind == "" && meta.APIVersion == "" && u.typed.Kind != "" {
		meta.APIVersion, meta.Kind, u.byList = u.typed.APIVersion, u.typed.Kind, true
	}
	u.meta = meta
	if !strings.HasSuffix(meta.Kind, "List") {
		return units
	}
	elements, isList, err := u.doc.Items()
	if err != nil {
		u.addError("items", err)
		u.broken = true
		return units
	}
	if !isList {
		return units
	}
	typed := meta.Element()
	for _, doc := range elements {
		e := openUnit(&documentUnit{doc: doc, path: u.path, index: u.index, item: -1, typed: typed})
		u.elements = append(u.elements, e[0])
		units = append(units, e...)
	}
	return units
}

// objectWithListType returns the object of the unit, including the apiVersion and kind that only its list specifies.
func (u *documentUnit) objectWithListType() (map[string]any, error) {
	obj, err := u.doc.Object()
	return u.withListType(obj), err
}

// withListType returns the object with the apiVersion and kind that only its list specifies.
func (u *documentUnit) withListType(obj map[string]any) map[string]any {
	if obj == nil || !u.byList {
		return obj
	}
	obj = maps.Clone(obj)
	obj["apiVersion"], obj["kind"] = u.typed.APIVersion, u.typed.Kind
	return obj
}

// open returns the object as objectWithListType does, and keeps the document open until close.
func (u *documentUnit) open() (map[string]any, error) {
	var obj map[string]any
	if u.opened, obj = u.doc.Open(); u.opened == nil {
		return u.objectWithListType()
	}
	return u.withListType(obj), nil
}

func (u *documentUnit) close() {
	if u.opened != nil {
		u.opened.Close()
		u.opened = nil
	}
}

// rewriteDocument returns a document of the unit edited so that it is an object. What only its list specifies is not
// written into it.
func (u *documentUnit) rewriteDocument(from *manifest.Document, obj map[string]any) (*manifest.Document, error) {
	if u.byList {
		obj = maps.Clone(obj)
		delete(obj, "apiVersion")
		delete(obj, "kind")
	}
	if u.opened == nil || from != u.doc {
		return from.With(obj)
	}
	defer u.close()
	return u.opened.With(obj)
}

// resourceReference names the object.
func (u *documentUnit) resourceReference() result.ResourceRef {
	return result.ResourceRef{APIVersion: u.meta.APIVersion, Kind: u.meta.Kind, Name: u.meta.Name, Namespace: u.meta.Namespace}
}

// namedReference names the object in messages: by its generateName if it has no name.
func (u *documentUnit) namedReference() result.ResourceRef {
	ref := u.resourceReference()
	if ref.Name == "" {
		if obj, err := u.doc.Object(); err == nil {
			ref.Name = result.GeneratedName(obj)
		}
	}
	return ref
}

// addResult adds a result about the object, with the place of the field where it is known.
func (u *documentUnit) addResult(severity result.Severity, field, message string) {
	u.results = append(u.results, u.newResult(severity, field, message))
}

func (u *documentUnit) newResult(severity result.Severity, field, message string) result.Result {
	r := result.Result{Message: message, Severity: severity, File: u.fileLocation()}
	if u.meta.Kind != "" {
		ref := u.namedReference()
		r.ResourceRef = &ref
	}
	if field != "" && r.ResourceRef != nil {
		r.Field = &result.Field{Path: field}
	}
	u.setLine(&r)
	return r
}

// setLine sets the line of a result to that of its field; an info keeps the line of the object.
func (u *documentUnit) setLine(r *result.Result) {
	if r.Field != nil && r.Severity != result.Info {
		r.File = u.fileLocationOfField(r.File, r.Field.Path)
	}
}

// fileLocationOfField returns a place in the unit's file with the line of a field, or of the nearest field around it
// that is in the document. One without a line stays as it is.
func (u *documentUnit) fileLocationOfField(file *result.File, field string) *result.File {
	if file == nil || file.Line == 0 {
		return file
	}
	f := *file
	for at := workload.ParseField(field); len(at) > 0; at = at[:len(at)-1] {
		if line, _, ok := u.doc.Locate(at...); ok {
			f.Line = line
			break
		}
	}
	return &f
}

// fileLocation returns where the object is, or nil if unknown. The lines of a ResourceList mean little to a user, so
// objects from one have the path that the orchestrator noted on them, and no line.
func (u *documentUnit) fileLocation() *result.File {
	if u.path == "" {
		return nil
	}
	f := &result.File{Path: u.path, Index: u.index}
	if u.doc.Path() != "" {
		f.Line = u.doc.Line()
	}
	return f
}

// readOrigin reads the path and index that the orchestrator noted on an object of a ResourceList.
func (u *documentUnit) readOrigin(obj map[string]any) {
	if u.path != "" {
		return
	}
	meta, _ := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	var origin [4]string
	for i, prefix := range []string{"internal.config.kubernetes.io/", "config.kubernetes.io/"} {
		origin[2*i], _ = annotations[prefix+"path"].(string)
		origin[2*i+1], _ = annotations[prefix+"index"].(string)
	}
	u.takeOrigin(origin)
}

// takeOrigin takes the first path of two, each with an index behind it.
func (u *documentUnit) takeOrigin(origin [4]string) {
	for i := 0; i < len(origin); i += 2 {
		if origin[i] != "" {
			u.path = origin[i]
			u.index, _ = strconv.Atoi(origin[i+1])
			return
		}
	}
}

// addError adds an error about the object.
func (u *documentUnit) addError(field string, err error) {
	u.addResult(result.Error, field, err.Error())
}

// metaOf returns the metadata that Peek could not determine.
func metaOf(obj map[string]any) (m manifest.Meta) {
	m.APIVersion, _ = obj["apiVersion"].(string)
	m.Kind, _ = obj["kind"].(string)
	meta, _ := obj["metadata"].(map[string]any)
	m.Name, _ = meta["name"].(string)
	m.Namespace, _ = meta["namespace"].(string)
	return m
}
