// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// The lists of containers of a pod.
const (
	Containers     = "containers"
	InitContainers = "initContainers"
)

// AppArmorPrefix is the prefix of the annotation with the AppArmor profile of a container.
const AppArmorPrefix = "container.apparmor.security.beta.kubernetes.io/"

// Parts are the maps that a pod is made of.
type Parts struct {
	Meta, Spec map[string]any
	// Extra are keys beside metadata and spec.
	Extra map[string]any
}

// Split returns copies of the parts of a pod. The spec is copied by copySpec, which may leave something shared. A part
// that does not have the shape which everything here relies on is a *FieldError (see Check).
func Split(obj map[string]any, copySpec func(map[string]any) map[string]any) (Parts, error) {
	p := Parts{Extra: map[string]any{}}
	for k, v := range obj {
		switch k {
		case "metadata":
			m, ok := v.(map[string]any)
			if !ok && v != nil {
				return p, &FieldError{Field: k, Err: errNotMap}
			}
			p.Meta = CopyMap(m)
		case "spec":
			m, ok := v.(map[string]any)
			if !ok {
				return p, &FieldError{Field: k, Err: errNotMap}
			}
			p.Spec = copySpec(m)
		default:
			p.Extra[k] = CopyValue(v)
		}
	}
	if p.Spec == nil {
		return p, &FieldError{Field: "spec", Err: errors.New("the pod has none")}
	}
	if p.Meta == nil {
		p.Meta = map[string]any{}
	}
	return p, p.Check()
}

// PartsOf returns the maps of a pod themselves, nil for those that it does not have. They are not checked.
func PartsOf(obj map[string]any) Parts {
	var p Parts
	p.Meta, _ = obj["metadata"].(map[string]any)
	p.Spec, _ = obj["spec"].(map[string]any)
	return p
}

// Check returns a *FieldError where labels or annotations are neither strings nor null, or containers, volumes or pull
// secrets are not maps.
func (p Parts) Check() error {
	for _, key := range []string{"labels", "annotations"} {
		if err := checkStrings("metadata."+key, p.Meta[key]); err != nil {
			return err
		}
	}
	for _, key := range []string{Containers, InitContainers, "volumes", "imagePullSecrets"} {
		if err := checkMaps("spec."+key, p.Spec[key]); err != nil {
			return err
		}
	}
	return nil
}

// Overlay merges a patch into the parts with Kubernetes' rules for pods. Both are used up: they are changed.
func (p *Parts) Overlay(patch map[string]any) error {
	obj := map[string]any{"metadata": p.Meta, "spec": p.Spec}
	out, err := mergePatch(PodSchema(), obj, patch)
	if err != nil {
		return err
	}
	p.Meta, _ = out["metadata"].(map[string]any)
	p.Spec, _ = out["spec"].(map[string]any)
	if p.Meta == nil {
		p.Meta = map[string]any{}
	}
	if p.Spec == nil {
		return fmt.Errorf("merging: nothing is left of the pod's spec")
	}
	return nil
}

// Object returns the pod as one map. The parts must not be used after that.
func (p Parts) Object() map[string]any {
	p.Extra["metadata"], p.Extra["spec"] = p.Meta, p.Spec
	return p.Extra
}

// Typed returns the pod as Kubernetes' Go types. Fields that the types do not have are not in it; a field of a wrong
// type, or a quantity that cannot be read, is a *FieldError.
func (p Parts) Typed() (*corev1.Pod, error) {
	out := &corev1.Pod{}
	obj := map[string]any{"metadata": p.Meta, "spec": p.Spec}
	if err := decodeInto(obj, out); err != nil {
		if at := WrongType(PodSchema(), obj, ""); at != nil {
			return nil, at
		}
		if at := wrongQuantity(PodSchema(), obj); at != nil {
			return nil, at
		}
		return nil, fmt.Errorf("reading the pod: %w", err)
	}
	// A template that prints them distinguishes an empty map from nil, and the API server has dropped it by then.
	for _, m := range []*map[string]string{&out.Labels, &out.Annotations, &out.Spec.NodeSelector} {
		if len(*m) == 0 {
			*m = nil
		}
	}
	return out, nil
}
