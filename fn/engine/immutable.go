// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// jobFields are the fields of a Job's spec that cannot change, beside the template and completions.
//
// Source: ValidateJobSpecUpdate of pkg/apis/batch/validation/validation.go, Kubernetes 1.36. A Job that is suspended and has never
// started may change parts of its template; that is not known here, so that it counts as any other.
var jobFields = []string{"selector", "completionMode", "podFailurePolicy", "successPolicy", "backoffLimitPerIndex", "managedBy"}

// immutableJob returns what of a Job cannot change, with a pod as its template.
func immutableJob(job, pod map[string]any) map[string]any {
	spec, _ := job["spec"].(map[string]any)
	out := map[string]any{"template": normalTemplate(pod)}
	for _, field := range jobFields {
		if v := withoutEmpty(spec[field]); v != nil {
			out[field] = v
		}
	}
	if out["completionMode"] == "NonIndexed" {
		delete(out, "completionMode") // it is the default
	}
	completions := spec["completions"]
	if completions == nil && spec["parallelism"] == nil {
		completions = int64(1) // the default
	}
	// Indexed Jobs are scaled by both together (validateCompletions).
	if out["completionMode"] != "Indexed" || completions == nil || !podmap.Equal(completions, spec["parallelism"]) {
		out["completions"] = completions
	}
	return out
}

// immutablePod returns what of a Pod cannot change.
//
// Source: ValidatePodUpdate of pkg/apis/core/validation/validation.go, Kubernetes 1.36: a Pod's spec may change the images of its
// containers, activeDeadlineSeconds, and add tolerations. Its metadata may change.
func immutablePod(pod map[string]any) map[string]any {
	spec, _ := pod["spec"].(map[string]any)
	spec = maps.Clone(spec)
	delete(spec, "activeDeadlineSeconds")
	delete(spec, "tolerations")
	for _, key := range []string{"initContainers", "containers"} {
		list, _ := spec[key].([]any)
		if len(list) == 0 {
			continue
		}
		out := slices.Clone(list)
		for i, item := range out {
			if c, ok := item.(map[string]any); ok {
				c = maps.Clone(c)
				// Without a pull policy of its own, a container keeps the one that its first image gave it.
				delete(c, "image")
				out[i] = c
			}
		}
		spec[key] = out
	}
	return map[string]any{"spec": withoutEmpty(spec)}
}

// normalTemplate returns a pod template without what has no meaning to the API server.
func normalTemplate(pod map[string]any) any { return withoutEmpty(podmap.PodPart(pod)) }

// emptyMaps are the fields for which an empty map is the same as none.
var emptyMaps = []string{"labels", "annotations", "nodeSelector", "matchLabels", "resources", "limits", "requests", "metadata", "overhead"}

// withoutEmpty returns a value without nulls, empty lists, and those empty maps that have no meaning. It returns
// nil if no content remains.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, one := range v {
			one = withoutEmpty(one)
			m, isMap := one.(map[string]any)
			if one == nil || isMap && len(m) == 0 && slices.Contains(emptyMaps, key) {
				continue
			}
			out[key] = one
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = withoutEmpty(one)
		}
		return out
	}
	return v
}

// sameForServer reports whether an object with a pod of its own is equal to the published object with another pod, in
// everything that the API server treats as immutable, with and without its defaults.
func (p *publishedPod) sameForServer(obj, own, other map[string]any) bool {
	if podmap.Equal(p.immutableFields(obj, own), p.immutableFields(p.object, other)) {
		return true
	}
	own, other = withPodDefaults(own, p.bare), withPodDefaults(other, p.bare)
	return podmap.Equal(p.immutableFields(obj, own), p.immutableFields(p.object, other))
}

// immutableFields returns what cannot change of an object that has a pod.
func (p *publishedPod) immutableFields(obj, pod map[string]any) map[string]any {
	if p.bare {
		return immutablePod(pod)
	}
	return immutableJob(obj, pod)
}

// withPodDefaults returns a pod with what the API server sets.
func withPodDefaults(pod map[string]any, bare bool) map[string]any {
	pod = podmap.CopyMap(pod)
	if bare {
		admission.Server{}.Default(pod)
	} else {
		admission.Server{}.DefaultTemplate(pod)
	}
	return pod
}

// jobDigest is a digest of what of a Job cannot change, with its own pod.
func jobDigest(job, own map[string]any) (string, error) {
	text, err := json.Marshal(immutableJob(job, own))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// MayBeReplaced reports whether an object declares that it is recreated rather than updated: by an annotation for
// the tool that applies it, or by having no name. Flux also reads the key of its annotation among the labels, and
// the value in any case (fluxcd/pkg/ssa, AnyInMetadata).
func MayBeReplaced(obj map[string]any) bool {
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if generated, _ := meta["generateName"].(string); generated != "" && name == "" {
		return true
	}
	annotations, labels := stringMap(meta["annotations"]), stringMap(meta["labels"])
	for _, texts := range []map[string]string{annotations, labels} {
		if strings.EqualFold(texts["kustomize.toolkit.fluxcd.io/force"], "enabled") {
			return true
		}
	}
	for _, hook := range []string{"argocd.argoproj.io/hook", "helm.sh/hook"} {
		if annotations[hook] != "" {
			return true
		}
	}
	for option := range strings.SplitSeq(annotations["argocd.argoproj.io/sync-options"], ",") {
		if strings.TrimSpace(option) == "Force=true" {
			return true
		}
	}
	return strings.HasSuffix(annotations["kapp.k14s.io/update-strategy"], "-replace")
}

// isKeptTemplate reports whether a template of an object is one that can hardly change.
func isKeptTemplate(u *documentUnit, t workload.Template) bool {
	return isKeptKind(u.meta) && (len(t.Path) == 0 || t.Field == "spec.template")
}
