// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"maps"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// wanted are the kinds that are decoded. Other objects of a cluster are skipped without being read; only the
// presence of Secrets is noted.
var wanted = map[string]bool{
	"ConfigMap": true, "Deployment": true, "MutatingWebhookConfiguration": true, "Namespace": true, "Node": true,
	accountKind: true, limitKind: true, proxyConfigKind: true,
	operatorKind: true, sailKind: true, cloudSQLKind: true, collectorKind: true, instrumentationKind: true,
}

const secret = "Secret"

// Read returns the objects of a stream of YAML or JSON documents that an import may need, those inside lists one by
// one.
func Read(path string, data []byte) ([]Object, error) {
	file, err := manifest.Parse(path, data)
	if err != nil {
		return nil, err
	}
	var objects []Object
	for _, doc := range file.Docs {
		found, err := ReadDocument(path, doc)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// ReadDocument is Read for one document of the file at path.
func ReadDocument(path string, doc *manifest.Document) ([]Object, error) {
	r := objectReader{path: path}
	err := r.readDocument(doc, manifest.Meta{})
	return r.objects, err
}

type objectReader struct {
	path    string
	objects []Object
}

func (r *objectReader) readDocument(doc *manifest.Document, implied manifest.Meta) error {
	if doc.Empty() {
		return nil
	}
	meta, sure := doc.Peek()
	if sure && !strings.HasSuffix(meta.Kind, "List") {
		if meta.Kind == secret {
			r.addObject(doc, map[string]any{"kind": secret})
			return nil
		}
		if !wanted[meta.Kind] {
			return nil
		}
	}
	items, list, err := doc.Items()
	if err != nil {
		return err
	}
	if list {
		return r.readList(doc, items)
	}
	obj, err := doc.Object()
	if err != nil || obj == nil {
		return err
	}
	if podmap.TextAt(obj, "kind") == "" && implied.Kind != "" {
		obj = maps.Clone(obj)
		obj["apiVersion"], obj["kind"] = implied.APIVersion, implied.Kind
	}
	kind := podmap.TextAt(obj, "kind")
	switch {
	case kind == secret:
		r.addObject(doc, map[string]any{"kind": secret})
	case wanted[kind]:
		r.addObject(doc, obj)
	}
	return nil
}

func (r *objectReader) readList(doc *manifest.Document, items []*manifest.Document) error {
	var of manifest.Meta
	if meta, ok := doc.Peek(); ok {
		of = meta.Element()
	}
	for _, item := range items {
		if err := r.readDocument(item, of); err != nil {
			return err
		}
	}
	return nil
}

func (r *objectReader) addObject(doc *manifest.Document, obj map[string]any) {
	r.objects = append(r.objects, Object{Path: r.path, Line: doc.Line(), Document: doc, Value: obj})
}
