// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// istios are the names of containers in which a pod changes Istio's own: they are not the app's.
var istios = []string{"istio-proxy", "istio-init", "istio-validation", "enable-core-dump"}

// patchContainers changes the app's containers: those that the original has.
func (s *Sidecar) patchContainers(out *Result, req Request, data *Data) error {
	for i, patch := range s.spec.Containers {
		chosen, err := s.chooseContainers(patch, req, data)
		if err != nil {
			return err
		}
		keys := []string{containersKey}
		if patch.InitContainers {
			keys = []string{initContainersKey, containersKey}
		}
		for _, key := range keys {
			app := listOf(req.Original, key)
			list := listOf(out.Pod, key)
			for at, c := range list {
				name, _ := c["name"].(string)
				if indexOf(app, name) < 0 || slices.Contains(istios, name) || !chosen(name) {
					continue
				}
				changed, err := s.patchContainer(out, req, containerTemplate(i), key, at, data)
				if err != nil {
					return err
				}
				spec, _ := out.Pod["spec"].(map[string]any)
				spec[key].([]any)[at] = changed
			}
		}
	}
	return nil
}

// patchContainer renders the template for one container, and merges what it prints.
func (s *Sidecar) patchContainer(out *Result, req Request, template, key string, at int,
	data *Data) (map[string]any, error) {
	c := listOf(out.Pod, key)[at]
	typed, err := podmap.TypedContainer(c)
	if err != nil {
		return nil, &podmap.FieldError{Field: workload.FieldString([]any{"spec", key, at}), Err: err}
	}
	own := *data
	own.Container = typed
	patch, err := s.renderOverlay(template, &own)
	if err != nil {
		return nil, err
	}
	if name, ok := patch["name"]; ok && name != c["name"] {
		return nil, &gotemplate.Error{Template: template, Err: fmt.Errorf("it prints the name %v for the container %v; the name cannot change", name, c["name"])}
	}
	for _, field := range podmap.UnknownContainerFields(patch) {
		out.addWarning("", "%s sets %s, which is not a field that Kubernetes is known to have", template, field)
	}
	if err := s.fitPatch(req, key, c, patch); err != nil {
		return nil, err
	}
	changed, err := podmap.MergeContainer(c, patch)
	if err != nil {
		return nil, markTemplateError(template, err)
	}
	return changed, nil
}

// chooseContainers returns a predicate for the containers that a patch is for.
func (s *Sidecar) chooseContainers(patch v1alpha1.ContainerPatch, req Request, data *Data) (func(string) bool, error) {
	names := patch.Names
	if patch.NamesFrom != "" {
		list, ok := data.Params[patch.NamesFrom].([]any)
		if !ok {
			return nil, fmt.Errorf("choosing containers by the parameter %s: it is not a list", patch.NamesFrom)
		}
		for _, e := range list {
			name, _ := e.(string)
			names = append(names, name)
		}
		if err := s.checkNames(patch, names, req); err != nil {
			return nil, err
		}
	}
	match := compileWildcards(names)
	return func(name string) bool { return match == nil || match.MatchString(name) }, nil
}

// checkNames refuses a name from an annotation that no container has.
func (s *Sidecar) checkNames(patch v1alpha1.ContainerPatch, names []string, req Request) error {
	var have []string
	for _, key := range []string{containersKey, initContainersKey} {
		if key == initContainersKey && !patch.InitContainers {
			continue
		}
		for _, c := range listOf(req.Original, key) {
			name, _ := c["name"].(string)
			have = append(have, name)
		}
	}
	for _, name := range names {
		if strings.ContainsAny(name, "*?") || slices.Contains(have, name) {
			continue
		}
		err := fmt.Errorf("the pod has no container %q; it has %s", name, strings.Join(have, ", "))
		i := slices.IndexFunc(s.parameters, func(p *compiledParameter) bool { return p.spec.Name == patch.NamesFrom })
		if i < 0 || s.parameters[i].spec.Annotation == "" {
			return fmt.Errorf("choosing containers by the parameter %s: %w", patch.NamesFrom, err)
		}
		return &podmap.FieldError{Field: annotationField(s.parameters[i].spec.Annotation), Err: err}
	}
	return nil
}
