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
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/workload"
)

// parameter is SidecarParameter, compiled.
type parameter struct {
	spec    v1alpha1.SidecarParameter
	pattern *regexp.Regexp
	// low and high are the bounds; nil for none.
	low, high any
	// initial is the value where no annotation sets it, and hasDefault says that the policy gave it.
	initial    any
	hasDefault bool
}

func newParameter(s v1alpha1.SidecarParameter) (*parameter, error) {
	p := &parameter{spec: s}
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
		if *b.to, err = p.measure(b.text); err != nil {
			return nil, fmt.Errorf("%s: %w", b.key, err)
		}
	}
	p.initial = zeroOf(p.spec.Type)
	if s.Prefix != "" {
		p.initial = map[string]any{}
	}
	if s.Default != nil {
		p.hasDefault = true
		if p.initial, err = p.fromDefault(s.Default); err != nil {
			return nil, fmt.Errorf("default: %w", err)
		}
	}
	return p, nil
}

// fromDefault reads the default: a value of the type, or its text.
func (p *parameter) fromDefault(v any) (any, error) {
	if p.spec.Prefix == "" {
		return p.value(v)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it has to be a map from the annotation's name after %s to its value", p.spec.Prefix)
	}
	out := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value, err := p.value(m[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out[key] = value
	}
	return out, nil
}

// params reads all parameters for a pod. Every one of them is in the map. An error is an *inject.FieldError where an
// annotation of the pod is wrong.
func (s *Sidecar) params(req Request) (map[string]any, error) {
	own, err := workload.Annotations(req.Original)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(s.parameters))
	for _, p := range s.parameters {
		v, err := p.read(own, req.Namespace)
		if err != nil {
			return nil, err
		}
		out[p.spec.Name] = v
	}
	return out, nil
}

// read gives the parameter's value.
func (p *parameter) read(own map[string]string, ns Namespace) (any, error) {
	if p.spec.Prefix != "" {
		return p.readFamily(own, ns)
	}
	names := append([]string{p.spec.Annotation}, p.spec.Aliases...)
	if p.spec.Annotation == "" {
		names = nil
	}
	for _, name := range names {
		if text, ok := own[name]; ok {
			v, err := p.parse(text)
			return v, podAnnotation(name, err)
		}
	}
	for _, name := range names {
		if text, ok := ns.Annotations[name]; ok && !p.spec.PodOnly {
			v, err := p.parse(text)
			return v, namespaceAnnotation(ns, name, err)
		}
	}
	if p.spec.Required && !p.hasDefault {
		return nil, p.missing()
	}
	return copyOf(p.initial), nil
}

// readFamily gives the values of the annotations with a prefix, the pod's over the namespace's over the default's.
func (p *parameter) readFamily(own map[string]string, ns Namespace) (any, error) {
	out, _ := copyOf(p.initial).(map[string]any)
	if !p.spec.PodOnly {
		for _, name := range p.family(ns.Annotations) {
			v, err := p.parse(ns.Annotations[name])
			if err != nil {
				return nil, namespaceAnnotation(ns, name, err)
			}
			out[name[len(p.spec.Prefix):]] = v
		}
	}
	for _, name := range p.family(own) {
		v, err := p.parse(own[name])
		if err != nil {
			return nil, podAnnotation(name, err)
		}
		out[name[len(p.spec.Prefix):]] = v
	}
	if p.spec.Required && len(out) == 0 {
		return nil, p.missing()
	}
	return out, nil
}

// family gives the names of annotations that have the prefix and something behind it, sorted.
func (p *parameter) family(annotations map[string]string) []string {
	var out []string
	for name := range annotations {
		if len(name) > len(p.spec.Prefix) && strings.HasPrefix(name, p.spec.Prefix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// missing says how to set a parameter that has to be set.
func (p *parameter) missing() error {
	switch {
	case p.spec.Prefix != "":
		return &inject.FieldError{Field: "metadata.annotations", Err: fmt.Errorf("there is none that begins with %s, which parameter %s needs", p.spec.Prefix, p.spec.Name)}
	case p.spec.Annotation == "":
		return fmt.Errorf("parameter %s has no value; give it a default in the policy", p.spec.Name)
	}
	return &inject.FieldError{Field: annotationField(p.spec.Annotation), Err: fmt.Errorf("it is not set, and parameter %s has no default", p.spec.Name)}
}

// reads says whether an annotation sets the parameter.
func (p *parameter) reads(name string) bool {
	if p.spec.Prefix != "" {
		return strings.HasPrefix(name, p.spec.Prefix)
	}
	return name == p.spec.Annotation || slices.Contains(p.spec.Aliases, name)
}

// unread gives the pod's annotations that look like the sidecar's and that nothing reads, sorted.
func (s *Sidecar) unread(annotations map[string]string) []string {
	var out []string
	for name := range annotations {
		own := slices.ContainsFunc(s.own, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if own && !s.reads[name] && !slices.ContainsFunc(s.parameters, func(p *parameter) bool { return p.reads(name) }) {
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
	return &inject.FieldError{Field: annotationField(name), Err: err}
}

func namespaceAnnotation(ns Namespace, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("reading the annotation %s of the namespace %s: %w", name, ns.Name, err)
}
