// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"maps"
	"slices"
)

// Misplaced is a label or annotation that a sidecar reads on pods and that is on the workload's own metadata instead.
type Misplaced struct {
	// Key of the label or annotation.
	Key string
	// Label reports whether it is a label.
	Label bool
}

// Misplaced returns keys that the sidecar reads and that the workload's own metadata has but its pods do not: what
// sets a parameter of an injected sidecar, and what would have the sidecar injected. Annotations come first, each
// kind in order. It returns none for a Pod, which has no other metadata.
func (s *Sidecar) Misplaced(req Request) []Misplaced {
	if req.Workload.Kind == "Pod" || len(req.Workload.Labels) == 0 && len(req.Workload.Annotations) == 0 {
		return nil
	}
	pod, err := newTexts(req)
	if err != nil || s.selection.narrow.mismatchReason(&req) != "" {
		return nil
	}
	now := s.selection.decideFrom(0, &req, pod)
	if now.Fail {
		return nil
	}
	var out []Misplaced
	for _, key := range missingKeys(req.Workload.Annotations, pod.annotations) {
		with := podTexts{pod.labels, withKey(pod.annotations, key, req.Workload.Annotations[key])}
		if s.wouldInject(&req, now, with) || s.setsParameter(key) && (now.Inject || s.wouldInject(&req, now, withWorkloadMetadata(pod, req.Workload))) {
			out = append(out, Misplaced{Key: key})
		}
	}
	for _, key := range missingKeys(req.Workload.Labels, pod.labels) {
		if s.wouldInject(&req, now, podTexts{withKey(pod.labels, key, req.Workload.Labels[key]), pod.annotations}) {
			out = append(out, Misplaced{Key: key, Label: true})
		}
	}
	return out
}

// wouldInject reports whether a pod that is not injected would be with other labels and annotations.
func (s *Sidecar) wouldInject(req *Request, now Decision, texts podTexts) bool {
	return !now.Inject && s.selection.decideFrom(0, req, texts).Inject
}

// setsParameter reports whether an annotation sets a parameter of the sidecar.
func (s *Sidecar) setsParameter(key string) bool {
	return slices.ContainsFunc(s.parameters, func(p *compiledParameter) bool { return p.readsAnnotation(key) })
}

// withWorkloadMetadata is a pod with all labels and annotations of its workload's own metadata beside its own.
func withWorkloadMetadata(pod podTexts, w Workload) podTexts {
	out := podTexts{maps.Clone(w.Labels), maps.Clone(w.Annotations)}
	if out.labels == nil {
		out.labels = map[string]string{}
	}
	if out.annotations == nil {
		out.annotations = map[string]string{}
	}
	maps.Copy(out.labels, pod.labels)
	maps.Copy(out.annotations, pod.annotations)
	return out
}

// missingKeys returns the keys that only the first map has, in order.
func missingKeys(a, b map[string]string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if _, ok := b[key]; !ok {
			out = append(out, key)
		}
	}
	return out
}

func withKey(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}
