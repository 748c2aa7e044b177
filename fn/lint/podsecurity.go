// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// standards are Kubernetes' own checks, as its admission plugin runs them.
var standards = sync.OnceValues(func() (policy.Evaluator, error) {
	return policy.NewEvaluator(policy.DefaultChecks(), nil)
})

// checkPodSecurity reports what injection adds to the violations of the level that the namespace enforces. What the user's
// own containers violate is not for this tool to say: those pods are refused without it too.
func checkPodSecurity(p *pod) []finding {
	if !p.in.NamespaceKnown || len(p.injected) == 0 {
		return nil
	}
	level := p.in.NamespaceLabels[psa.EnforceLevelLabel]
	if level == "" || level == string(psa.LevelPrivileged) {
		return nil
	}
	latest := psa.LevelVersion{Level: psa.LevelPrivileged, Version: psa.LatestVersion()}
	enforced, errs := psa.PolicyToEvaluate(p.in.NamespaceLabels, psa.Policy{Enforce: latest, Audit: latest, Warn: latest})
	if len(errs) > 0 {
		// Kubernetes takes a level that it cannot read for restricted. It is the namespace that is wrong then, not the pod.
		return nil
	}
	standard := enforced.Enforce
	if v, ok := parseVersion(p.in.Facts.KubernetesVersion); ok && standard.Version.Latest() {
		standard.Version = psa.MajorMinorVersion(v.major, v.minor)
	}
	evaluator, err := standards()
	if err != nil {
		return nil
	}
	after := forbiddenBy(evaluator, standard, p.in.After)
	before := forbiddenBy(evaluator, standard, p.withoutInjected())
	var out []finding
	for _, check := range sortedKeys(after) {
		if detail, ok := before[check]; ok && detail == after[check] {
			continue
		}
		name, path := p.blame(evaluator, standard, check)
		out = append(out, finding{
			path: path, container: name,
			message: fmt.Sprintf("the namespace enforces the Pod Security level %s, which forbids it: %s", level, after[check]),
		})
	}
	return out
}

// forbiddenBy returns what is forbidden, by the reason, with its details.
func forbiddenBy(evaluator policy.Evaluator, level psa.LevelVersion, pod map[string]any) map[string]string {
	meta, spec, err := typedPod(pod)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, r := range evaluator.EvaluatePod(level, meta, spec) {
		if !r.Allowed {
			out[r.ForbiddenReason] = r.ForbiddenReason + ": " + r.ForbiddenDetail
		}
	}
	return out
}

func typedPod(pod map[string]any) (*metav1.ObjectMeta, *corev1.PodSpec, error) {
	data, err := json.Marshal(pod)
	if err != nil {
		return nil, nil, err
	}
	var out struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     corev1.PodSpec    `json:"spec"`
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, nil, err
	}
	return &out.Metadata, &out.Spec, nil
}

// withoutInjected returns the user's own pod: the original where it is known, and in any case without the injected containers.
func (p *pod) withoutInjected() map[string]any {
	base := p.in.After
	if p.in.Before != nil {
		base = p.in.Before
	}
	return withContainers(base, func(name string) bool { return !p.injected[name] })
}

// withContainers returns the pod with the containers whose names are to be kept.
func withContainers(pod map[string]any, keep func(name string) bool) map[string]any {
	old, _ := pod["spec"].(map[string]any)
	spec := make(map[string]any, len(old))
	for k, v := range old {
		spec[k] = v
	}
	for _, key := range []string{"initContainers", "containers"} {
		kept := []any{}
		for _, c := range containersOf(old, key, false) {
			if keep(c.name) {
				kept = append(kept, c.fields)
			}
		}
		spec[key] = kept
	}
	return map[string]any{"metadata": pod["metadata"], "spec": spec}
}

// blame finds the injected container that violates a check by itself.
func (p *pod) blame(evaluator policy.Evaluator, level psa.LevelVersion, check string) (name, path string) {
	for _, c := range p.all() {
		if !p.injected[c.name] {
			continue
		}
		only := withContainers(p.in.After, func(name string) bool { return name == c.name })
		if _, ok := forbiddenBy(evaluator, level, only)[check]; ok {
			return c.name, c.path + ".securityContext"
		}
	}
	return "", "spec"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return slices.Clip(keys)
}
