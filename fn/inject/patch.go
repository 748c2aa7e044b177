// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Merge gives the pod with a strategic merge patch of its metadata and spec merged into it, by Kubernetes' rules for pods.
// Neither argument is changed. A field of the patch that has a wrong type is a *FieldError.
func Merge(obj, patch map[string]any) (map[string]any, error) {
	p, err := newPod(obj)
	if err != nil {
		return nil, err
	}
	patch = copyMap(patch)
	if err := fitPatch(podSchema(), patch); err != nil {
		return nil, err
	}
	if err := p.overlay(patch); err != nil {
		return nil, err
	}
	return p.object(), nil
}

// MergeContainer gives a container with a strategic merge patch merged into it, by the same rules.
func MergeContainer(container, patch map[string]any) (map[string]any, error) {
	patch, out := copyMap(patch), copyMap(container)
	if err := fitPatch(containerSchema(), patch); err != nil {
		return nil, err
	}
	return mergePatch(containerSchema(), out, patch)
}

// UnknownFields are the paths of fields of a pod that Kubernetes' types do not have, sorted: misspelt ones, or those of
// a newer Kubernetes.
func UnknownFields(obj map[string]any) []string {
	var out []string
	unknownFields(podSchema(), obj, "", &out)
	return out
}

// UnknownContainerFields are those of a container.
func UnknownContainerFields(container map[string]any) []string {
	var out []string
	unknownFields(containerSchema(), container, "", &out)
	return out
}

func unknownFields(s *schema, v any, path string, out *[]string) {
	switch v := v.(type) {
	case map[string]any:
		if s.kind != structKind {
			return
		}
		for _, key := range sortedNames(v) {
			if key != "" && key[0] == directivePrefix {
				continue
			}
			at := key
			if path != "" {
				at = path + "." + key
			}
			if f := s.field(key); f != nil {
				unknownFields(f.schema, v[key], at, out)
			} else {
				*out = append(*out, at)
			}
		}
	case []any:
		for i, e := range v {
			if s.elem != nil {
				unknownFields(s.elem, e, fmt.Sprintf("%s[%d]", path, i), out)
			}
		}
	}
}

// Typed gives a pod as Kubernetes' Go types, without the fields that they do not have. A field of a wrong type is a
// *FieldError.
func Typed(obj map[string]any) (*corev1.Pod, error) {
	p, err := newPod(obj)
	if err != nil {
		return nil, err
	}
	return p.typed()
}

// TypedContainer gives a container as Kubernetes' Go type.
func TypedContainer(container map[string]any) (*corev1.Container, error) {
	return typedContainer(container)
}
