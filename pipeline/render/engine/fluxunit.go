// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/flux"
	"github.com/prerig/prerig/pipeline/render/engine/release"
	"github.com/prerig/prerig/pipeline/source/tree"
)

type dependency = kustomizev1.DependencyReference

// buildItems builds the documents of a unit. An error, or a finding that is one, leaves it without any.
func (r *fluxRun) buildItems(ctx context.Context, unit *fluxUnit) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the library gave up: %v", p)
		}
	}()
	kustomize := r.w.kustomize
	source := fluxArtifacts{r}.artifactOf(unit)
	info, err := source.Lookup(unit.dir)
	if err == nil && !info.Dir {
		err = fmt.Errorf("%s is not a directory", unit.dir)
	}
	if err != nil {
		return unit.fieldError("spec.path", err)
	}
	if wanting, err := kustomize.needsBases(ctx, source, info.Path); err != nil || wanting {
		return unit.fieldError("spec.path", err)
	}
	replaced, missing, err := r.generate(unit, source, info.Path)
	if err != nil {
		return err
	}
	if wanting, err := kustomize.needsBases(ctx, replaced, info.Path); err != nil || wanting {
		return unit.fieldError("spec.path", err)
	}
	files := kustomize.newCheckedTree(replaced)
	files.leftOut = missing
	built, err := kustomize.runLeniently(ctx, files, info.Path, types.LoadRestrictionsNone)
	if files.schema || schemaIsSet() {
		openapi.ResetOpenAPI() // it is for this unit alone
		openapi.Schema()
	}
	if err != nil {
		return unit.fieldError("spec.path", err)
	}
	r.report(unit, missing.results()...)
	objects := built.Resources()
	for _, object := range objects {
		if object.GetName() == "" || object.GetKind() == "" || object.GetApiVersion() == "" {
			return fmt.Errorf("%s %s has no name, and Flux applies no such object", object.GetApiVersion(), object.GetKind())
		}
	}
	if unit.k != nil {
		if objects, err = r.finishObjects(unit, objects); err != nil {
			return err
		}
	}
	unit.items, err = kustomize.resourceItems(files, objects)
	return err
}

// fieldError is an error about a field of the unit's Kustomization, or of the pipeline's where it has none.
func (u *fluxUnit) fieldError(field string, err error) error {
	if u.k == nil || err == nil {
		return err
	}
	return release.FieldError(u.k.Object, field, "%v", err)
}

// generate returns the tree with the kustomization that the unit is built with, and what of it is left out.
func (r *fluxRun) generate(unit *fluxUnit, source tree.Reader, dir string) (tree.Reader, *leftOut, error) {
	files := kustomizeFS{r: source}
	original := r.w.kustomize.newCheckedTree(source)
	at := path.Join("/", dir)
	name, content, err := flux.ReadDirectory(files, at)
	if err != nil {
		return nil, nil, unit.fieldError("spec.path", err)
	}
	created := !files.Exists(name)
	if !created {
		// Lines in errors are those of the file.
		if _, err := original.checkKustomization(render.CleanPath(name), content); err != nil {
			return nil, nil, unit.fieldError("spec.path", err)
		}
	}
	var spec kustomizev1.KustomizationSpec
	if unit.k != nil {
		spec = unit.k.Spec
	}
	configured, err := flux.Configure(files, at, content, created, &spec)
	if err != nil {
		return nil, nil, unit.fieldError("spec", fmt.Errorf("reading %s: %w", strings.TrimPrefix(name, "/"), err))
	}
	return tree.Replaced{Reader: source, Path: render.CleanPath(name), Content: configured}, original.leftOut, nil
}

