// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/podvalidation"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/sidecar"
)

// rejectedError means that the API server is certain to reject the injected pod.
type rejectedError struct {
	pod      map[string]any
	problems []podvalidation.Problem
}

// Error returns the first problem and the number of others.
func (e *rejectedError) Error() string {
	first := e.problems[0]
	text := first.Field + ": " + first.Message
	if n := len(e.problems) - 1; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text
}

// addProblemResults adds an error for each problem of the pod template to the unit's results.
func (e *rejectedError) addProblemResults(u *documentUnit, field string) {
	for _, p := range e.problems {
		u.addResult(result.Error, joinField(field, p.Field), p.Message)
		if last := &u.results[len(u.results)-1]; last.Tags == nil {
			last.Tags = map[string]string{result.TagCode: p.Code}
		} else {
			last.Tags[result.TagCode] = p.Code
		}
	}
}

// checkAccepted returns a *rejectedError where the API server is certain to reject the injected pod for something that the original does
// not have. Mounts in the containers of sidecars are left to checkMounts.
func (a *attempt) checkAccepted(pod map[string]any) error {
	if a.outcome.Action != Injected && len(a.records) == 0 {
		return nil
	}
	options := podvalidation.Options{Minor: kubernetesMinor(a.of.plans)}
	for _, p := range podvalidation.Hidden(a.original, pod, options) {
		a.add(result.Warning, p.Field, p.Message)
	}
	problems := podvalidation.Added(a.original, pod, options)
	problems = slices.DeleteFunc(problems, func(p podvalidation.Problem) bool {
		return p.Volume != "" && a.mayMount(p)
	})
	if isBuiltIn(a.unit.meta) && !a.of.isBarePod() {
		problems = append(problems, workloadProblems(a.of.obj, a.original, pod)...)
	}
	if len(problems) == 0 {
		return nil
	}
	return &rejectedError{pod, problems}
}

// isBuiltIn reports whether a workload is of one of Kubernetes' own kinds, whose pods only a webhook changes.
func isBuiltIn(m manifest.Meta) bool {
	return slices.Contains([]string{"v1", "apps/v1", "batch/v1"}, m.APIVersion)
}

// mayMount reports whether a mount without a volume is not certain to be rejected: the volume is of the workload's
// claims, or the application mounts it, too. For a kind that is not Kubernetes' own, a controller may add it, and a
// warning reports that.
func (a *attempt) mayMount(p podvalidation.Problem) bool {
	ofSidecar := slices.ContainsFunc(a.records, func(r sidecar.Record) bool {
		return slices.Contains(r.InitContainers, p.Container) || slices.Contains(r.Containers, p.Container)
	})
	switch {
	case ofSidecar || slices.Contains(knownVolumes(a.of.obj, a.original, nil), p.Volume):
		return true
	case isBuiltIn(a.unit.meta):
		return false
	}
	a.add(result.Warning, p.Field, p.Message+", unless a webhook or controller adds it")
	return true
}

// kubernetesMinor is the minor version of Kubernetes that a policy names, or 0.
func kubernetesMinor(plans []*compiledPolicy) int {
	for _, pl := range plans {
		var minor int
		if istio := pl.policy.Spec.Istio; istio != nil {
			if _, err := fmt.Sscanf(strings.TrimPrefix(istio.KubernetesVersion, "v"), "1.%d", &minor); err == nil {
				return minor
			}
		}
	}
	return 0
}

// workloadProblems returns what the API server rejects in the workload for what the injection has changed in the pod: labels that its selector
// selects, and a restart policy that its kind does not have.
func workloadProblems(obj, original, pod map[string]any) (out []podvalidation.Problem) {
	spec, _ := obj["spec"].(map[string]any)
	before, after := podmap.PartsOf(original), podmap.PartsOf(pod)
	if !podmap.Same(before.Meta["labels"], after.Meta["labels"]) {
		was, now := labels.Set(podmap.StringMap(before.Meta["labels"])), labels.Set(podmap.StringMap(after.Meta["labels"]))
		if s := selectorOf(spec); s != nil && s.Matches(was) && !s.Matches(now) {
			out = append(out, podvalidation.Problem{Code: podvalidation.CodeRejected, Field: "metadata.labels",
				Message: fmt.Sprintf("the injection changes a label that the workload's selector %s selects: the API server refuses the workload", s)})
		}
	}
	policy, _ := after.Spec["restartPolicy"].(string)
	if podmap.Same(before.Spec["restartPolicy"], after.Spec["restartPolicy"]) || policy == "" {
		return out
	}
	m := metaOf(obj)
	if (m.APIVersion == "batch/v1") == (policy == "Always") {
		out = append(out, podvalidation.Problem{Code: podvalidation.CodeRejected, Field: "spec.restartPolicy",
			Message: fmt.Sprintf("the injection sets restartPolicy to %s, which a %s cannot have: "+
				"the API server refuses the workload", policy, m.Kind)})
	}
	return out
}

// selectorOf returns the selector of a workload's spec, or nil where it has none that can be read.
func selectorOf(spec map[string]any) labels.Selector {
	m, _ := spec["selector"].(map[string]any)
	if len(m) == 0 {
		return nil
	}
	if m["matchLabels"] == nil && m["matchExpressions"] == nil { // a ReplicationController's
		return labels.SelectorFromSet(podmap.StringMap(m))
	}
	var selector metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(m, &selector) != nil {
		return nil
	}
	out, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil
	}
	return out
}
