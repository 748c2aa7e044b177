// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/gate"
)

// checkGate holds the objects of the result against the schemas and the admission that the pipeline names. What is found are results;
// whether they stop anything is not decided here.
func (w *renderWorker) checkGate(ctx context.Context, items []fn.Item) error {
	if w.request.Schemas == nil && w.request.Admission == nil {
		return nil
	}
	options, err := w.gateOptions()
	if err != nil {
		return err
	}
	objects, err := gateObjects(items)
	if err != nil {
		return err
	}
	found, err := gate.Check(ctx, objects, options)
	if err != nil {
		return fmt.Errorf("checking the objects by spec.gates: %w", err)
	}
	w.response.Results = append(w.response.Results, found...)
	return nil
}

// gateOptions reads what the pipeline names: one check does both, as definitions say what kinds policies are about.
func (w *renderWorker) gateOptions() (gate.Options, error) {
	schemas, admission := w.request.Schemas, w.request.Admission
	options := gate.Options{SkipSchemas: schemas == nil, SkipAdmission: admission == nil}
	rules := map[string]string{}
	read := func(field, key string, names []string, severities map[string]string) error {
		if _, err := gate.NewSeverities(severities); err != nil {
			return fmt.Errorf("reading %s.rules: %w", field, err)
		}
		maps.Copy(rules, severities)
		for _, name := range names {
			objects, err := w.readDefinitions(name)
			if err != nil {
				return fmt.Errorf("reading %s.%s: %w", field, key, err)
			}
			options.Catalog = append(options.Catalog, objects...)
		}
		return nil
	}
	if schemas != nil {
		options.KubernetesVersion = schemas.KubernetesVersion
		if err := read("spec.gates.schemas", "crds", schemas.CRDs, schemas.Rules); err != nil {
			return options, err
		}
	}
	if admission != nil {
		options.KubernetesVersion = cmp.Or(admission.KubernetesVersion, options.KubernetesVersion)
		options.PodSecurity = admission.PodSecurity
		if admission.User != nil {
			options.User, options.Groups = admission.User.Name, admission.User.Groups
		}
		if err := read("spec.gates.admission", "policies", admission.Policies, admission.Rules); err != nil {
			return options, err
		}
	}
	var err error
	options.Severities, err = gate.NewSeverities(rules)
	return options, err
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