// finishObjects substitutes the variables of the objects that kustomize has built, and adds the common metadata. It
// leaves out objects with variables that have no value, after it has reported them.
func (r *fluxRun) finishObjects(unit *fluxUnit, objects []*resource.Resource) ([]*resource.Resource, error) {
	variables, err := flux.ReadVariables(unit.k, r.w.request.Review, func(kind, name string) *release.Object {
		return r.objects[fluxObject{kind, unit.k.Namespace, name}]
	})
	if err != nil {
		return nil, err
	}
	for _, name := range variables.Absent() {
		if r.w.request.Review {
			break // its variables are reported where they are used
		}
		r.report(unit, release.Finding(result.Warning, unit.k.Object, "spec.postBuild.substituteFrom",
			name+" is optional and not among the objects of the tree, so that its variables are left out; a cluster may have it"))
	}
	var out []*resource.Resource
	for _, object := range objects {
		missing, err := variables.Substitute(object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if err := r.reportVariables(unit, variables, object, missing); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(missing, func(one flux.Unresolved) bool { return !one.Kept }) {
			continue
		}
		if common := unit.k.Spec.CommonMetadata; common != nil {
			if err := addMetadata(object, common); err != nil {
				return nil, err
			}
		}
		out = append(out, object)
	}
	return out, nil
}

// reportVariables reports the variables of an object without a value, and those of a HelmRelease that nothing
// substitutes: its chart gets their text as the cluster does, which is rarely meant.
func (r *fluxRun) reportVariables(unit *fluxUnit, variables *flux.Variables, object *resource.Resource, missing []flux.Unresolved) error {
	untouched := !variables.Active() && !flux.Disabled(object) && object.GetKind() == "HelmRelease"
	if len(missing) == 0 && !untouched {
		return nil
	}
	value, err := object.Map()
	if err != nil {
		return err
	}
	about := &release.Object{Value: value, Locate: func(at []any) *result.File { return r.w.written.locateWrittenField(value, at) }}
	for _, one := range missing {
		message := fmt.Sprintf("the variable %s of the Kustomization %s: %s", one.Variable, unit.key, one.Reason)
		found := release.Finding(result.Error, about, one.Field, message)
		switch {
		case one.Kept && !one.Elsewhere: // the cluster writes an empty text in its place, unless it is strict
			found.Severity, found.Tags = result.Warning, map[string]string{result.TagCode: render.CodeVariableMissing}
		case one.Kept:
			found.Severity, found.Tags = result.Info, map[string]string{result.TagCode: render.CodeVariableKept, render.TagVariable: one.Variable}
		}
		r.report(unit, found)
	}
	if field, name := release.FindVariable(value, func(string) bool { return true }); untouched && name != "" {
		r.report(unit, release.Finding(result.Warning, about, field,
			fmt.Sprintf("the variable %s stays as it is, as the Kustomization %s has no spec.postBuild with variables", name, unit.key)))
	}
	return nil
}

// addMetadata adds labels and annotations to an object, over those that it has.
func addMetadata(object *resource.Resource, common *kustomizev1.CommonMetadata) error {
	if len(common.Labels) > 0 {
		labels := object.GetLabels()
		maps.Copy(labels, common.Labels)
		if err := object.SetLabels(labels); err != nil {
			return err
		}
	}
	if len(common.Annotations) == 0 {
		return nil
	}
	annotations := object.GetAnnotations()
	maps.Copy(annotations, common.Annotations)
	return object.SetAnnotations(annotations)
}

// renderUnitReleases puts what releases render to in their place, in each unit. One that fails leaves the rest of its unit alone.
func (r *fluxRun) renderUnitReleases(ctx context.Context) error {
	if r.w.request.Releases == nil {
		return nil
	}
	run, err := r.w.newReleaseRun(ctx, func(err error) error { return err }, r)
	if err != nil {
		return err
	}
	for _, unit := range r.units {
		if err := run.addObjects(unit.items); err != nil {
			return err
		}
	}
	if err := run.addObjects(run.beside); err != nil {
		return err
	}
	for _, unit := range r.units {
		if unit.failed {
			continue
		}
		run.created = nil
		items, err := run.renderAll(ctx, unit.items, nil, 0)
		if ctx.Err() != nil {
			return err
		}
		if err == nil {
			items, err = run.addNamespaces(items)
		}
		r.report(unit, run.takeResults()...)
		if err != nil {
			r.failUnit(unit, err)
			continue
		}
		unit.items = items
		for _, item := range items {
			if object, err := r.kustomizationOf(item); err == nil && object != nil && r.byKey[object.Ref().Namespace+"/"+object.Ref().Name] == nil {
				r.report(unit, release.Finding(result.Warning, object, "", "is made by a release, and is not followed"))
			}
		}
	}
	r.w.response.Results = append(r.w.response.Results, run.scopes.unknownKindFindings()...)
	return nil
}
