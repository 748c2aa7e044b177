// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/engine/release"
)

// OperatorGroup is the API group of the Flux Operator.
const OperatorGroup = "fluxcd.controlplane.io"

// InputProviderKind is the kind of the objects that ResourceSets take inputs from.
const InputProviderKind = "ResourceSetInputProvider"

// clusterAnnotations have the operator complete an object with what is in the cluster.
var clusterAnnotations = []string{OperatorGroup + "/copyFrom", OperatorGroup + "/convertKubeConfigFrom", OperatorGroup + "/checksumFrom"}

// ReconcileAnnotation leaves an object to itself where its value is ReconcileDisabled.
const ReconcileAnnotation = OperatorGroup + "/reconcile"

// ReconcileDisabled is the value of ReconcileAnnotation.
const ReconcileDisabled = "disabled"

// IsResourceSet reports whether an object of a group and kind is a ResourceSet of the Flux Operator.
func IsResourceSet(apiVersion, kind string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group == OperatorGroup && kind == "ResourceSet"
}

// ResourceSet is one of the Flux Operator. Its fields and their meaning are those of flux-operator v0.59 (api/v1,
// internal/builder and internal/inputs).
type ResourceSet struct {
	object    *release.Object
	namespace string
	spec      resourceSetSpec
}

type resourceSetSpec struct {
	CommonMetadata *struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"commonMetadata"`
	InputStrategy struct {
		Name                  string `json:"name"`
		IncludeEmptyProviders bool   `json:"includeEmptyProviders"`
	} `json:"inputStrategy"`
	InputsFrom []struct {
		Name     string                `json:"name"`
		Selector *metav1.LabelSelector `json:"selector"`
	} `json:"inputsFrom"`
	ResourcesTemplate string `json:"resourcesTemplate"`
	Steps             []struct {
		Name              string `json:"name"`
		ResourcesTemplate string `json:"resourcesTemplate"`
	} `json:"steps"`
}

// LeftError is the reason for which only the cluster knows what a ResourceSet makes.
type LeftError struct{ Field, Reason string }

// Error returns the reason.
func (e *LeftError) Error() string { return e.Reason }

// ReadResourceSet reads an object.
func ReadResourceSet(o *release.Object) (*ResourceSet, error) {
	var typed struct {
		Spec resourceSetSpec `json:"spec"`
	}
	if _, err := release.DecodeObject(o, &typed); err != nil {
		return nil, err
	}
	spec, fields := typed.Spec, podmap.MapAt(o.Value, "spec")
	switch {
	case o.Ref().Name == "":
		return nil, release.FieldError(o, "metadata.name", "must be given")
	case len(spec.Steps) > 0 && (fields["resources"] != nil || spec.ResourcesTemplate != ""):
		return nil, release.FieldError(o, "spec.steps", "excludes spec.resources and spec.resourcesTemplate")
	case len(spec.Steps) == 0 && fields["resources"] == nil && spec.ResourcesTemplate == "":
		return nil, release.FieldError(o, "spec", "must have steps, resources or resourcesTemplate")
	}
	return &ResourceSet{object: o, namespace: o.Ref().Namespace, spec: spec}, nil
}

// Build returns the objects that the operator makes, with the providers among the objects of the tree. The error is a *LeftError where that
// depends on more. For a comparison, objects that the operator completes from the cluster are returned without that.
func (s *ResourceSet) Build(providers []*release.Object, comparison bool) ([]map[string]any, error) {
	if annotation(s.object.Value, ReconcileAnnotation) == ReconcileDisabled {
		return nil, &LeftError{"metadata.annotations", "its annotation " + ReconcileAnnotation + " is disabled, so that only the cluster knows what it has applied"}
	}
	inputs, err := s.inputs(providers)
	if err != nil {
		return nil, err
	}
	if len(s.spec.InputsFrom) > 0 && len(inputs) == 0 {
		return nil, nil
	}
	fields := podmap.MapAt(s.object.Value, "spec")
	var all objectList
	if len(s.spec.Steps) == 0 {
		if err := s.addObjects(&all, "spec", fields["resources"], s.spec.ResourcesTemplate, inputs); err != nil {
			return nil, err
		}
	}
	steps := podmap.Maps(fields["steps"])
	owners := map[result.ResourceRef]string{}
	for i, step := range s.spec.Steps {
		at := fmt.Sprintf("spec.steps[%d]", i)
		var made objectList
		if err := s.addObjects(&made, at, steps[i]["resources"], step.ResourcesTemplate, inputs); err != nil {
			return nil, err
		}
		for _, object := range made.objects {
			key := keyOf(object)
			if other, found := owners[key]; found && other != step.Name {
				return nil, release.FieldError(s.object, at, "makes %s %s, which the step %s makes too", key.Kind, key.Name, other)
			}
			owners[key] = step.Name
		}
		all.objects = append(all.objects, made.objects...)
	}
	return s.finish(all.objects, comparison)
}

// finish adds the common metadata. It finds objects that the operator would complete.
func (s *ResourceSet) finish(objects []map[string]any, comparison bool) ([]map[string]any, error) {
	for _, object := range objects {
		for _, key := range clusterAnnotations {
			if annotation(object, key) != "" && !comparison {
				ref := result.RefTo(object)
				return nil, &LeftError{"spec", fmt.Sprintf("its %s %s has the annotation %s, which takes values from the cluster", ref.Kind, ref.Name, key)}
			}
		}
		if common := s.spec.CommonMetadata; common != nil {
			addToMetadata(object, "labels", common.Labels)
			addToMetadata(object, "annotations", common.Annotations)
		}
	}
	return objects, nil
}

func addToMetadata(object map[string]any, key string, more map[string]string) {
	if len(more) == 0 {
		return
	}
	metadata := podmap.MapAt(object, "metadata")
	into := podmap.MapAt(metadata, key)
	if into == nil {
		into = map[string]any{}
		metadata[key] = into
	}
	for name, value := range more {
		into[name] = value
	}
}

func annotation(object map[string]any, key string) string {
	value, _ := podmap.MapAt(object, "metadata", "annotations")[key].(string)
	return value
}

// keyOf returns the identity of an object in a cluster: its reference with the group alone, as versions have the same objects.
func keyOf(object map[string]any) result.ResourceRef {
	ref := result.RefTo(object)
	group, _, found := strings.Cut(ref.APIVersion, "/")
	if !found {
		group = ""
	}
	ref.APIVersion = group
	return ref
}

// objectList has the objects of templates, of which the first of an identity counts.
type objectList struct {
	objects []map[string]any
	known   map[result.ResourceRef]bool
}

func (l *objectList) add(object map[string]any, once bool) {
	if l.known == nil {
		l.known = map[result.ResourceRef]bool{}
	}
	key := keyOf(object)
	if once && l.known[key] {
		return
	}
	l.known[key] = true
	l.objects = append(l.objects, object)
}

// addObjects adds what the templates at a field make of each input: each resource for all inputs, and then the template of several.
func (s *ResourceSet) addObjects(into *objectList, at string, resources any, template string, inputs []map[string]any) error {
	each := inputs
	if len(each) == 0 {
		each = []map[string]any{nil}
	}
	list, _ := resources.([]any)
	for i, resource := range list {
		field := fmt.Sprintf("%s.resources[%d]", at, i)
		text, err := resourceText(resource)
		if err != nil {
			return release.FieldError(s.object, field, "%v", err)
		}
		for _, input := range each {
			made, err := s.execute(field, text, input)
			if err != nil {
				return err
			}
			if len(made) != 1 {
				return release.FieldError(s.object, field, "makes %d objects, and must make one", len(made))
			}
			into.addEnabled(made, len(inputs) > 0)
		}
	}
	if template == "" {
		return nil
	}
	for _, input := range each {
		made, err := s.execute(at+".resourcesTemplate", template, input)
		if err != nil {
			return err
		}
		into.addEnabled(made, true)
	}
	return nil
}

// addEnabled adds objects but for those that are disabled. Without inputs, a resource counts as it is.
func (l *objectList) addEnabled(objects []map[string]any, choose bool) {
	for _, object := range objects {
		if choose && annotation(object, ReconcileAnnotation) == ReconcileDisabled {
			continue
		}
		l.add(object, choose)
	}
}

// inputProvider is one that a ResourceSet takes inputs from, or the ResourceSet itself.
type inputProvider struct {
	name   string
	inputs []map[string]any
}

// inputs returns the combined inputs, of the ResourceSet itself and of its providers by their names.
func (s *ResourceSet) inputs(known []*release.Object) ([]map[string]any, error) {
	own := inputProvider{name: s.object.Ref().Name}
	for _, values := range podmap.Maps(podmap.MapAt(s.object.Value, "spec")["inputs"]) {
		if values != nil {
			own.inputs = append(own.inputs, providedBy(s.object, values))
		}
	}
	all := []inputProvider{own}
	chosen, err := s.chosenProviders(known)
	if err != nil {
		return nil, err
	}
	for _, provider := range chosen {
		spec := podmap.MapAt(provider.Value, "spec")
		if spec["type"] != "Static" {
			return nil, &LeftError{"spec.inputsFrom", fmt.Sprintf("%s %s is of type %v, whose inputs only the cluster has", InputProviderKind, provider.Ref().Name, spec["type"])}
		}
		values := providedBy(provider, podmap.MapAt(spec, "defaultValues"))
		all = append(all, inputProvider{provider.Ref().Name, []map[string]any{values}})
	}
	switch s.spec.InputStrategy.Name {
	case "", "Flatten":
		var out []map[string]any
		for _, provider := range all {
			out = append(out, provider.inputs...)
		}
		return out, nil
	case "Permute":
		return s.permute(all)
	}
	return nil, release.FieldError(s.object, "spec.inputStrategy.name", "must be Flatten or Permute, found %q", s.spec.InputStrategy.Name)
}

// providedBy returns inputs with the object that they are from.
func providedBy(object *release.Object, values map[string]any) map[string]any {
	out := maps.Clone(values)
	if out == nil {
		out = map[string]any{}
	}
	ref := object.Ref()
	out["provider"] = map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind, "name": ref.Name, "namespace": ref.Namespace}
	return out
}

// chosenProviders returns the providers that spec.inputsFrom means, each once, by name.
func (s *ResourceSet) chosenProviders(known []*release.Object) ([]*release.Object, error) {
	chosen := map[string]*release.Object{}
	for i, from := range s.spec.InputsFrom {
		field := fmt.Sprintf("spec.inputsFrom[%d]", i)
		selector, err := metav1.LabelSelectorAsSelector(from.Selector)
		if err != nil {
			return nil, release.FieldError(s.object, field+".selector", "%v", err)
		}
		if from.Name == "" && from.Selector == nil {
			return nil, release.FieldError(s.object, field, "must have a name or a selector")
		}
		found := false
		for _, one := range known {
			ref := one.Ref()
			if ref.Namespace == s.namespace && (from.Name != "" && ref.Name == from.Name || from.Name == "" && selector.Matches(labelsOf(one.Value))) {
				chosen[ref.Name], found = one, true
			}
		}
		if !found {
			what := from.Name
			if what == "" {
				what = "with the labels " + selector.String()
			}
			return nil, &LeftError{field, fmt.Sprintf("%s %s is not among the objects of the tree", InputProviderKind, what)}
		}
	}
	return slices.SortedFunc(maps.Values(chosen), func(a, b *release.Object) int { return cmp.Compare(a.Ref().Name, b.Ref().Name) }), nil
}

func labelsOf(object map[string]any) labels.Set {
	return podmap.StringMap(podmap.MapAt(object, "metadata")["labels"])
}
