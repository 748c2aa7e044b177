// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// typed is the pod as Kubernetes' Go types, which templates read. Fields that the types do not have are not in it.
func (p *pod) typed() (*corev1.Pod, error) {
	out := &corev1.Pod{}
	obj := map[string]any{"metadata": p.meta, "spec": p.spec}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, out); err != nil {
		return nil, fmt.Errorf("reading the pod: %w", err)
	}
	return out, nil
}

// typedContainer is one container as Kubernetes' Go type.
func typedContainer(c map[string]any) (*corev1.Container, error) {
	out := &corev1.Container{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c, out); err != nil {
		return nil, fmt.Errorf("reading the container %v: %w", c["name"], err)
	}
	return out, nil
}
