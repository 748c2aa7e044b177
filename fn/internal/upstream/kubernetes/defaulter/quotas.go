// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !novalidation

package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	quotacore "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/utils/clock"
)

// constrained returns a Status that reports whether a namespace's ResourceQuotas let a Pod in as far as they demand
// requests and limits, and why not. The Pod is the last of a list's items, after the LimitRanges and ResourceQuotas. It
// does what the admission plugins LimitRanger and ResourceQuota do.
func constrained(text []byte) ([]byte, error) {
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("reading the list: %w", err)
	}
	var ranges []*corev1.LimitRange
	var quotas []*corev1.ResourceQuota
	for _, item := range list.Items {
		internal, kind, err := legacyscheme.Codecs.UniversalDecoder().Decode(item, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("reading the object: %w", err)
		}
		if pod, ok := internal.(*core.Pod); ok {
			if err := constrainPod(pod, ranges, quotas); err != nil {
				return nil, err
			}
			continue
		}
		external, err := legacyscheme.Scheme.ConvertToVersion(internal, corev1.SchemeGroupVersion)
		if err != nil {
			return nil, fmt.Errorf("converting %s: %w", kind, err)
		}
		switch external := external.(type) {
		case *corev1.LimitRange:
			ranges = append(ranges, external)
		case *corev1.ResourceQuota:
			external.Status.Hard = external.Spec.Hard // as the controller of quotas sets it
			quotas = append(quotas, external)
		}
	}
	return json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
}

// constrainPod returns why a quota does not let a Pod in.
func constrainPod(pod *core.Pod, ranges []*corev1.LimitRange, quotas []*corev1.ResourceQuota) error {
	for _, one := range ranges {
		if err := limitranger.PodMutateLimitFunc(one, pod); err != nil {
			return err
		}
	}
	evaluator := quotacore.NewPodEvaluator(nil, clock.RealClock{})
	for _, one := range quotas {
		matches, err := evaluator.Matches(one, pod)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		required := evaluator.MatchingResources(quota.ResourceNames(one.Status.Hard))
		if err := evaluator.Constraints(required, pod); err != nil {
			return fmt.Errorf("failed quota: %s: %w", one.Name, err)
		}
	}
	return nil
}
