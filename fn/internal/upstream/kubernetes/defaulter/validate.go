// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !novalidation

package main

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

// validated returns a Status that reports whether the API server accepts a Pod, and why not. It does what the
// strategy of Pods in pkg/registry/core/pod of Kubernetes does on creation.
func validated(text []byte) ([]byte, error) {
	internal, kind, err := legacyscheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	pod, ok := internal.(*core.Pod)
	if !ok {
		return nil, fmt.Errorf("validating: %s is no Pod", kind)
	}
	if pod.Name == "" && pod.GenerateName != "" {
		pod.Name = pod.GenerateName + "x"
	}
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&pod.Spec, nil, &pod.ObjectMeta, nil)
	options.ResourceIsPod = true
	if problems := validation.ValidatePodCreate(pod, options); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	return json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
}
