// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// compiledParameter is SidecarParameter, compiled.
type compiledParameter struct {
	spec    v1alpha1.SidecarParameter
	pattern *regexp.Regexp
	// low and high are the bounds; nil for none.
	low, high any
	// initial is the value if no annotation sets it; hasDefault reports whether the policy set it.
	initial    any
	hasDefault bool
}

func newParameter(s v1alpha1.SidecarParameter) (*compiledParameter, error) {
	p := &compiledParameter{spec: s}
	if p.spec.Type == "" {
		p.spec.Type = typeString
	}
	var err error
	if s.Pattern != "" {
		if p.pattern, err = regexp.Compile("^(?:" + s.Pattern + ")$"); err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
	}
	for _, b := range []struct {
		key, text string
		to        *any
	}{{"minimum", s.Minimum, &p.low}, {"maximum", s.Maximum, &p.high}} {
		if b.text == "" {
			continue
		}
		if *b.to, err = p.parseMeasure(b.text); err != nil {
			return nil, fmt.Errorf("%s: %w", b.key, err)
		}
	}
	p.initial = zeroValueFor(p.spec.Type)
	if s.Prefix != "" {
		p.initial = map[string]any{}
	}
	if s.Default != nil {
		p.hasDefault = true
		if p.initial, err = p.parseDefaultValue(s.Default); err != nil {
			return nil, fmt.Errorf("default: %w", err)
		}
	}
	return p, nil
}

// parseDefaultValue reads the default: a value of the type, or its text.
func (p *compiledParameter) parseDefaultValue(v any) (any, error) {
	if p.spec.Prefix == "" {
		return p.policyValue(v)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it has to be a map from the annotation's name after %s to its value", p.spec.Prefix)
	}
	out := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value, err := p.policyValue(m[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out[key] = value
	}
	return out, nil
}

// readParameters reads all parameters for a pod. Every one of them is in the map. An error is an *podmap.FieldError
// where an annotation of the pod is wrong.
func (s *Sidecar) readParameters(req Request) (map[string]any, error) {
	own, err := workload.Annotations(req.Original)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(s.parameters))
	for _, p := range s.parameters {
		v, err := p.readValue(own, req.Namespace)
		if err != nil {
			return nil, err
		}
		out[p.spec.Name] = v
	}
	return out, nil
}

// readValue returns the parameter's value.
func (p *compiledParameter) readValue(own map[string]string, ns Namespace) (any, error) {
	if p.spec.Prefix != "" {
		return p.readFamily(own, ns)
	}
	names := append([]string{p.spec.Annotation}, p.spec.Aliases...)
	if p.spec.Annotation == "" {
		names = nil
	}
	for _, name := range names {
		if text, ok := own[name]; ok {
			v, err := p.parseText(text)
			return v, podAnnotation(name, err)
		}
	}
	for _, name := range names {
		if text, ok := ns.Annotations[name]; ok && !p.spec.PodOnly {
			v, err := p.parseText(text)
			return v, namespaceAnnotation(ns, name, err)
		}
	}
	if p.spec.Required && !p.hasDefault {
		return nil, p.missingError()
	}
	return copyOf(p.initial), nil
}

// readFamily returns the values of the annotations with a prefix, the pod's over the namespace's over the default's.
func (p *compiledParameter) readFamily(own map[string]string, ns Namespace) (any, error) {
	out, _ := copyOf(p.initial).(map[string]any)
	if !p.spec.PodOnly {
		for _, name := range p.annotationsOf(ns.Annotations) {
			v, err := p.parseText(ns.Annotations[name])
			if err != nil {
				return nil, namespaceAnnotation(ns, name, err)
			}
			out[name[len(p.spec.Prefix):]] = v
		}
	}
	for _, name := range p.annotationsOf(own) {
		v, err := p.parseText(own[name])
		if err != nil {
			return nil, podAnnotation(name, err)
		}
		out[name[len(p.spec.Prefix):]] = v
	}
	if p.spec.Required && len(out) == 0 {
		return nil, p.missingError()
	}
	return out, nil
}

// annotationsOf returns the names of annotations that have the prefix and something behind it, sorted.
func (p *compiledParameter) annotationsOf(annotations map[string]string) []string {
	var out []string
	for name := range annotations {
		if len(name) > len(p.spec.Prefix) && strings.HasPrefix(name, p.spec.Prefix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// missingError describes how to set a required parameter.
func (p *compiledParameter) missingError() error {
	switch {
	case p.spec.Prefix != "":
		return &podmap.FieldError{Field: "metadata.annotations",
			Err: fmt.Errorf("there is none that begins with %s, which parameter %s needs", p.spec.Prefix, p.spec.Name)}
	case p.spec.Annotation == "":
		return fmt.Errorf("parameter %s has no value; give it a default in the policy", p.spec.Name)
	}
	return &podmap.FieldError{Field: annotationField(p.spec.Annotation),
		Err: fmt.Errorf("it is not set, and parameter %s has no default", p.spec.Name)}
}

// readsAnnotation reports whether an annotation sets the parameter.
func (p *compiledParameter) readsAnnotation(name string) bool {
	if p.spec.Prefix != "" {
		return strings.HasPrefix(name, p.spec.Prefix)
	}
	return name == p.spec.Annotation || slices.Contains(p.spec.Aliases, name)
}

// unreadAnnotations returns the pod's annotations that look like the sidecar's and are never read, sorted.
func (s *Sidecar) unreadAnnotations(annotations map[string]string) []string {
	var out []string
	for name := range annotations {
		own := slices.ContainsFunc(s.own, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if own && !s.reads[name] && !slices.ContainsFunc(s.parameters, func(p *compiledParameter) bool { return p.readsAnnotation(name) }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func annotationField(name string) string {
	return workload.FieldString([]any{"metadata", "annotations", name})
}

func podAnnotation(name string, err error) error {
	if err == nil {
		return nil
	}
	return &podmap.FieldError{Field: annotationField(name), Err: err}
}

func namespaceAnnotation(ns Namespace, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("reading the annotation %s of the namespace %s: %w", name, ns.Name, err)
}
