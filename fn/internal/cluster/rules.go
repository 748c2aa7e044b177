// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/fn/podmap"
)

// rule is a reason for which two pods of the same workload may differ and still be equal.
type rule struct {
	// Name describes what may differ and why.
	Name string
	// apply removes what may differ from a pod, or replaces it with a value that is the same in both.
	apply func(pod map[string]any)
}

// rules are all of them. What no rule names must be equal.
var rules = []rule{
	{"the identity of the object: generated name, uid, times, version, who wrote which field", withoutIdentity},
	{"the identity of its owner: name with the template's digest or the minute, uid", withoutOwner},
	{"controllers' labels: the template's digest, the owner's uid and name", withoutControllerLabels},
	{"the status, which a kubelet would write", func(pod map[string]any) { delete(pod, "status") }},
	{"the random name of the service account's volume", withoutRandomName},
	{"the mount of that volume in the annotation that keeps the user's settings of a container", withoutRecordedMount},
	{"the annotation in which LimitRanger lists the fields it set: it runs again after a webhook, and then lists only the rest", func(pod map[string]any) {
		removeKeysAtPath(pod, "metadata.annotations", "kubernetes.io/limit-ranger")
	}},
	{"a field in that annotation whose feature the API server has switched off", withoutRecordedStopSignal},
	{"a null of the user's that Prerig notes in that annotation of a bare Pod", withoutRecordedNulls},
	{podmap.KeepLastRule, func(pod map[string]any) {
		if kept, ok := podmap.WithLast(nil, pod); ok {
			maps.Copy(pod, kept)
		}
	}},
	{"the index that the Job controller adds to each container of an Indexed Job: a webhook adds its own afterwards", withoutIndexOfInjected},
	{"the place of a StatefulSet's claims, which its controller puts before the template's volumes: a webhook adds its own before them", withClaimsFirst},
	{"Prerig's record of the original in a bare Pod with a status annotation that no injection wrote", withoutRecord},
}

// withoutRecord removes the record from a Pod without an owner. With a policy that does not request records in
// pods, such as these, no other pod has one.
func withoutRecord(pod map[string]any) {
	if owners, _, _ := unstructured.NestedSlice(pod, "metadata", "ownerReferences"); len(owners) == 0 {
		removeKeysAtPath(pod, "metadata.annotations", "prerig.dev/original")
	}
}

// completionIndex is the variable that the Job controller sets, and completionIndexField what it refers to (source:
// addCompletionIndexEnvVariable in pkg/controller/job/indexed_job_utils.go of Kubernetes 1.36).
const (
	completionIndex      = "JOB_COMPLETION_INDEX"
	completionIndexField = "metadata.labels['batch.kubernetes.io/job-completion-index']"
)

// withoutIndexOfInjected removes the index from Istio's containers, also where the annotation keeps them. Other
// containers keep theirs.
func withoutIndexOfInjected(pod map[string]any) {
	spec, _ := pod["spec"].(map[string]any)
	for _, key := range []string{"initContainers", "containers"} {
		for _, c := range podmap.Maps(spec[key]) {
			if name, _ := c["name"].(string); name == "istio-proxy" || name == "istio-init" || name == "istio-validation" {
				removeCompletionIndex(c)
			}
		}
	}
	changeRecordedContainers(pod, removeCompletionIndex)
}

func removeCompletionIndex(container map[string]any) {
	env, ok := container["env"].([]any)
	if !ok {
		return
	}
	env = slices.DeleteFunc(env, func(e any) bool {
		variable, _ := e.(map[string]any)
		path, _, _ := unstructured.NestedString(variable, "valueFrom", "fieldRef", "fieldPath")
		return variable["name"] == completionIndex && path == completionIndexField
	})
	container["env"] = env
	if len(env) == 0 {
		delete(container, "env")
	}
}

