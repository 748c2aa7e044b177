// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"fmt"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/gate"
)

// checkGate holds the objects of the result against the schemas that the pipeline names. What is found are results; whether they stop
// anything is not decided here.
func (w *renderWorker) checkGate(ctx context.Context, items []fn.Item) error {
	asked := w.request.Schemas
	if asked == nil {
		return nil
	}
	severities, err := gate.NewSeverities(asked.Rules)
	if err != nil {
		return fmt.Errorf("reading spec.gates.schemas.rules: %w", err)
	}
	options := gate.Options{KubernetesVersion: asked.KubernetesVersion, Severities: severities}
	for _, name := range asked.CRDs {
		read, err := w.readDefinitions(name)
		if err != nil {
			return fmt.Errorf("reading spec.gates.schemas.crds: %w", err)
		}
		options.Catalog = append(options.Catalog, read...)
	}
	objects, err := gateObjects(items)
	if err != nil {
		return err
	}
	found, err := gate.Check(ctx, objects, options)
	if err != nil {
		return fmt.Errorf("checking the objects by spec.gates.schemas: %w", err)
	}
	w.response.Results = append(w.response.Results, found...)
	return nil
}

// readDefinitions reads the objects of a file, or of the files of a directory.
func (w *renderWorker) readDefinitions(name string) ([]gate.Object, error) {
	info, err := w.files.Lookup(name)
	if err != nil {
		return nil, err
	}
	read := w.collectFiles
	if !info.Dir {
		read = func(name string) ([]fn.Item, error) {
			return w.readFile(name, func(*manifest.Document) (bool, error) { return true, nil })
		}
	}
	items, err := read(name)
	if err != nil {
		return nil, err
	}
	return gateObjects(items)
}

// gateObjects reads the objects of documents. Lines are left out: they would be those after the injection, which no file has.
func gateObjects(items []fn.Item) ([]gate.Object, error) {
	var out []gate.Object
	for _, item := range items {
		objects, err := gate.ReadDocument(item.Doc, item.Doc, item.Path)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", item.Doc, err)
		}
		for _, o := range objects {
			o.Line, o.File.Line = nil, 0
			if o.File.Path == "" {
				o.File = nil
			}
			out = append(out, o)
		}
	}
	return out, nil
}
