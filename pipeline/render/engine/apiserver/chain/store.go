// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/prerig/prerig/pipeline/render/fields"
)

// The versions 1.N of Kubernetes that store a pod differently.
const (
	appArmorFields   = 30
	affinityKeys     = 31
	spreadSelectors  = 34
	appArmorPrefix   = "container.apparmor.security.beta.kubernetes.io/"
	localhostProfile = "localhost/"
)

// prepare makes of the pod what the API server stores, between the admission that changes and the one that validates
// (source: PrepareForCreate in pkg/registry/core/pod/strategy.go).
func (a *Admission) prepare() {
	pod := a.Pod
	if pod.Name == "" && pod.GenerateName != "" {
		pod.Name = pod.GenerateName + fields.DrawnSuffix
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	server := a.cluster.Server
	if affinity := pod.Spec.Affinity; affinity != nil && server.IsSince(affinityKeys) {
		var terms []*corev1.PodAffinityTerm
		if one := affinity.PodAffinity; one != nil {
			terms = append(terms, termsOf(one.PreferredDuringSchedulingIgnoredDuringExecution, one.RequiredDuringSchedulingIgnoredDuringExecution)...)
		}
		if one := affinity.PodAntiAffinity; one != nil {
			terms = append(terms, termsOf(one.PreferredDuringSchedulingIgnoredDuringExecution, one.RequiredDuringSchedulingIgnoredDuringExecution)...)
		}
		for _, t := range terms {
			selectKeys(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn, pod.Labels)
			selectKeys(t.LabelSelector, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn, pod.Labels)
		}
	}
	if server.IsSince(spreadSelectors) {
		for i := range pod.Spec.TopologySpreadConstraints {
			c := &pod.Spec.TopologySpreadConstraints[i]
			selectKeys(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn, pod.Labels)
		}
	}
	if server.IsSince(appArmorFields) {
		readAppArmor(pod)
	}
}

func termsOf(preferred []corev1.WeightedPodAffinityTerm, required []corev1.PodAffinityTerm) (out []*corev1.PodAffinityTerm) {
	for i := range preferred {
		out = append(out, &preferred[i].PodAffinityTerm)
	}
	for i := range required {
		out = append(out, &required[i])
	}
	return out
}

// selectKeys adds the pod's own values of labels to a selector.
func selectKeys(selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator, labels map[string]string) {
	for _, key := range keys {
		if value, ok := labels[key]; ok && selector != nil {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: key, Operator: operator, Values: []string{value},
			})
		}
	}
}

// readAppArmor sets the profiles of containers by the annotations.
func readAppArmor(pod *corev1.Pod) {
	if pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows {
		return
	}
	var ofPod *corev1.AppArmorProfile
	if pod.Spec.SecurityContext != nil {
		ofPod = pod.Spec.SecurityContext.AppArmorProfile
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			profile := appArmorProfile(pod.Annotations[appArmorPrefix+c.Name])
			if profile == nil || c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil || equality.Semantic.DeepEqual(profile, ofPod) {
				continue
			}
			if c.SecurityContext == nil {
				c.SecurityContext = &corev1.SecurityContext{}
			}
			c.SecurityContext.AppArmorProfile = profile
		}
	}
}

// appArmorProfile parses the value of an annotation. It returns nil if the value sets no profile.
func appArmorProfile(value string) *corev1.AppArmorProfile {
	switch {
	case value == "unconfined":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case value == "runtime/default":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case strings.HasPrefix(value, localhostProfile):
		name := strings.TrimPrefix(value, localhostProfile)
		if name = strings.TrimSpace(name); name == "" {
			return nil
		}
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	}
	return nil
}

// Map returns a pod as maps of its own.
func Map(pod *corev1.Pod) map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		panic(err) // a typed pod can always be written
	}
	return out
}
