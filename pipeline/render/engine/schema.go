// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	k8sjson "sigs.k8s.io/json"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// Codes of the findings about pods that the API server would not take, or not take as they are written.
const (
	codePodType  = "pod-type"
	codePodField = "pod-field"
)

// checkSchema reads the pod templates of the result as the API server does. A value of a wrong type is an error, as the object
// would be refused; a field that is not known is a warning, as the API server drops it or is newer than this program. Kinds that the gate holds against their whole schema are left
// out if it is used.
func checkSchema(items []fn.Item, policies []*policyv1alpha1.InjectionPolicy, gated bool) (results result.Results, err error) {
	var custom []policyv1alpha1.WorkloadKind
	for _, policy := range policies {
		custom = append(custom, policy.Spec.Workloads...)
	}
	registry, err := workload.NewRegistry(custom)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if meta, ok := item.Doc.Peek(); ok {
			if _, known := registry.Lookup(meta.APIVersion, meta.Kind); !known || gated && checkedByGate(meta.APIVersion) {
				continue
			}
		}
		if item.Doc.Empty() {
			continue
		}
		object, err := item.Doc.Object()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", item.Doc, err)
		}
		templates, err := registry.Templates(object)
		if err != nil {
			continue // the injection has reported it, or did not check
		}
		for _, template := range templates {
			results = append(results, checkPod(object, template)...)
		}
	}
	return results, nil
}

// checkedByGate reports whether objects of an API group are Kubernetes' own workloads, which the gate holds against all of their schema.
func checkedByGate(apiVersion string) bool {
	group, _, grouped := strings.Cut(apiVersion, "/")
	return !grouped || group == "apps" || group == "batch"
}

func checkPod(object map[string]any, template workload.Template) result.Results {
	meta := metaOf(object)
	ref := &result.ResourceRef{APIVersion: meta.APIVersion, Kind: meta.Kind, Namespace: meta.Namespace, Name: meta.Name}
	find := func(severity result.Severity, code, message string) result.Result {
		field := template.Field
		if field == "" {
			field = "spec"
		}
		return result.Result{Severity: severity, Message: message, ResourceRef: ref, Field: &result.Field{Path: field}, Tags: map[string]string{result.TagCode: code}}
	}
	text, err := json.Marshal(map[string]any{"metadata": template.Pod["metadata"], "spec": template.Pod["spec"]})
	if err != nil {
		return result.Results{find(result.Error, codePodType, err.Error())}
	}
	var pod corev1.PodTemplateSpec
	strict, err := k8sjson.UnmarshalStrict(text, &pod)
	if err != nil {
		return result.Results{find(result.Error, codePodType, "the API server would refuse the pod: "+strings.TrimPrefix(err.Error(), "json: "))}
	}
	var results result.Results
	for _, problem := range strict {
		results = append(results, find(result.Warning, codePodField, "the pod has an "+problem.Error()))
	}
	return results
}
