// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver"
	"github.com/prerig/prerig/pipeline/render/gate"
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
	objects, err := w.gateObjects(items)
	if err != nil {
		return err
	}
	found, err := apiserver.Check(ctx, objects, options)
	if err != nil {
		return fmt.Errorf("checking the objects by spec.gates: %w", err)
	}
	w.response.Results = append(w.response.Results, gate.JoinUndescribed(found)...)
	return nil
}

// istioVersions returns the versions of Istio that the policies of the pipeline injected.
func (w *renderWorker) istioVersions() []string {
	var out []string
	for _, d := range w.response.Decisions {
		if d.Version != "" && !slices.Contains(out, d.Version) {
			out = append(out, d.Version)
		}
	}
	return out
}

// gateOptions reads the definitions and policies that the pipeline names: one check does both, since definitions
// define the kinds that policies are about.
func (w *renderWorker) gateOptions() (gate.Options, error) {
	schemas, admission := w.request.Schemas, w.request.Admission
	options := gate.Options{Published: true, IstioVersions: w.istioVersions(), SkipSchemas: schemas == nil, SkipAdmission: admission == nil}
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
	var out []gate.Object
	for _, item := range items {
		objects, err := gate.ReadDocument(item.Doc, item.Doc, item.Path)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", item.Doc, err)
		}
		out = append(out, objects...)
	}
	return out, nil
}

// builtDocs are the documents of a build as they are before policies are applied, by the file and position that they are from.
type builtDocs map[builtPlace]*manifest.Document

type builtPlace struct {
	path  string
	index int
}

// rememberBuilt keeps the lines of the documents of a build, and what users wrote of them if the gate is going to name
// places.
func (w *renderWorker) rememberBuilt(items []fn.Item) {
	w.lines = map[builtPlace]int{}
	for _, item := range items {
		if item.Path != "" {
			w.lines[builtPlace{item.Path, item.Index}] = item.Doc.Line()
		}
	}
	if w.request.Schemas == nil && w.request.Admission == nil {
		return
	}
	w.built = builtDocs{}
	for _, item := range items {
		if item.Path != "" {
			w.built[builtPlace{item.Path, item.Index}] = item.Doc
		}
	}
}

// gateObjects reads the objects of documents, with the places in the source they come from: an injection may have
// changed the lines of a file, and kustomize does not report which file it was. Other objects have no place.
func (w *renderWorker) gateObjects(items []fn.Item) ([]gate.Object, error) {
	var out []gate.Object
	for _, item := range items {
		source, known := w.built[builtPlace{item.Path, item.Index}]
		if !known {
			source = item.Doc
		}
		objects, err := gate.ReadDocument(item.Doc, source, item.Path)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", item.Doc, err)
		}
		for _, o := range objects {
			if !known {
				o.File, o.Line = nil, nil
				if w.response.Type == v1alpha1.BuildKustomize {
					o.Locate = func(path []any) *result.File { return w.written.locateWrittenField(o.Value, path) }
				}
			}
			out = append(out, o)
		}
	}
	return out, nil
}
