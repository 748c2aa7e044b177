// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// AdmitRequest asks for the pods that an API server would store.
type AdmitRequest struct {
	// Options are those of a check. Catalog of it is not sent, but the one below.
	Options gate.Options `json:"options"`
	// Groups are the documents with their policies, and Catalog has the objects of the cluster.
	Groups  []AdmitGroup   `json:"groups,omitempty"`
	Catalog []GateDocument `json:"catalog,omitempty"`
	// Why asks for the reasons of each field.
	Why bool `json:"why,omitempty"`
	// Created asks for the pods that controllers create.
	Created bool `json:"created,omitempty"`
	// Share permits pods that have a shape.
	Share bool `json:"share,omitempty"`
}

// AdmitGroup is documents that the same policies are for.
type AdmitGroup struct {
	// Policies are the InjectionPolicies, as YAML, that stand for webhooks. Without any, no webhook is predicted.
	Policies  [][]byte       `json:"policies,omitempty"`
	Documents []GateDocument `json:"documents,omitempty"`
	// Namespace is that of objects that do not set one, and TargetNamespace the one that all objects will get.
	Namespace       string `json:"namespace,omitempty"`
	TargetNamespace string `json:"targetNamespace,omitempty"`
}

// AdmittedPod is the pod of a workload as the API server would store it.
type AdmittedPod struct {
	// Ref is the workload, Place where it is, and Field the path of its pod template; empty for a Pod.
	Ref   result.ResourceRef `json:"workload"`
	Place LinePlace          `json:"place,omitzero"`
	Field string             `json:"field,omitempty"`
	// Injection is what the injection decided, and why; empty without one.
	Injection string `json:"injection,omitempty"`
	// Pod is the object.
	Pod map[string]any `json:"pod"`
	// Rejected is the reason for which the API server rejects the pod; empty if it does not.
	Rejected string `json:"rejected,omitempty"`
	// Warnings are what the API server warns of, or notes in its audit log.
	Warnings []string `json:"warnings,omitempty"`
	// Missing lists the inputs that a step lacks.
	Missing []string `json:"missing,omitempty"`
	// Webhooks are those that the API server calls for the pod, and whose changes are not predicted: CONFIGURATION/WEBHOOK.
	Webhooks []string `json:"webhooks,omitempty"`
	// Reasons are the fields that differ from the file, in their order.
	Reasons []Reason `json:"reasons,omitempty"`
	// Prevented are the fields that are as in the file only because of an object.
	Prevented []Prevented `json:"prevented,omitempty"`
	// Created is the pod that a controller creates from the file.
	Created map[string]any `json:"created,omitempty"`
	// Live is the answer of a cluster; nil if none was asked.
	Live *LivePod `json:"live,omitempty"`
	// Shape is the number of the shape, from 1, that the pod is made of with these Values; 0 for none. Its other fields are empty as long as
	// there are Values.
	Shape  int      `json:"shape,omitempty"`
	Values []string `json:"values,omitempty"`
}

// Admitted is the answer to an AdmitRequest: the pods in the order of the workloads.
type Admitted struct {
	Pods   []AdmittedPod   `json:"pods,omitempty"`
	Shapes []AdmittedShape `json:"shapes,omitempty"`
}

// AdmittedShape is what the pods of several workloads have in common: a pod with made-up values. Where one of them is in the text of this
// pod, the text of another one has its own value of the same number. Values that are empty are not in the text.
type AdmittedShape struct {
	Pod    AdmittedPod `json:"pod"`
	Values []string    `json:"values"`
}

// LivePod is what a cluster makes of a pod.
type LivePod struct {
	// Pod is the one that the cluster would store.
	Pod map[string]any `json:"pod,omitempty"`
	// Rejected is the reason for which it would not store the pod, and Unanswered the one for which it does not answer.
	Rejected   string `json:"rejected,omitempty"`
	Unanswered string `json:"unanswered,omitempty"`
	// Fields are those in which the cluster's pod differs from the file or from the predicted pod.
	Fields []LiveField `json:"fields,omitempty"`
}

