// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Merge returns the pod with a strategic merge patch of its metadata and spec merged into it, by Kubernetes' rules for
// pods. Neither argument is changed. A field of the patch that has a wrong type is a *FieldError.
func Merge(obj, patch map[string]any) (map[string]any, error) {
	parts, err := Split(obj, CopyMap)
	if err != nil {
		return nil, err
	}
	patch = CopyMap(patch)
	if err := FitPatch(PodSchema(), patch); err != nil {
		return nil, err
	}
	if err := parts.Overlay(patch); err != nil {
		return nil, err
	}
	return parts.Object(), nil
}

// MergeContainer returns a container with a strategic merge patch merged into it, by the same rules.
func MergeContainer(container, patch map[string]any) (map[string]any, error) {
	patch, out := CopyMap(patch), CopyMap(container)
	if err := FitPatch(ContainerSchema(), patch); err != nil {
		return nil, err
	}
	return mergePatch(ContainerSchema(), out, patch)
}

// UnknownFields are the paths of fields of a pod that Kubernetes' types do not have, sorted: misspelt ones, or those of
// a newer Kubernetes.
func UnknownFields(obj map[string]any) []string {
	var out []string
	unknownFields(PodSchema(), obj, "", &out)
	return out
}

// UnknownContainerFields are those of a container.
func UnknownContainerFields(container map[string]any) []string {
	var out []string
	unknownFields(ContainerSchema(), container, "", &out)
	return out
}

func unknownFields(s *Schema, v any, path string, out *[]string) {
	switch v := v.(type) {
	case map[string]any:
		if s.Kind != StructKind {
			return
		}
		for _, key := range SortedKeys(v) {
			if key != "" && key[0] == DirectivePrefix {
				continue
			}
			at := key
			if path != "" {
				at = path + "." + key
			}
			if f := s.Field(key); f != nil {
				unknownFields(f.Schema, v[key], at, out)
			} else {
				*out = append(*out, at)
			}
		}
	case []any:
		for i, e := range v {
			if s.Elem != nil {
				unknownFields(s.Elem, e, fmt.Sprintf("%s[%d]", path, i), out)
			}
		}
	}
}

// Typed returns a pod as Kubernetes' Go types, without the fields that they do not have. A field of a wrong type is a
// *FieldError.
func Typed(obj map[string]any) (*corev1.Pod, error) {
	parts, err := Split(obj, CopyMap)
	if err != nil {
		return nil, err
	}
	return parts.Typed()
}
