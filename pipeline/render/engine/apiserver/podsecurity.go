// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	psa "k8s.io/pod-security-admission/api"
	psapolicy "k8s.io/pod-security-admission/policy"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// podSecurity holds pods against the levels of Pod Security, by Kubernetes' own code.
type podSecurity struct {
	evaluator psapolicy.Evaluator
	// defaults is the policy of namespaces that do not set one.
	defaults psa.Policy
	// server is the version of the API server, which is what latest means.
	server psa.Version
	// namespaces are those that are known.
	namespaces map[string]*corev1.Namespace
}

func newPodSecurity(minor uint, level string, namespaces map[string]*corev1.Namespace) (*podSecurity, error) {
	evaluator, err := psapolicy.NewEvaluator(psapolicy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	privileged := psa.LevelVersion{Level: psa.LevelPrivileged, Version: psa.LatestVersion()}
	p := &podSecurity{
		evaluator: evaluator, server: psa.MajorMinorVersion(1, int(minor)), namespaces: namespaces, //nolint:gosec // a small number
		defaults: psa.Policy{Enforce: privileged, Warn: privileged, Audit: privileged},
	}
	if level != "" {
		if p.defaults.Enforce, err = ParsePodSecurity(level); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// ParsePodSecurity reads a level of Pod Security such as baseline, or restricted:v1.34 with the version whose checks are meant.
func ParsePodSecurity(text string) (psa.LevelVersion, error) {
	level, version, ok := strings.Cut(text, ":")
	if !ok {
		version = psa.VersionLatest
	}
	out := psa.LevelVersion{}
	var err error
	if out.Level, err = psa.ParseLevel(level); err == nil {
		out.Version, err = psa.ParseVersion(version)
	}
	if err != nil {
		hint := ""
		if ok && !strings.HasPrefix(version, "v") {
			hint = fmt.Sprintf(", did you mean %s:v%s?", level, version)
		} else if !ok {
			hint = strict.DidYouMean(text, []string{"privileged", "baseline", "restricted"})
		}
		return psa.LevelVersion{}, fmt.Errorf("reading the Pod Security level %q: %w%s", text, err, hint)
	}
	return out, nil
}

// checkPodSecurity reports what the pod of the request violates. Levels that only warn are not looked at where the pod is refused anyway, as the API
// server does it.
func (a *admissionCheck) checkPodSecurity(o gate.Object, r *request.Request) {
	pod, ok := r.Object.(*corev1.Pod)
	if !ok {
		return
	}
	p := a.security
	policy := p.defaults
	if ns := p.namespaces[r.Namespace]; ns != nil {
		// What cannot be read counts as restricted; it is reported at the Namespace.
		policy, _ = psa.PolicyToEvaluate(ns.Labels, p.defaults)
	}
	refused := a.addViolation(o, r, pod, policy.Enforce, gate.CodeSecurityEnforce)
	if !refused && !a.addViolation(o, r, pod, policy.Warn, gate.CodeSecurityWarn) || policy.Audit != policy.Enforce && policy.Audit != policy.Warn {
		a.addViolation(o, r, pod, policy.Audit, gate.CodeSecurityAudit)
	}
}

// addViolation reports whether the pod violates a level.
func (a *admissionCheck) addViolation(o gate.Object, r *request.Request, pod *corev1.Pod, level psa.LevelVersion, code string) bool {
	p := a.security
	checked := level
	if checked.Version.Latest() || p.server.Older(checked.Version) { // the server has no newer checks than its own
		checked.Version = p.server
	}
	results := p.evaluator.EvaluatePod(checked, &pod.ObjectMeta, &pod.Spec)
	all := psapolicy.AggregateCheckResults(results)
	if all.Allowed {
		return false
	}
	verb := "would violate"
	if code == gate.CodeSecurityEnforce {
		verb = "violates"
	}
	message := fmt.Sprintf("%s PodSecurity %q: %s", verb, level.String(), all.ForbiddenDetail())
	if r.Of != "" {
		message = "the pods of " + r.Of + ": " + message
	}
	a.addFieldFinding(o, code, append(slices.Clone(r.Path), p.violatingFieldPath(checked, pod)...), message)
	return true
}

// violatingFieldPath returns the field that violates the level: that of the only container or volume that does so by
// itself, or the spec.
func (p *podSecurity) violatingFieldPath(level psa.LevelVersion, pod *corev1.Pod) []any {
	var found [][]any
	try := func(spec corev1.PodSpec, path ...any) {
		for _, r := range p.evaluator.EvaluatePod(level, &metav1.ObjectMeta{}, &spec) {
			if !r.Allowed {
				found = append(found, path)
				return
			}
		}
	}
	around := pod.Spec.DeepCopy()
	around.Containers, around.InitContainers, around.EphemeralContainers, around.Volumes = nil, nil, nil, nil
	try(*around, "spec")
	for i := range pod.Spec.InitContainers {
		spec := around.DeepCopy()
		spec.InitContainers = pod.Spec.InitContainers[i : i+1]
		try(*spec, "spec", "initContainers", i)
	}
	for i := range pod.Spec.Containers {
		spec := around.DeepCopy()
		spec.Containers = pod.Spec.Containers[i : i+1]
		try(*spec, "spec", "containers", i)
	}
	for i := range pod.Spec.Volumes {
		spec := around.DeepCopy()
		spec.Volumes = pod.Spec.Volumes[i : i+1]
		try(*spec, "spec", "volumes", i)
	}
	if len(found) == 1 {
		return found[0]
	}
	return []any{"spec"}
}

// checkSecurityLabels reports labels of a Namespace that the API server refuses.
func (a *admissionCheck) checkSecurityLabels(o gate.Object, ns *corev1.Namespace) {
	_, errs := psa.PolicyToEvaluate(ns.Labels, a.security.defaults)
	for _, err := range errs {
		key := strings.TrimSuffix(strings.TrimPrefix(err.Field, "metadata.labels["), "]")
		a.addFieldFinding(o, gate.CodeSecurityLabels, []any{"metadata", "labels", key}, err.ErrorBody())
	}
}

// namespaceOf reads a Namespace as a cluster has it.
func namespaceOf(object map[string]any) (*corev1.Namespace, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var ns corev1.Namespace
	if err := json.Unmarshal(text, &ns); err != nil {
		return nil, err
	}
	request.DefaultNamespace(&ns)
	return &ns, nil
}

// minorNumber is N of 1.N.
func minorNumber(minor string) uint {
	_, digits, _ := strings.Cut(minor, ".")
	n, _ := strconv.ParseUint(digits, 10, 16)
	return uint(n)
}