// withClaimsFirst puts the volumes of the claims that a StatefulSet's controller makes for a pod before all others.
func withClaimsFirst(pod map[string]any) {
	name, _, _ := unstructured.NestedString(pod, "metadata", "labels", "statefulset.kubernetes.io/pod-name")
	spec, _ := pod["spec"].(map[string]any)
	volumes, ok := spec["volumes"].([]any)
	if !ok || name == "" {
		return
	}
	isOther := func(volume any) int {
		v, _ := volume.(map[string]any)
		claim, _, _ := unstructured.NestedString(v, "persistentVolumeClaim", "claimName")
		if volumeName, _ := v["name"].(string); claim == volumeName+"-"+name {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(volumes, func(a, b any) int { return isOther(a) - isOther(b) })
}

func withoutIdentity(pod map[string]any) {
	removeKeysAtPath(pod, "metadata", "name", "generateName", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
}

func withoutOwner(pod map[string]any) {
	owners, _, _ := unstructured.NestedSlice(pod, "metadata", "ownerReferences")
	for _, o := range owners {
		if m, ok := o.(map[string]any); ok {
			delete(m, "name")
			delete(m, "uid")
		}
	}
	if owners != nil {
		_ = unstructured.SetNestedSlice(pod, owners, "metadata", "ownerReferences") // its place is an object
	}
}

func withoutControllerLabels(pod map[string]any) {
	removeKeysAtPath(pod, "metadata.labels", "pod-template-hash", "controller-revision-hash", "pod-template-generation",
		"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")
}

// randomName is the volume's name without what is random.
const randomName = "kube-api-access-x"

func withoutRandomName(pod map[string]any) {
	text, err := json.Marshal(pod)
	if err != nil {
		return
	}
	var renamed map[string]any
	if json.Unmarshal(randomVolume.ReplaceAll(text, []byte(randomName)), &renamed) == nil {
		clear(pod)
		maps.Copy(pod, renamed)
	}
}

// overrides is the annotation in which Istio keeps the containers of the user's that a template merges with. The webhook
// sees them with the mount that admission has added; its name cannot be known before.
const overrides = "proxy.istio.io/overrides"

func withoutRecordedMount(pod map[string]any) {
	changeRecordedContainers(pod, func(c map[string]any) {
		mounts, _ := c["volumeMounts"].([]any)
		mounts = slices.DeleteFunc(mounts, func(m any) bool {
			mount, _ := m.(map[string]any)
			return mount["name"] == randomName
		})
		c["volumeMounts"] = mounts
		if len(mounts) == 0 {
			delete(c, "volumeMounts")
		}
	})
}

// withoutRecordedStopSignal removes lifecycle.stopSignal. The feature gate ContainerStopSignals is off by default,
// so the API server drops the field when it stores a controller's template; from a Pod it drops it after the
// webhook.
func withoutRecordedStopSignal(pod map[string]any) {
	changeRecordedContainers(pod, func(c map[string]any) {
		lifecycle, ok := c["lifecycle"].(map[string]any)
		delete(lifecycle, "stopSignal")
		if ok && len(lifecycle) == 0 {
			delete(c, "lifecycle")
		}
	})
}

// withoutRecordedNulls removes fields that are null, which have no meaning to readers of the annotation.
func withoutRecordedNulls(pod map[string]any) {
	changeRecordedContainers(pod, func(c map[string]any) { maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil }) })
}

// changeRecordedContainers changes the containers that the annotation keeps.
func changeRecordedContainers(pod map[string]any, change func(container map[string]any)) {
	text, ok, _ := unstructured.NestedString(pod, "metadata", "annotations", overrides)
	if !ok {
		return
	}
	var kept map[string][]map[string]any
	if json.Unmarshal([]byte(text), &kept) != nil {
		return
	}
	for _, containers := range kept {
		for _, c := range containers {
			if c != nil {
				change(c)
			}
		}
	}
	if out, err := json.Marshal(kept); err == nil {
		_ = unstructured.SetNestedField(pod, string(out), "metadata", "annotations", overrides) // its place is an object
	}
}

// randomVolume is the name of the volume that the admission of service accounts adds.
var randomVolume = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}\b`)

// removeKeysAtPath removes keys of the object at a path of names with dots between them.
func removeKeysAtPath(in map[string]any, path string, keys ...string) {
	for _, name := range strings.Split(path, ".") {
		in, _ = in[name].(map[string]any)
	}
	for _, key := range keys {
		delete(in, key)
	}
}
