// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/sidecar"
)

// AdmissionRequest asks what MutatingAdmissionPolicies change of a pod. It can be written as JSON.
type AdmissionRequest struct {
	// Policies are the policies and what they read, as YAML documents.
	Policies string `json:"policies"`
	// KubernetesVersion is that of the API server, such as 1.34; empty means the newest one.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Object is the workload with the pod, as JSON, and Field the path of the pod's template in it; empty for a Pod.
	Object json.RawMessage `json:"object"`
	Field  string          `json:"field,omitempty"`
	// Workloads are the kinds with pods that the policy describes.
	Workloads []v1alpha1.WorkloadKind `json:"workloads,omitempty"`
	// Namespace is the one that the pod will run in.
	Namespace inject.Namespace `json:"namespace"`
}

// AdmissionAnswer is what the policies change.
type AdmissionAnswer struct {
	// Before and After are the keys metadata and spec of the pod with all defaults, as JSON, before and after the policies.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// By are the names of the policies that changed the pod.
	By []string `json:"by,omitempty"`
	// Failed is why the pod cannot be written.
	Failed string `json:"failed,omitempty"`
}

// WithAdmission sets what evaluates MutatingAdmissionPolicies that a policy writes. It is called by several goroutines at once.
func WithAdmission(evaluate func(AdmissionRequest) AdmissionAnswer) Option {
	return func(in *Injector) error {
		in.evaluate = evaluate
		return nil
	}
}

// checkAdmission reports policies that write MutatingAdmissionPolicies where nothing evaluates them.
func checkAdmission(in *Injector, plans []*compiledPolicy) (out result.Results) {
	if in.evaluate != nil || in.mode == v1alpha1.ModeRemove || in.asIs {
		return nil
	}
	for _, pl := range plans {
		if pl.policy.Spec.Admission.WritesPolicies() {
			out = append(out, policyResult(pl.policy, result.Error, "spec.admission.steps.MutatingAdmissionPolicy",
				"this program cannot evaluate MutatingAdmissionPolicies; use prerig inject or a RenderPipeline"))
		}
	}
	return out
}

// writesPolicies reports whether a policy writes MutatingAdmissionPolicies.
func writesPolicies(plans []*compiledPolicy) bool {
	return slices.ContainsFunc(plans, func(pl *compiledPolicy) bool { return pl.policy.Spec.Admission.WritesPolicies() })
}

// writePolicies writes the changes of MutatingAdmissionPolicies into a pod, before any sidecar, as in the API server.
func (a *attempt) writePolicies(pod map[string]any) (map[string]any, error) {
	for _, pl := range a.of.plans {
		if !pl.policy.Spec.Admission.WritesPolicies() {
			continue
		}
		if len(a.records) > 0 {
			return nil, fmt.Errorf("two policies write MutatingAdmissionPolicies, the second is %s; leave one of them out", pl.policy.Metadata.Name)
		}
		next, by, err := a.evaluatePolicies(pl, pod)
		if err != nil {
			return nil, fmt.Errorf("writing MutatingAdmissionPolicies: %w", err)
		}
		if len(by) == 0 || podmap.Equal(next, pod) {
			continue
		}
		record, err := sidecar.NewPoliciesRecord(by, pod, next)
		if err != nil {
			return nil, err
		}
		a.records = append(a.records, record)
		pod = next
	}
	return pod, nil
}

// evaluatePolicies returns the pod as the policies change it, and the names of those that do.
func (a *attempt) evaluatePolicies(pl *compiledPolicy, pod map[string]any) (changed map[string]any, by []string, err error) {
	w := a.of
	home := w.homesFor(pl)[0]
	object, err := json.Marshal(w.template.Write(w.obj, pod))
	if err != nil {
		return nil, nil, err
	}
	request := AdmissionRequest{Policies: pl.policy.Spec.Admission.Policies, Object: object, Field: w.template.Field, Namespace: home.Namespace,
		Workloads: pl.policy.Spec.Workloads}
	if istio := pl.policy.Spec.Istio; istio != nil {
		request.KubernetesVersion = istio.KubernetesVersion
	}
	answer := w.in.evaluate(request)
	if answer.Failed != "" {
		return nil, nil, errors.New(answer.Failed)
	}
	if len(answer.By) == 0 {
		return pod, nil, nil
	}
	server, err := admission.NewServer(request.KubernetesVersion)
	if err != nil {
		return nil, nil, err
	}
	before, err := decodePod(answer.Before)
	if err != nil {
		return nil, nil, err
	}
	after, err := decodePod(answer.After)
	if err != nil {
		return nil, nil, err
	}
	changed, err = inject.WriteChange(server, pod, before, after)
	return changed, answer.By, err
}

func decodePod(text []byte) (map[string]any, error) {
	value, err := manifest.Decode(text)
	if err != nil {
		return nil, err
	}
	pod, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("reading the pod: it is not a map")
	}
	return pod, nil
}

// reportPolicies reports the policies whose changes are written, and that the pod is changed by them.
func (a *attempt) reportPolicies() {
	i := slices.IndexFunc(a.records, func(r sidecar.Record) bool { return r.Policies != nil })
	if i < 0 {
		return
	}
	text := "MutatingAdmissionPolicy " + strings.Join(a.records[i].Policies, ", ")
	a.add(result.Info, "", "written as the cluster would change the pod: "+text)
	if a.outcome.Action != Injected {
		a.outcome.Action, a.outcome.Reason = Injected, text+" (spec.admission)"
	}
}
