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
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// isGated reports whether the request names schemas or an admission.
func (w *renderWorker) isGated() bool { return w.request.Schemas != nil || w.request.Admission != nil }

// checkGate holds the objects of the result against the schemas and the admission that the pipeline names. What is found are results;
// whether they stop anything is not decided here.
func (w *renderWorker) checkGate(ctx context.Context, policies []*policyv1alpha1.InjectionPolicy, items []fn.Item) error {
	if !w.isGated() {
		return nil
	}
	options, err := w.gateOptions()
	if err != nil {
		return err
	}
	options.AddPolicies(policies)
	var locate func(map[string]any, []any) *result.File // a field of an object without a place
	if w.response.Type == v1alpha1.BuildKustomize {
		locate = w.written.locateWrittenField
	}
	objects, err := w.places.gateObjects(items, locate)
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

// istioVersions returns the versions of Istio that decisions of policies injected.
func istioVersions(decisions []render.Decision) []string {
	var out []string
	for _, d := range decisions {
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
	options := gate.Options{Published: true, IstioVersions: istioVersions(w.response.Decisions), SkipSchemas: schemas == nil, SkipAdmission: admission == nil}
	rules := map[string]string{}
	read := func(field, key string, names []string, severities map[string]string) error {
		if _, err := gate.NewSeverities(severities); err != nil {
			return fmt.Errorf("reading %s.rules: %w", field, err)
		}
		maps.Copy(rules, severities)
		for _, name := range names {
			objects, err := readDefinitions(w.files, name, w.response.AddWarning)
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
func readDefinitions(files tree.Reader, name string, warn func(string)) ([]gate.Object, error) {
	info, err := files.Lookup(name)
	if err != nil {
		return nil, err
	}
	var items []fn.Item
	if info.Dir {
		items, err = collectFiles(files, name, warn)
	} else {
		items, err = readFile(files, name, func(*manifest.Document) (bool, error) { return true, nil })
	}
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
