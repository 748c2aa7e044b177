// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// appSet is what is read of an ApplicationSet (pkg/apis/application/v1alpha1 of Argo CD 3.6).
type appSet struct {
	Spec struct {
		GoTemplate        bool           `json:"goTemplate"`
		GoTemplateOptions []string       `json:"goTemplateOptions"`
		Generators        []any          `json:"generators"`
		Template          map[string]any `json:"template"`
		TemplatePatch     *string        `json:"templatePatch"`
		SyncPolicy        struct {
			PreserveResourcesOnDeletion bool `json:"preserveResourcesOnDeletion"`
		} `json:"syncPolicy"`
	} `json:"spec"`
}

// renderApplicationSet renders an ApplicationSet to its Applications.
func (s *Set) renderApplicationSet(o *Object, out *Rendered) error {
	if o.Ref().APIVersion != argoGroup+"/v1alpha1" {
		return errorAboutField(o, "apiVersion", "is not read; move it to %s/v1alpha1", argoGroup)
	}
	var set appSet
	if _, err := decodeReleaseType(o, &set); err != nil {
		return err
	}
	if len(set.Spec.Generators) == 0 {
		return errorAboutField(o, "spec.generators", "must be given")
	}
	g := &appSetGenerator{
		set: s, object: o, left: maxGenerated,
		templates: newAppSetTemplates(set.Spec.GoTemplate, set.Spec.GoTemplateOptions),
	}
	names := map[string]bool{}
	for i, generator := range set.Spec.Generators {
		at := fmt.Sprintf("spec.generators[%d]", i)
		made, err := g.generate(at, generator, nil)
		if err != nil {
			return aboutField(o, at, err)
		}
		for _, one := range made {
			template := g.templateFor(generator, one.kind, set.Spec.Template)
			for _, values := range one.params {
				app, err := g.makeApplication(template, &set, values)
				if err != nil {
					return aboutField(o, "spec.template", err)
				}
				name, _ := mapAt(app, "metadata")["name"].(string)
				if name == "" || names[name] {
					return errorAboutField(o, "spec.template.metadata.name", "must be another one for each Application, found %q for two of them, or none", name)
				}
				names[name] = true
				out.Manifests = append(out.Manifests, Manifest{Template: name, YAML: string(manifest.Marshal(app))})
			}
		}
	}
	return nil
}

// templateFor returns the template of a generator: its own, completed by that of the ApplicationSet.
func (g *appSetGenerator) templateFor(generator any, kind string, all map[string]any) map[string]any {
	spec, _ := generator.(map[string]any)
	own := mapAt(mapAt(spec, kind), "template")
	if len(own) == 0 {
		return all
	}
	return completeMap(own, all)
}

// atomicFields are objects of a template that count as a whole.
var atomicFields = []string{"valuesObject"}

// completeMap returns a map with what it lacks of another one. As Argo CD compares Go values, a zero value counts as missing.
func completeMap(own, others map[string]any) map[string]any {
	out := maps.Clone(own)
	if out == nil {
		out = map[string]any{}
	}
	for key, other := range others {
		inner, isMap := out[key].(map[string]any)
		otherInner, both := other.(map[string]any)
		switch {
		case isZero(out[key]):
			out[key] = other
		case isMap && both && !slices.Contains(atomicFields, key):
			out[key] = completeMap(inner, otherInner)
		}
	}
	return out
}

// isZero reports whether a value is the zero value of its field.
func isZero(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case nil, bool, string, int, int64, float64:
		return v == nil || v == false || v == "" || v == 0 || v == int64(0) || v == 0.0
	}
	return false
}

// makeApplication fills in the template for one set of parameters.
func (g *appSetGenerator) makeApplication(template map[string]any, set *appSet, values params) (map[string]any, error) {
	filled := any(template)
	var err error
	if len(values) > 0 {
		if filled, err = g.templates.fillAll("spec.template", filled, values); err != nil {
			return nil, err
		}
	}
	app, _ := filled.(map[string]any)
	if len(values) > 0 && !set.Spec.SyncPolicy.PreserveResourcesOnDeletion {
		app = withFinalizer(app)
	}
	if set.Spec.TemplatePatch != nil {
		if app, err = g.patchApplication(app, *set.Spec.TemplatePatch, values); err != nil {
			return nil, &fieldError{"spec.templatePatch", err}
		}
	}
	metadata := maps.Clone(mapAt(app, "metadata"))
	if metadata == nil {
		metadata = map[string]any{}
	}
	delete(metadata, "namespace")
	if namespace := g.object.Ref().Namespace; namespace != "" {
		metadata["namespace"] = namespace
	}
	return map[string]any{"apiVersion": argoGroup + "/v1alpha1", "kind": "Application", "metadata": metadata, "spec": app["spec"]}, nil
}

// withFinalizer adds the finalizer that has Argo CD delete what an Application deploys, to one without any.
func withFinalizer(app map[string]any) map[string]any {
	metadata := mapAt(app, "metadata")
	if finalizers, _ := metadata["finalizers"].([]any); len(finalizers) > 0 {
		return app
	}
	app = maps.Clone(app)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	metadata["finalizers"] = []any{"resources-finalizer.argocd.argoproj.io"}
	app["metadata"] = metadata
	return app
}

// patchApplication applies the templatePatch, which cannot change the project.
func (g *appSetGenerator) patchApplication(app map[string]any, text string, values params) (map[string]any, error) {
	text, err := g.templates.fill(text, values)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	if err := readYAML([]byte(text), &patch); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	project, hasProject := mapAt(app, "spec")["project"]
	patched, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(podmap.CopyMap(app), patch, noPatchMeta{})
	if err != nil {
		return nil, err
	}
	spec := mapAt(patched, "spec")
	if spec == nil {
		return nil, errors.New("leaves no spec")
	}
	delete(spec, "project")
	if hasProject {
		spec["project"] = project
	}
	return patched, nil
}

// noPatchMeta is the schema of a strategic merge patch whose lists are replaced, as all lists of an Application are.
type noPatchMeta struct{}

// LookupPatchMetadataForStruct implements strategicpatch.LookupPatchMeta.
func (noPatchMeta) LookupPatchMetadataForStruct(string) (meta strategicpatch.LookupPatchMeta, patch strategicpatch.PatchMeta, err error) {
	return noPatchMeta{}, patch, nil
}

// LookupPatchMetadataForSlice implements strategicpatch.LookupPatchMeta.
func (noPatchMeta) LookupPatchMetadataForSlice(string) (meta strategicpatch.LookupPatchMeta, patch strategicpatch.PatchMeta, err error) {
	return noPatchMeta{}, patch, nil
}

// Name implements strategicpatch.LookupPatchMeta.
func (noPatchMeta) Name() string { return "Application" }

// mapAt returns the map at a key, nil where there is none.
func mapAt(of map[string]any, key string) map[string]any {
	out, _ := of[key].(map[string]any)
	return out
}

// withoutKey returns a copy of a map without a key, nil for none.
func withoutKey(of map[string]any, key string) map[string]any {
	out := maps.Clone(of)
	delete(out, key)
	return out
}
