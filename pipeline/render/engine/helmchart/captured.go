// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// capturedObjects are the objects that lookup finds.
type capturedObjects struct {
	objects map[objectKey]map[string]any
	keys    []objectKey // in the order in which an API server lists them
}

type objectKey struct{ apiVersion, kind, namespace, name string }

// readCaptured returns nil for a release whose lookup asks no file.
func readCaptured(files tree.Reader, release *v1alpha1.Helm, options Options) (*capturedObjects, error) {
	if release.Lookup != v1alpha1.LookupCaptured {
		return nil, nil
	}
	content, err := files.Read(release.Captured)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", options.nameField("captured"), err)
	}
	file, err := manifest.Parse(release.Captured, content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", options.nameField("captured"), err)
	}
	c := &capturedObjects{objects: map[objectKey]map[string]any{}}
	for _, doc := range file.Docs {
		if err := c.addCapturedDocument(doc); err != nil {
			return nil, fmt.Errorf("reading %s: %w", options.nameField("captured"), err)
		}
	}
	slices.SortFunc(c.keys, func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return c, nil
}

// addCapturedDocument adds a document: an object, or a list of some.
func (c *capturedObjects) addCapturedDocument(doc *manifest.Document) error {
	if doc.Empty() {
		return nil
	}
	items, isList, err := doc.Items()
	if err != nil {
		return fmt.Errorf("%s: %w", doc, err)
	}
	list, err := decodeCaptured(doc)
	if err != nil {
		return err
	}
	if !isList {
		return c.addObject(doc, list)
	}
	elements, _ := list["items"].([]any)
	for i, item := range items {
		object, _ := elements[i].(map[string]any)
		if object == nil {
			return fmt.Errorf("%s: it is no object", item)
		}
		// The items of a list of one kind do not declare their kind.
		if kind, _ := list["kind"].(string); kind != "List" {
			setMissing(object, "kind", strings.TrimSuffix(kind, "List"))
			setMissing(object, "apiVersion", list["apiVersion"])
		}
		if err := c.addObject(item, object); err != nil {
			return err
		}
	}
	return nil
}

func setMissing(object map[string]any, field string, value any) {
	if object[field] == nil {
		object[field] = value
	}
}

// decodeCaptured reads a document as a client of an API server reads an object: whole numbers are whole.
func decodeCaptured(doc *manifest.Document) (map[string]any, error) {
	text, err := yaml.YAMLToJSON([]byte(doc.Text()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doc, err)
	}
	var object map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(text, &object); err != nil || object == nil {
		return nil, fmt.Errorf("%s: it is no object", doc)
	}
	return object, nil
}

func (c *capturedObjects) addObject(doc *manifest.Document, object map[string]any) error {
	metadata, _ := object["metadata"].(map[string]any)
	text := func(in map[string]any, field string) string {
		value, _ := in[field].(string)
		return value
	}
	key := objectKey{text(object, "apiVersion"), text(object, "kind"), text(metadata, "namespace"), text(metadata, "name")}
	if key.apiVersion == "" || key.kind == "" || key.name == "" {
		return fmt.Errorf("%s: an object needs apiVersion, kind and metadata.name", doc)
	}
	if c.objects[key] != nil {
		return fmt.Errorf("%s: %s %s is here twice", doc, key.kind, key.name)
	}
	if key.apiVersion == "v1" && key.kind == "Secret" {
		encodeSecret(object)
	}
	c.objects[key] = object
	c.keys = append(c.keys, key)
	return nil
}

// encodeSecret moves what is written readably to where an API server has it.
func encodeSecret(secret map[string]any) {
	readable, _ := secret["stringData"].(map[string]any)
	if readable == nil {
		return
	}
	delete(secret, "stringData")
	data, _ := secret["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	for name, value := range readable {
		if text, ok := value.(string); ok {
			data[name] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	secret["data"] = data
}

// lookupCapturedObject is Helm's function (pkg/engine/lookup_func.go of v4.3.1) with the file in the place of a
// cluster. What it returns is the template's to change.
func (c *capturedObjects) lookupCapturedObject(apiVersion, kind, namespace, name string) (map[string]any, error) {
	items := []any{}
	for _, key := range c.keys {
		matches := key.apiVersion == apiVersion && key.kind == kind && (name == "" || key.name == name)
		// An object without a namespace is found in any, as those of a kind that has none. One of a namespace is not found by its
		// name alone.
		if !matches || key.namespace != "" && key.namespace != namespace && (namespace != "" || name != "") {
			continue
		}
		object := runtime.DeepCopyJSON(c.objects[key])
		if name != "" {
			return object, nil
		}
		items = append(items, object)
	}
	if name != "" {
		return map[string]any{}, nil
	}
	return map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "metadata": map[string]any{}, "items": items}, nil
}
