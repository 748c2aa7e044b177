// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/render/gate/validation"
)

// validateAdmitted has Kubernetes' own validation answer about the pods, and about the workloads, without which there are none. Pods
// that it rejects are marked, and the findings about workloads are returned. A pod of several workloads is asked about once.
func (a *admitRun) validateAdmitted(ctx context.Context, admitted *render.Admitted, options gate.Options) (result.Results, error) {
	validator := gate.InstalledValidator()
	if validator == nil {
		a.printResults(result.Results{{Severity: result.Info, Message: gate.NotInstalled}})
		return nil, nil
	}
	pods := acceptedPods(admitted)
	workloads, err := a.workloadsToValidate()
	if err != nil {
		return nil, err
	}
	var requests []validation.Request
	for _, p := range pods {
		requests = append(requests, validation.Request{Operation: validation.Create, Object: p.Pod})
	}
	for _, o := range workloads.objects {
		requests = append(requests, validation.Request{Operation: validation.Create, Object: o.Value})
	}
	if len(requests) == 0 {
		return nil, nil
	}
	answers, err := validator.Ask(ctx, requests)
	if err != nil {
		return nil, err
	}
	for i, p := range pods {
		p.Rejected = invalidPod(answers[i])
	}
	return findingsOfWorkloads(ctx, workloads, answers[len(pods):], options)
}

// acceptedPods returns the pods and shapes that the admission accepts.
func acceptedPods(admitted *render.Admitted) []*render.AdmittedPod {
	var out []*render.AdmittedPod
	add := func(p *render.AdmittedPod) {
		if p.Rejected == "" && p.Pod != nil {
			out = append(out, p)
		}
	}
	for i := range admitted.Pods {
		add(&admitted.Pods[i])
	}
	for i := range admitted.Shapes {
		add(&admitted.Shapes[i].Pod)
	}
	return out
}

// invalidPod returns why the API server rejects a pod, or "".
func invalidPod(answer validation.Answer) string {
	var reasons []string
	for _, p := range answer.Problems {
		// Owners have no UID in files, and a controller generates the name.
		if p.Field != "metadata.name" && !strings.HasPrefix(p.Field, "metadata.ownerReferences") {
			reasons = append(reasons, strings.TrimPrefix(p.Field+": "+p.Message, ": "))
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	return "Kubernetes' own validation: " + strings.Join(reasons, "; ")
}

// workloadsToValidate returns the objects that make pods. A bare Pod is validated as it is stored.
func (a *admitRun) workloadsToValidate() (input gateInput, err error) {
	for _, item := range a.batch.Items() {
		meta, ok := item.Doc.Peek()
		if !ok || !isBuiltInWorkload(meta.APIVersion, meta.Kind) {
			continue
		}
		if err := input.addGateDocument(item.Doc, item.Doc, item.Path); err != nil {
			return input, err
		}
	}
	return input, nil
}

// findingsOfWorkloads returns what the API server rejects workloads for, as prerig check reports it.
func findingsOfWorkloads(ctx context.Context, input gateInput, answers []validation.Answer, options gate.Options) (result.Results, error) {
	request := render.GateRequest{Options: gate.Options{KubernetesVersion: options.KubernetesVersion}}
	for i, answer := range answers {
		if len(answer.Problems) == 0 {
			continue
		}
		one := gate.Validated{Error: answer.Error}
		for _, p := range answer.Problems {
			one.Create = append(one.Create, gate.ValidatedProblem{Problem: p})
		}
		request.Documents = append(request.Documents, input.documents[i])
		request.Options.Validated = append(request.Options.Validated, one)
	}
	if len(request.Documents) == 0 {
		return nil, nil
	}
	found, err := checkByRenderer(ctx, request)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(r result.Result) bool { return r.Severity != result.Error }), nil
}

// isBuiltInWorkload reports whether an object of Kubernetes makes pods.
func isBuiltInWorkload(apiVersion, kind string) bool {
	return apiVersion == "apps/v1" && kind != "ControllerRevision" || apiVersion == "batch/v1" || apiVersion == "v1" && kind == "ReplicationController"
}

// exitErrorForRejected returns the error for the exit code.
func exitErrorForRejected(admitted *render.Admitted, workloads result.Results) error {
	rejected := 0
	for _, p := range admitted.Pods {
		if p.Rejected != "" || p.Shape > 0 && admitted.Shapes[p.Shape-1].Pod.Rejected != "" {
			rejected++
		}
	}
	var refs []string
	for _, r := range workloads {
		if r.ResourceRef != nil && !slices.Contains(refs, r.ResourceRef.String()) {
			refs = append(refs, r.ResourceRef.String())
		}
	}
	var parts []string
	if rejected > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s", rejected, countWithNoun(len(admitted.Pods), "pod")))
	}
	if len(refs) > 0 {
		parts = append(parts, countWithNoun(len(refs), "workload"))
	}
	if len(parts) == 0 {
		return nil
	}
	return findingsError{strings.Join(parts, " and ") + " would be rejected"}
}
