// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/prerig/prerig/fn/admission"
)

// standards are Kubernetes' own checks, as its admission plugin runs them.
var standards = sync.OnceValues(func() (policy.Evaluator, error) {
	return policy.NewEvaluator(policy.DefaultChecks(), nil)
})

// enforcesLevel reports whether the pod's namespace is known to enforce a Pod Security level.
func enforcesLevel(in *Input) bool {
	level := in.NamespaceLabels[psa.EnforceLevelLabel]
	return in.NamespaceKnown && level != "" && level != string(psa.LevelPrivileged)
}

// checkPodSecurity reports what injection adds to the violations of the level that the namespace enforces.
// Violations of the user's own containers are not this tool's concern: those pods are rejected without it too.
func checkPodSecurity(p *pod) []finding {
	if len(p.injected) == 0 || !enforcesLevel(p.in) {
		return nil
	}
	level := p.in.NamespaceLabels[psa.EnforceLevelLabel]
	latest := psa.LevelVersion{Level: psa.LevelPrivileged, Version: psa.LatestVersion()}
	enforced, errs := psa.PolicyToEvaluate(p.in.NamespaceLabels, psa.Policy{Enforce: latest, Audit: latest, Warn: latest})
	if len(errs) > 0 {
		// Kubernetes treats an unreadable level as restricted. Then the namespace is wrong, not the pod.
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
	defaulted := defaultedPod(p.in.After, p.in.Facts.KubernetesVersion)
	after := podSecurityViolations(evaluator, standard, defaulted)
	before := podSecurityViolations(evaluator, standard, defaultedPod(withoutInjected(p), p.in.Facts.KubernetesVersion))
	var out []finding
	for _, check := range sortedKeys(after) {
		if detail, ok := before[check]; ok && detail == after[check] {
			continue
		}
		name, path := blameFor(p, evaluator, standard, check, defaulted)
		out = append(out, finding{
			path: path, container: name,
			message: fmt.Sprintf("the namespace enforces the Pod Security level %s, which forbids it: %s", level, after[check]),
		})
	}
	return out
}

// defaultedPod returns a copy of a pod as the API server's defaulting leaves it: Pod Security sees no other. A volume that
// has only a name is an emptyDir then, and not one of an unknown kind.
func defaultedPod(pod map[string]any, kubernetesVersion string) map[string]any {
	data, err := json.Marshal(pod)
	if err != nil {
		return pod
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		return pod
	}
	server, err := admission.NewServer(kubernetesVersion)
	if err != nil {
		server = admission.Server{} // a version that cannot be read is not known
	}
	server.Default(out)
	return out
}

// podSecurityViolations returns what is forbidden, by the reason, with its details.
func podSecurityViolations(evaluator policy.Evaluator, level psa.LevelVersion, pod map[string]any) map[string]string {
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
func withoutInjected(p *pod) map[string]any {
	base := p.in.After
	if p.in.Before != nil {
		base = p.in.Before
	}
	return withContainers(base, func(name string) bool { return !p.injected[name] })
}

// withContainers returns the pod with the containers whose names are to be kept.
func withContainers(pod map[string]any, keep func(name string) bool) map[string]any {
	old, _ := pod["spec"].(map[string]any)
	spec := maps.Clone(old)
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

// blameFor finds the injected container, or the volume, that violates a check by itself.
func blameFor(p *pod, evaluator policy.Evaluator, level psa.LevelVersion, check string, pod map[string]any) (name, path string) {
	for _, c := range p.allContainers() {
		if !p.injected[c.name] {
			continue
		}
		only := withContainers(pod, func(name string) bool { return name == c.name })
		delete(only["spec"].(map[string]any), "volumes")
		if _, ok := podSecurityViolations(evaluator, level, only)[check]; ok {
			return c.name, c.path + containerFieldOf(check)
		}
	}
	spec, _ := pod["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	known := ownVolumes(p.in)
	for i, volume := range volumes {
		m, _ := volume.(map[string]any)
		only := map[string]any{"metadata": pod["metadata"], "spec": map[string]any{"volumes": []any{volume}}}
		if _, ok := podSecurityViolations(evaluator, level, only)[check]; ok && !known[textOf(m["name"])] {
			return "", fmt.Sprintf("spec.volumes[%d]", i)
		}
	}
	return "", "spec"
}

// containerFieldOf returns the field of a container that a check of Pod Security reads, by the reason that the
// check reports (source: k8s.io/pod-security-admission/policy, the files check_*.go).
func containerFieldOf(check string) string {
	switch check {
	case "hostPort":
		return ".ports"
	case "probe or lifecycle host":
		return ""
	}
	return ".securityContext"
}

// ownVolumes names the volumes that the user's own pod has; none where that pod is not known.
func ownVolumes(in *Input) map[string]bool {
	spec, _ := in.Before["spec"].(map[string]any)
	list, _ := spec["volumes"].([]any)
	out := map[string]bool{}
	for _, volume := range list {
		m, _ := volume.(map[string]any)
		out[textOf(m["name"])] = true
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return slices.Clip(keys)
}
