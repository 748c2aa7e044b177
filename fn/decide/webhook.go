// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"
)

// selectorView is a pod as selectors see it.
type selectorView struct {
	pod       Pod
	labels    knownLabels
	namespace knownLabels
}

func selectorViewForPod(p Pod) selectorView {
	v := selectorView{pod: p, labels: knownLabels{labels: podLabels(p), all: true}}
	v.namespace = knownLabels{labels: labels.Set(p.Namespace.Labels), all: p.Namespace.Known}
	if !p.Namespace.Known {
		v.namespace.labels = nil
	}
	if _, ok := v.namespace.labels[labelNamespaceName]; !ok && p.Namespace.Name != "" {
		set := maps.Clone(v.namespace.labels)
		if set == nil {
			set = labels.Set{}
		}
		set[labelNamespaceName] = p.Namespace.Name
		v.namespace.labels = set
	}
	return v
}

// unknownValue represents the value of a label that only the cluster knows. No selector names it.
const unknownValue = "prerig.dev-not-known"

// runtimeLabels are the labels that controllers put on their pods. A selector such as neverInjectSelector with job-name
// Exists, which keeps Jobs out of a mesh, finds them at admission and must find them here.
var runtimeLabels = map[string][]string{
	"Deployment": {"pod-template-hash"},
	"ReplicaSet": {},
	"Rollout":    {"rollouts-pod-template-hash"},
	"StatefulSet": {"statefulset.kubernetes.io/pod-name", "controller-revision-hash",
		"apps.kubernetes.io/pod-index"},
	"DaemonSet": {"controller-revision-hash", "pod-template-generation"},
	"Job": {"job-name", "controller-uid", "batch.kubernetes.io/job-name",
		"batch.kubernetes.io/controller-uid"},
	"CronJob": {"job-name", "controller-uid", "batch.kubernetes.io/job-name",
		"batch.kubernetes.io/controller-uid"},
	"DeploymentConfig": {"deployment", "deploymentconfig"},
	"CloneSet":         {"controller-revision-hash", "pod-template-hash", "apps.kruise.io/cloneset-instance-id"},
}

// podLabels are the labels of the pod at admission.
func podLabels(p Pod) labels.Set {
	more := runtimeLabels[p.Workload]
	if len(more) == 0 {
		return labels.Set(p.Labels)
	}
	set := make(labels.Set, len(p.Labels)+len(more))
	for _, key := range more {
		set[key] = unknownValue
	}
	if p.Workload == "Job" && p.Name != "" {
		set["job-name"], set["batch.kubernetes.io/job-name"] = p.Name, p.Name
	}
	if p.Workload == "DeploymentConfig" && p.Name != "" {
		set["deploymentconfig"] = p.Name
	}
	maps.Copy(set, p.Labels)
	return set
}

// webhookCall is whether the API server calls the injector.
type webhookCall struct {
	answer  Answer
	match   *Match
	others  []Match
	because string
	fact    *Fact
}

// evaluateCall asks every rule of every configuration, as the API server does: each entry that matches is
// called.
func (w webhookSet) evaluateCall(v selectorView, t *stepTrace) webhookCall {
	out := webhookCall{answer: No}
	for i := range w {
		h := &w[i]
		for j := range h.rules {
			r := &h.rules[j]
			answer := h.evaluateRule(r, v, t)
			if answer == No {
				continue
			}
			m := h.match
			m.Rule, m.Conditional = r.name, r.conditions
			switch {
			case answer == Unknown:
				if h.ours && out.answer == No {
					out.answer = Unknown
				}
			case h.ours && out.match == nil:
				out.answer, out.match = Yes, &m
				out.because, out.fact = r.decidingLabel(v)
			default:
				out.others = append(out.others, m)
			}
		}
	}
	return out
}

func (h *compiledWebhook) evaluateRule(r *hookRule, v selectorView, t *stepTrace) Answer {
	namespace, n := r.namespace.evaluateKnownLabels(v.namespace)
	object, o := r.object.evaluateKnownLabels(v.labels)
	answer := Yes
	switch {
	case namespace == No || object == No:
		answer = No
	case namespace == Unknown:
		answer = Unknown
	}
	if t == nil {
		return answer
	}
	s := Step{Stage: StageWebhook, What: h.match.Config + " " + r.name, Answer: answer}
	switch {
	case namespace == No:
		s.Because = n.describeMismatch(LevelNamespace, v.namespace)
	case object == No:
		s.Because = o.describeMismatch(LevelPod, v.labels)
	case namespace == Unknown:
		s.Because = n.describeMismatch(LevelNamespace, v.namespace)
	default:
		s.Because, _ = r.decidingLabel(v)
		if !h.ours {
			s.Because += "; it calls revision " + h.match.Revision + ", not the policy's"
		}
	}
	t.add(s)
	return answer
}

// decidingLabel names the label that a match depends on.
func (r *hookRule) decidingLabel(v selectorView) (string, *Fact) {
	if q := r.namespace.positiveRequirement(); q != nil && v.namespace.labels.Has(q.Key()) {
		f := &Fact{Level: LevelNamespace, Kind: "label", Key: q.Key(), Value: v.namespace.labels[q.Key()],
			Source: v.pod.Namespace.Source}
		return f.String(), f
	}
	if q := r.object.positiveRequirement(); q != nil && v.labels.labels.Has(q.Key()) {
		f := &Fact{Level: LevelPod, Kind: "label", Key: q.Key(), Value: v.labels.labels[q.Key()],
			Source: sourceWorkload}
		return f.String(), f
	}
	return "no label excludes it", nil
}

// SourceUnknown is the source of what is not known.
const SourceUnknown = "not known"

// Where facts come from.
const (
	sourceWorkload = "the workload"
	sourceConfig   = "the injector's configuration"
)
