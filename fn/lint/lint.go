// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package lint reports what is risky in a pod that sidecars were injected into: how it starts, ends and completes,
// what it requests, what it may do, and what its annotations specify. It reads values and returns results; it modifies
// no input, reads no file and no cluster, and does not depend on how the pod was made.
package lint

import (
	"github.com/prerig/prerig/fn/result"
)

// Facts describe the place where a pod will run, as far as the pod itself does not. The zero value of each field
// means unknown.
type Facts struct {
	// IstioVersion is the control plane's, such as "1.31" or "1.31.0-rc.0".
	IstioVersion string
	// IstioVersionFrom is the source of IstioVersion, as text; empty means the policy.
	IstioVersionFrom string
	// ControlPlanes lists the versions of the istiods among the objects, which are more reliable than a policy; see
	// [ControlPlane].
	ControlPlanes []string
	// KubernetesVersion is that of the oldest kubelet, such as "1.34".
	KubernetesVersion string
	// CNI reports whether the Istio CNI plugin sets up the capture of traffic.
	CNI Known
}

// Known is Yes, No, or unknown (the zero value).
type Known string

// The values of Known.
const (
	Unknown Known = ""
	Yes     Known = "yes"
	No      Known = "no"
)

// Input is one pod template of one workload. It is not modified.
type Input struct {
	// APIVersion, Kind, Name and Namespace are the workload's; the namespace is the one it will run in, if that is known.
	APIVersion, Kind, Name, Namespace string
	// ObjectLabels and ObjectAnnotations are those of the workload's own metadata; nil where the workload is a Pod.
	ObjectLabels, ObjectAnnotations map[string]string
	// NamespaceLabels are the labels of the namespace, and mean something only where NamespaceKnown is set.
	NamespaceLabels map[string]string
	NamespaceKnown  bool
	// Field is the path of the pod template in the workload, such as spec.template; empty for a Pod.
	Field string
	// Replicas is the number of pods the workload asks for, or nil if unset.
	Replicas *int64
	// Before and After are the pod (metadata and spec) before and after injection. Before may be nil if unknown, as
	// for a manifest that was injected by other tools.
	Before, After map[string]any
	// Injected names the containers that are injected. Those that the pod's own status annotation lists, and those that
	// After has and Before has not, are found without it.
	Injected []string
	// Unquoted are the annotations whose values write YAML into the pod, each with the fields that it changes, as the injection
	// found them; nil where the injection is not known.
	Unquoted map[string][]string
	// File is where the workload came from, and is passed on.
	File *result.File
	// Misplaced are labels and annotations of the workload's own metadata that sidecars of the policies read on pods.
	Misplaced []Misplaced
	// Facts describe what the pod itself does not.
	Facts Facts
}

// Misplaced is a label or an annotation of the workload's own metadata that a sidecar reads on pods only.
type Misplaced struct {
	Key   string
	Label bool
	// Sidecar is the name of the sidecar.
	Sidecar string
}

// TagContainer is the tag that names the container a result is about: its index may differ between the file that a user
// wrote and the pod that was checked.
const TagContainer = "prerig.dev/container"

// Check runs every rule that inspects a single pod, and returns the findings and those that an annotation or a
// policy suppresses. Results are in the order of the rules' codes and then of the pod. The tag [TagReason] of a
// suppressed one holds the reason.
func Check(in Input, sev Severities) (found, suppressed result.Results) {
	var p *pod
	var by ignoredRules
	for i := range rules {
		r := &rules[i]
		level := sev.severityOfRule(r)
		if r.check == nil || level == "" || r.concerns != nil && !r.concerns(&in) {
			continue
		}
		if p == nil {
			if p = newPod(&in); p == nil {
				return nil, nil
			}
			by = p.suppressedByAnnotations()
		}
		for _, f := range r.check(p) {
			one := p.newResult(r, level, f)
			if reason, ok := sev.suppressionOfFinding(r, by, *one.ResourceRef); ok {
				one.Tags[TagReason] = reason
				suppressed = append(suppressed, one)
				continue
			}
			found = append(found, one)
		}
	}
	return found, suppressed
}

// finding is what a rule has found: the message and the field, as a path below the pod template unless object is set.
type finding struct {
	message   string
	path      string
	container string
	object    bool
	current   any
	proposed  any
}

func (p *pod) newResult(r *Rule, level result.Severity, f finding) result.Result {
	in := p.in
	out := result.Result{
		Message:  f.message,
		Severity: level,
		ResourceRef: &result.ResourceRef{
			APIVersion: in.APIVersion, Kind: in.Kind, Name: in.Name, Namespace: in.Namespace,
		},
		File: in.File,
		Tags: map[string]string{result.TagCode: r.Code},
	}
	if f.path != "" {
		path := f.path
		if !f.object && in.Field != "" {
			path = in.Field + "." + f.path
		}
		out.Field = &result.Field{Path: path, CurrentValue: f.current, ProposedValue: f.proposed}
	}
	if f.container != "" {
		out.Tags[TagContainer] = f.container
	}
	if r.Mesh && f.container != "" && (p.injected[f.container] || f.container == proxyName) {
		out.Tags[TagScope] = ScopeMesh
	}
	return out
}
