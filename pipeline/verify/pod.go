// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/prerig/prerig/fn/podmap"
)

// normalPod returns what of a pod or a template is compared, in maps of its own: labels, annotations, finalizers and the
// spec, written as the API server writes them. unknown are the fields of the spec that the types do not have.
func normalPod(pod map[string]any) (out map[string]any, unknown []unknownField, err error) {
	spec := podmap.MapAt(pod, "spec")
	var typed corev1.PodSpec
	if err := podmap.CheckQuantities(spec, &typed); err != nil {
		return nil, nil, fmt.Errorf("reading the spec: %w", err)
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(spec, &typed, true)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, e := range strict.Errors() {
			unknown = append(unknown, newUnknownField(spec, e))
		}
		err = nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the spec: %w", err)
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the spec: %w", err)
	}
	metadata := map[string]any{}
	for _, key := range []string{"labels", "annotations"} {
		if m := podmap.MapAt(pod, "metadata", key); len(m) > 0 {
			metadata[key] = withoutNull(m)
		}
	}
	if f, _ := podmap.ValueAt(pod, "metadata", "finalizers").([]any); len(f) > 0 {
		metadata["finalizers"] = append([]any(nil), f...)
	}
	return map[string]any{"metadata": metadata, "spec": written}, unknown, nil
}

// withoutNull returns a copy of labels or annotations as the API server reads them: null is the empty text.
func withoutNull(m map[string]any) map[string]any {
	out := maps.Clone(m)
	for key, v := range out {
		if v == nil {
			out[key] = ""
		}
	}
	return out
}

// expectedPodFromTemplate returns the pod that the API server and the pod's controller would make from a template, as
// far as the template, the owner and the pod's own identity determine it. Additions by admission are accepted later, by
// rules.
func (v *verifier) expectedPodFromTemplate(template map[string]any, o origin, top, pod map[string]any) (map[string]any, error) {
	out, _, err := normalPod(template)
	if err != nil {
		return nil, err
	}
	server := v.server
	server.DefaultTemplate(out)
	switch o.direct.Kind {
	case "StatefulSet":
		expectStateful(out, top, pod)
	case "DaemonSet":
		expectDaemon(out, pod)
	case "CloneSet":
		expectClaims(out, top, pod)
	case "Job":
		expectJob(out, v.jobSpec(o, top), pod)
	}
	v.expectLabelKeys(out, pod)
	server.WithLimits(v.limitsFor(pod)).Default(out)
	return out, nil
}

// expectStateful adds what the controller of StatefulSets sets: the identity, and the volumes of its claims.
func expectStateful(out, top, pod map[string]any) {
	spec, name := podmap.MapAt(out, "spec"), podmap.TextAt(pod, "metadata", "name")
	spec["hostname"] = name
	if service := podmap.TextAt(top, "spec", "serviceName"); service != "" {
		spec["subdomain"] = service
	} else {
		delete(spec, "subdomain")
	}
	expectClaims(out, top, pod)
}

// expectClaims adds the volumes of an owner's claim templates, whose claims have the pod's name: those of StatefulSets and of OpenKruise's
// CloneSets (source: UpdateStorage in pkg/controller/cloneset/utils of openkruise/kruise).
func expectClaims(out, top, pod map[string]any) {
	spec, name := podmap.MapAt(out, "spec"), podmap.TextAt(pod, "metadata", "name")
	volumes, _ := spec["volumes"].([]any)
	for _, claim := range mapsAtPath(top, "spec", "volumeClaimTemplates") {
		claimName := podmap.TextAt(claim, "metadata", "name")
		volumes = podmap.Without(volumes, claimName)
		volumes = append(volumes, map[string]any{
			"name": claimName, "persistentVolumeClaim": map[string]any{"claimName": claimName + "-" + name},
		})
	}
	if len(volumes) > 0 {
		spec["volumes"] = volumes
	}
}

// expectDaemon binds the pod to its node, as the DaemonSet controller does: the term of the node's name replaces
// the required terms of the template's node affinity, and the controller's tolerations replace those of the same
// key, effect, operator and value, and never expire (source: AddOrUpdateTolerationInPodSpec in
// pkg/apis/core/v1/helper of k8s.io/kubernetes).
func expectDaemon(out, pod map[string]any) {
	for _, t := range mapsAtPath(out, "spec", "tolerations") {
		if daemonTolerates(t, podmap.ValueAt(out, "spec", "hostNetwork") == true) {
			delete(t, "tolerationSeconds")
		}
	}
	node := ""
	for _, term := range mapsAtPath(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms") {
		for _, field := range mapsAtPath(term, "matchFields") {
			if values, _ := field["values"].([]any); field["key"] == "metadata.name" && len(values) == 1 {
				node, _ = values[0].(string)
			}
		}
	}
	if bound := podmap.TextAt(pod, "spec", "nodeName"); bound != "" {
		node = bound
	}
	affinity := podmap.MapAt(out, "spec", "affinity")
	if affinity == nil {
		affinity = map[string]any{}
		podmap.MapAt(out, "spec")["affinity"] = affinity
	}
	nodes := podmap.MapAt(affinity, "nodeAffinity")
	if nodes == nil {
		nodes = map[string]any{}
		affinity["nodeAffinity"] = nodes
	}
	nodes["requiredDuringSchedulingIgnoredDuringExecution"] = map[string]any{"nodeSelectorTerms": []any{map[string]any{
		"matchFields": []any{map[string]any{"key": "metadata.name", "operator": "In", "values": []any{node}}},
	}}}
}

// jobSpec returns the spec of the Job that a pod is of.
func (v *verifier) jobSpec(o origin, top map[string]any) map[string]any {
	if o.owner != nil {
		return podmap.MapAt(o.owner, "spec")
	}
	if spec := podmap.MapAt(top, "spec", "jobTemplate", "spec"); spec != nil {
		return spec
	}
	return podmap.MapAt(top, "spec")
}

// jobIndex is the variable that pods of indexed Jobs get, and the annotation with its value.
const (
	jobIndex           = "JOB_COMPLETION_INDEX"
	jobIndexAnnotation = "batch.kubernetes.io/job-completion-index"
)

// expectJob adds what pods of indexed Jobs have: the index as a variable of each container, and in the host's name.
func expectJob(out, spec, pod map[string]any) {
	if podmap.TextAt(spec, "completionMode") != "Indexed" {
		return
	}
	index := podmap.TextAt(pod, "metadata", "annotations", jobIndexAnnotation)
	if job := podmap.TextAt(controllerRef(pod), "name"); job != "" {
		podmap.MapAt(out, "spec")["hostname"] = job + "-" + index
	}
	for _, key := range []string{"initContainers", "containers"} {
		for _, c := range mapsAtPath(out, "spec", key) {
			env, _ := c["env"].([]any)
			if len(podmap.Without(env, jobIndex)) != len(env) {
				continue
			}
			path := "metadata.annotations['" + jobIndexAnnotation + "']"
			if _, labelled := podmap.MapAt(pod, "metadata", "labels")[jobIndexAnnotation]; labelled {
				path = "metadata.labels['" + jobIndexAnnotation + "']"
			}
			c["env"] = append(env, map[string]any{"name": jobIndex, "valueFrom": map[string]any{"fieldRef": map[string]any{
				"apiVersion": "v1", "fieldPath": path,
			}}})
		}
	}
}
