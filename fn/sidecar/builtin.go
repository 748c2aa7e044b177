// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/policies"
)

// withBuiltIn returns the sidecar itself, or the built-in one that it names with its changes.
func withBuiltIn(s v1alpha1.Sidecar) (v1alpha1.Sidecar, error) {
	if s.BuiltIn == "" {
		return s, nil
	}
	base, err := builtIn(s.BuiltIn)
	if err != nil {
		return s, err
	}
	if s.Name != "" {
		base.Name = s.Name
	}
	if base.Values, err = mergeValues(base.Values, s.Values, "values"); err != nil {
		return s, fmt.Errorf("reading sidecar %s: %w", base.Name, err)
	}
	if base.Parameters, err = mergeParameters(base.Parameters, s.Parameters); err != nil {
		return s, fmt.Errorf("reading sidecar %s: %w", base.Name, err)
	}
	if sel := s.Select; len(sel.Kinds)+len(sel.Names)+len(sel.Namespaces)+len(sel.Rules) > 0 || sel.Default != "" {
		base.Select = mergeSelect(base.Select, sel)
	}
	if s.Order != (v1alpha1.SidecarOrder{}) {
		base.Order = mergeOrder(base.Order, s.Order)
	}
	if s.Guard.Labels != nil {
		base.Guard.Labels = s.Guard.Labels
	}
	if s.Guard.Annotations != nil {
		base.Guard.Annotations = s.Guard.Annotations
	}
	if s.OwnAnnotations != nil {
		base.OwnAnnotations = s.OwnAnnotations
	}
	return base, nil
}

// builtIn reads the sidecar of a policy that comes with Prerig.
func builtIn(name string) (v1alpha1.Sidecar, error) {
	text, ok := policies.Get(name)
	if !ok {
		return v1alpha1.Sidecar{}, fmt.Errorf("finding the built-in policy %q%s: there are %s", name, strict.DidYouMean(name, policies.Names()), strings.Join(policies.Names(), ", "))
	}
	p, err := v1alpha1.Parse(text)
	if err != nil {
		return v1alpha1.Sidecar{}, fmt.Errorf("reading the built-in policy %s: %w", name, err)
	}
	if len(p.Spec.Sidecars) != 1 {
		return v1alpha1.Sidecar{}, fmt.Errorf("reading the built-in policy %s: it has no sidecar of its own; Istio's proxy is set with spec.istio", name)
	}
	return p.Spec.Sidecars[0], nil
}

// mergeValues merges values over those of a built-in sidecar. A key that the built-in one does not have is an
// error, as it would have no effect, except in a map that is empty in the built-in one, which may have any.
func mergeValues(base, over map[string]any, at string) (map[string]any, error) {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for _, key := range slices.Sorted(maps.Keys(over)) {
		old, known := base[key]
		if !known && len(base) > 0 {
			return nil, fmt.Errorf("%s.%s: the built-in sidecar has no such value; it has %s", at, key, strings.Join(slices.Sorted(maps.Keys(base)), ", "))
		}
		oldMap, wasMap := old.(map[string]any)
		newMap, isMap := over[key].(map[string]any)
		switch {
		case wasMap && isMap:
			merged, err := mergeValues(oldMap, newMap, at+"."+key)
			if err != nil {
				return nil, err
			}
			out[key] = merged
		case wasMap && over[key] != nil:
			return nil, fmt.Errorf("%s.%s: it has to be a map", at, key)
		default:
			out[key] = over[key]
		}
	}
	return out, nil
}

// mergeParameters sets what is set in over in the parameters of the same name.
func mergeParameters(base, over []v1alpha1.SidecarParameter) ([]v1alpha1.SidecarParameter, error) {
	out := slices.Clone(base)
	for _, o := range over {
		i := slices.IndexFunc(out, func(p v1alpha1.SidecarParameter) bool { return p.Name == o.Name })
		if i < 0 {
			var names []string
			for _, p := range base {
				names = append(names, p.Name)
			}
			return nil, fmt.Errorf("parameters: the built-in sidecar has no parameter %q; it has %s", o.Name, strings.Join(names, ", "))
		}
		p := &out[i]
		for _, f := range []struct{ to, from *string }{{&p.Annotation, &o.Annotation}, {&p.Prefix, &o.Prefix}, {&p.Type, &o.Type},
			{&p.Minimum, &o.Minimum}, {&p.Maximum, &o.Maximum}, {&p.Pattern, &o.Pattern}} {
			if *f.from != "" {
				*f.to = *f.from
			}
		}
		if o.Aliases != nil {
			p.Aliases = o.Aliases
		}
		if o.Enum != nil {
			p.Enum = o.Enum
		}
		if o.Default != nil {
			p.Default = o.Default
		}
		p.Required, p.PodOnly = p.Required || o.Required, p.PodOnly || o.PodOnly
	}
	return out, nil
}

// mergeSelect replaces the narrowing fields, the rules and the default, each where it is set.
func mergeSelect(base, over v1alpha1.SidecarSelect) v1alpha1.SidecarSelect {
	for _, f := range []struct{ to, from *[]string }{{&base.Kinds, &over.Kinds}, {&base.Names, &over.Names}, {&base.Namespaces, &over.Namespaces}} {
		if len(*f.from) > 0 {
			*f.to = *f.from
		}
	}
	if len(over.Rules) > 0 {
		base.Rules = over.Rules
	}
	if over.Default != "" {
		base.Default = over.Default
	}
	return base
}

func mergeOrder(base, over v1alpha1.SidecarOrder) v1alpha1.SidecarOrder {
	if over.Position != "" {
		base.Position, base.Container = over.Position, over.Container
	}
	if over.InitPosition != "" {
		base.InitPosition, base.InitContainer = over.InitPosition, over.InitContainer
	}
	if over.Istio != "" {
		base.Istio = over.Istio
	}
	return base
}
