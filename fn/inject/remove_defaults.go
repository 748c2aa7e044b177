// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/quantity"
)

// ownAsWritten returns a container of the overrides annotation without the defaults that it contains because the
// webhook saw them: those that the injected container lacks, because they are not written, and the pull policy that
// belongs to the image of the annotation and not to the injected one. Quantities get the spelling of the injected
// container. A container that would not come out the same without them stays unchanged.
func ownAsWritten(noted any, injected map[string]any) any {
	c, ok := noted.(map[string]any)
	if !ok || injected == nil {
		return noted
	}
	slim := writtenFields(podmap.ContainerSchema(), c, injected)
	var server admission.Server
	policy := c["imagePullPolicy"]
	if policy != nil && policy == pullPolicyOf(c) && policy != pullPolicyOf(injected) {
		delete(slim, "imagePullPolicy")
	}
	if !podmap.Same(defaultedContainer(server, slim), defaultedContainer(server, c)) {
		return noted
	}
	return slim
}

// withRestoredImage restores the image that a container of the annotation omits. That is auto, which means the
// template's own, or none at all: in the latter case the API server recorded a pull policy other than the default for
// auto, and the user wrote none.
func withRestoredImage(noted any, injected map[string]any) any {
	c, ok := noted.(map[string]any)
	if _, has := c["image"]; !ok || has {
		return noted
	}
	if policy := c["imagePullPolicy"]; policy != nil && injected != nil && injected["imagePullPolicy"] == nil &&
		policy == pullPolicyOf(nil) && policy != pullPolicyOf(map[string]any{"image": autoImage}) {
		return noted
	}
	c = podmap.CopyMap(c)
	c["image"] = autoImage
	return c
}

// pullPolicyOf is the pull policy that a container gets by its image, which may have none.
func pullPolicyOf(c map[string]any) any {
	var server admission.Server
	only := map[string]any{}
	if image, ok := c["image"]; ok {
		only["image"] = image
	}
	server.DefaultContainer(only)
	return only["imagePullPolicy"]
}

// defaultedContainer is a container of the annotation as the API server has it in a pod.
func defaultedContainer(server admission.Server, c map[string]any) map[string]any {
	c = podmap.CopyMap(c)
	server.Default(map[string]any{"spec": map[string]any{containersKey: []any{c}}})
	return c
}

// valueAsWritten returns the value of a field as written in another container, without what is not written in that one.
func valueAsWritten(f *podmap.SchemaField, v, other any) any {
	switch v := v.(type) {
	case map[string]any:
		if m, ok := other.(map[string]any); ok {
			return writtenFields(f.Schema, v, m)
		}
	case []any:
		if l, ok := other.([]any); ok {
			return writtenElements(f, v, l)
		}
	case string:
		if f.Schema.TypeName == "Quantity" && sameQuantity(v, other) {
			return other
		}
	}
	return podmap.CopyValue(v)
}

func writtenFields(s *podmap.Schema, m, other map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, v := range m {
		was, there := other[key]
		if !there {
			continue
		}
		f := s.Field(key)
		switch {
		case f != nil:
		case s.Elem != nil:
			f = &podmap.SchemaField{Schema: s.Elem}
		default:
			f = &podmap.SchemaField{Schema: podmap.UnknownSchema}
		}
		value := valueAsWritten(f, v, was)
		if sub, ok := value.(map[string]any); ok && len(sub) == 0 && !podmap.Same(v, value) {
			continue // only defaults
		}
		out[key] = value
	}
	return out
}

// writtenElements does it for the elements of a list. One that the other container does not have stays as it is.
func writtenElements(f *podmap.SchemaField, list, other []any) []any {
	out := make([]any, len(list))
	for i, e := range list {
		m, ok := e.(map[string]any)
		out[i] = podmap.CopyValue(e)
		if !ok || f.MergeKey == "" {
			continue
		}
		if was := podmap.FindBy(other, f.MergeKey, m[f.MergeKey]); was != nil {
			out[i] = writtenFields(f.Schema.Elem, m, was)
		}
	}
	return out
}

// sameQuantity reports whether two quantities are the same, however they are written.
func sameQuantity(a string, b any) bool {
	x, err := quantity.Parse(a)
	if err != nil {
		return false
	}
	y, err := quantity.Parse(fmt.Sprint(b))
	return err == nil && x.Cmp(y) == 0
}