// LiveField is a field that a cluster changes, or that it was predicted to change.
type LiveField struct {
	// Field is the path in the pod.
	Field string `json:"field"`
	// File is the value in the file, Predicted the one of the prediction, and Live the one of the cluster; absent for none.
	File      any `json:"file,omitempty"`
	Predicted any `json:"predicted,omitempty"`
	Live      any `json:"live,omitempty"`
	// AsPredicted reports whether the cluster has the predicted value.
	AsPredicted bool `json:"asPredicted"`
	// Reason is that of the prediction; nil if the field was not predicted to change.
	Reason *Reason `json:"reason,omitempty"`
	// Suspects are what may have changed the field, if it was not predicted.
	Suspects []string `json:"suspects,omitempty"`
}

// Reason is a field that differs from the file.
type Reason struct {
	// Field is the path in the pod, with the names of list elements.
	Field string `json:"field"`
	// Before and After are the values; absent for none.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
	// Step is what sets the field, and Object the object of the cluster that decides its value, at Place.
	Step   string    `json:"step"`
	Object string    `json:"object,omitempty"`
	Place  LinePlace `json:"place,omitzero"`
	// Detail is the annotation or value that decides it.
	Detail string `json:"detail,omitempty"`
	// Round is 2 if the second round of admission sets it.
	Round int `json:"round,omitempty"`
	// Because lists further objects without which the value would be another one: the step reacts to what they change.
	Because []string `json:"because,omitempty"`
	// Otherwise is what sets the same value without Object; empty if nothing does.
	Otherwise string `json:"otherwise,omitempty"`
}

// Prevented is a field that is as in the file because of an object.
type Prevented struct {
	// Field is the path in the pod, and Value the value, absent for none.
	Field string `json:"field"`
	Value any    `json:"value,omitempty"`
	// Object is what prevents a change, and Without the value that the field would have without it, which By would set.
	Object  string `json:"object"`
	Without any    `json:"without,omitempty"`
	By      string `json:"by"`
}

// Compare orders by field and object.
func (p Prevented) Compare(other Prevented) int {
	return cmp.Or(cmp.Compare(p.Field, other.Field), cmp.Compare(p.Object, other.Object))
}

// LinePlace is a line of a file. The line is 0 if it is not known.
type LinePlace struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// String returns PATH:LINE.
func (p LinePlace) String() string { return result.File{Path: p.Path, Line: p.Line}.String() }

// Admit returns the pods that an API server would store for the workloads of a request, in their order.
func (p *Pool) Admit(ctx context.Context, request AdmitRequest) (*Admitted, error) {
	var out *Admitted
	err := p.runTask(ctx, taskOf(frameAdmit, request), func(content []byte) error {
		if json.Unmarshal(content, &out) != nil || !out.isWhole() {
			return protocolError("pods that cannot be read")
		}
		return nil
	})
	return out, err
}

// isWhole reports whether each pod has its shape, with as many values.
func (a *Admitted) isWhole() bool {
	return a != nil && !slices.ContainsFunc(a.Pods, func(p AdmittedPod) bool {
		return p.Shape < 0 || p.Shape > len(a.Shapes) || p.Shape > 0 && len(p.Values) != len(a.Shapes[p.Shape-1].Values)
	})
}

// MutateRequest asks what MutatingAdmissionPolicies change of pods.
type MutateRequest struct {
	Pods []fn.AdmissionRequest `json:"pods"`
}

// Mutate returns the answers to requests, in their order.
func (p *Pool) Mutate(ctx context.Context, requests []fn.AdmissionRequest) ([]fn.AdmissionAnswer, error) {
	var answers []fn.AdmissionAnswer
	err := p.runTask(ctx, taskOf(frameMutate, MutateRequest{requests}), func(content []byte) error {
		if json.Unmarshal(content, &answers) != nil || len(answers) != len(requests) {
			return protocolError("answers that cannot be read")
		}
		return nil
	})
	return answers, err
}
