// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

const (
	// LabelInjected is put on an injected pod so that a neverInjectSelector, or an objectSelector of the cluster's
	// webhook, can leave it alone.
	LabelInjected = "prerig.dev/injected"
	// AnnotationMark keeps the pod's original values at the places of a mark, so that Unmark restores them.
	AnnotationMark = "prerig.dev/runtime-webhook"
)

// Mark is set on an injected pod so that the cluster's webhook skips it. An empty one sets no value.
type Mark struct {
	Labels, Annotations map[string]string
	// Needed reports whether the webhook would, or might, render the pod again without a mark.
	Needed bool
	// Safe reports that with this mark, or without one if none is needed, the webhook skips the pod and traffic is
	// redirected as before.
	Safe bool
	// Message explains the choice, and what to do if no choice is safe. It is one sentence without a full stop.
	Message string
}

// marks are the ways to keep the webhook away, in the order in which they are tried. Which one works depends on the
// version: the label keeps the webhook from being called from 1.9 on (with its own selectors), the injector reads it from
// 1.12 on, and before it reads the annotation.
var marks = []Mark{
	{Labels: map[string]string{labelInject: "false"}},
	{Annotations: map[string]string{labelInject: "false"}},
	{Labels: map[string]string{labelInject: "false"}, Annotations: map[string]string{labelInject: "false"}},
	{Labels: map[string]string{LabelInjected: "true"}},
}

// MarkFor chooses the mark for an injected pod (metadata and spec), for runtimeWebhook: Disable.
//
// With Istio's CNI plugin sidecar.istio.io/inject=false is never chosen: the plugin leaves such a pod out of the
// redirection, and its traffic would pass by the proxy without a word. A pod that redirects by itself, with the
// container istio-init, does not depend on the plugin (cni/pkg/plugin/plugin.go).
func (d *Decider) MarkFor(p Pod, injected map[string]any) Mark {
	if d.clusterInjects(p) == No {
		return Mark{Safe: true, Message: "the cluster's webhook does not match the pod, so no mark is needed"}
	}
	cni := usesCNIPlugin(injected, d.options.CNI)
	for _, m := range marks {
		if cni && (m.Labels[labelInject] != "" || m.Annotations[labelInject] != "") {
			continue
		}
		q := p
		q.Labels, q.Annotations = mergeLabels(p.Labels, m.Labels), mergeLabels(p.Annotations, m.Annotations)
		if d.clusterInjects(q) != No {
			continue
		}
		m.Needed, m.Safe = true, true
		m.Labels, m.Annotations = maps.Clone(m.Labels), maps.Clone(m.Annotations)
		m.Message = "the pod is marked with " + m.String() + ", so that the cluster's webhook leaves it alone"
		return m
	}
	m := Mark{Needed: true}
	why := "nothing keeps the cluster's webhook away from the pod"
	if cni {
		why = "Istio's CNI plugin redirects the pod's traffic and would stop with " + labelInject +
			"=false, so the pod is not marked"
	}
	m.Message = why + "; " + d.describeWebhookExclusion(p)
	return m
}

// describeWebhookExclusion describes how to keep the webhook away from a pod that cannot be marked.
func (d *Decider) describeWebhookExclusion(p Pod) string {
	selector := fmt.Sprintf("put neverInjectSelector [{matchLabels: {%s: \"true\"}}] into the injector's configuration, of the cluster and of the policy", LabelInjected)
	if own, answer := d.profile.podAsks(p); own != nil && answer == Yes {
		selector = fmt.Sprintf("give the cluster's MutatingWebhookConfiguration and the policy's webhooks an objectSelector that leaves out %s=true, as the pod's own %s %s=%s goes before neverInjectSelector",
			LabelInjected, own.Kind, own.Key, own.Value)
	}
	fact := d.hooks.evaluateCall(selectorViewForPod(p), nil).fact
	switch {
	case fact != nil && fact.Level == LevelPod:
		return fmt.Sprintf("it comes for the pod's own label %s=%s; to keep it away %s", fact.Key, fact.Value, selector)
	case fact != nil:
		without := p
		without.Namespace.Labels = withChanges(p.Namespace.Labels, map[string]*string{fact.Key: nil})
		if d.clusterInjects(without) != No {
			break
		}
		return fmt.Sprintf("to keep the cluster's webhook away take the label %s=%s off namespace %s, or %s", fact.Key,
			fact.Value, p.Namespace.Name, selector)
	}
	if p.Namespace.Known {
		return "to keep the cluster's webhook away " + selector
	}
	where := "the namespace"
	if p.Namespace.Name != "" {
		where = "namespace " + p.Namespace.Name
	}
	return "to keep the cluster's webhook away see that " + where + " has no injection label, or " + selector
}

// String writes the mark as "label key=value and annotation key=value".
func (m Mark) String() string {
	s := ""
	for _, set := range []struct {
		kind   string
		values map[string]string
	}{{"label", m.Labels}, {"annotation", m.Annotations}} {
		for k, v := range set.values { // One at most.
			if s != "" {
				s += " and "
			}
			s += set.kind + " " + k + "=" + v
		}
	}
	return s
}

// usesCNIPlugin reports whether Istio's CNI plugin redirects the pod's traffic. Only then does the pod have no
// istio-init, and istio-validation checks that the plugin has done its work. installed is the policy's setting.
func usesCNIPlugin(pod map[string]any, installed bool) bool {
	list, _ := mapOf(pod["spec"])["initContainers"].([]any)
	for _, c := range list {
		switch mapOf(c)["name"] {
		case "istio-init":
			return false
		case "istio-validation":
			installed = true
		}
	}
	return installed
}

// clusterInjects reports whether some webhook of the cluster matches the pod and its injector would inject it.
// Unknown means that the answer depends on a namespace whose labels are not known.
func (d *Decider) clusterInjects(p Pod) Answer {
	v := selectorViewForPod(p)
	if !d.injectRequired(p, v, nil).inject {
		return No
	}
	c := d.hooks.evaluateCall(v, nil)
	if len(c.others) > 0 {
		return Yes
	}
	return c.answer
}

// Reinjects reports whether the cluster's webhook would render an injected pod once more when it is created: Yes, No,
// or Unknown where that hangs on a namespace whose labels are not known. The message, empty for No, is a warning for
// runtimeWebhook: Keep, one sentence without a full stop.
func (d *Decider) Reinjects(p Pod) (Answer, string) {
	answer := d.clusterInjects(p)
	if answer == No {
		return No, ""
	}
	who, matches := "the cluster's webhook", "also matches"
	if c := d.hooks.evaluateCall(selectorViewForPod(p), nil); c.match != nil {
		who += " " + c.match.String()
	} else if len(c.others) > 0 {
		who += " " + c.others[0].String()
	}
	if answer == Unknown {
		matches = "may also match"
	}
	return answer, fmt.Sprintf("%s %s the injected pod, and then renders its own template over it at admission; runtimeWebhook: Disable stops that", who, matches)
}

// mergeLabels is a map with another one's values put over it.
func mergeLabels(m, values map[string]string) map[string]string {
	if len(values) == 0 {
		return m
	}
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, values)
	return out
}

// earlierMetadata is the content of AnnotationMark: for each key that was set the value before, or null if the key
// was absent.
type earlierMetadata struct {
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]*string `json:"annotations,omitempty"`
	// Empty lists the maps that existed and were empty.
	Empty []string `json:"empty,omitempty"`
}

// Apply returns a copy of a pod (metadata and spec) with the mark set and the replaced values kept in an
// annotation. A mark that sets no value returns the pod itself.
func (m Mark) Apply(pod map[string]any) (map[string]any, error) {
	if len(m.Labels)+len(m.Annotations) == 0 {
		return pod, nil
	}
	meta := maps.Clone(mapOf(pod["metadata"]))
	if meta == nil {
		meta = map[string]any{}
	}
	var kept earlierMetadata
	for _, key := range []string{"labels", "annotations"} {
		if m, ok := meta[key].(map[string]any); ok && len(m) == 0 {
			kept.Empty = append(kept.Empty, key)
		}
	}
	kept.Labels = setValues(meta, "labels", m.Labels)
	kept.Annotations = setValues(meta, "annotations", m.Annotations)
	text, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("keeping what a mark replaces: %w", err)
	}
	setValues(meta, "annotations", map[string]string{AnnotationMark: string(text)})
	out := maps.Clone(pod)
	out["metadata"] = meta
	return out, nil
}

// setValues sets values in a map of the metadata, which is copied, and returns the previous values.
func setValues(meta map[string]any, key string, values map[string]string) map[string]*string {
	if len(values) == 0 {
		return nil
	}
	set := maps.Clone(mapOf(meta[key]))
	if set == nil {
		set = map[string]any{}
	}
	old := map[string]*string{}
	for k, v := range values {
		old[k] = nil
		if was, there := set[k]; there {
			s, _ := was.(string) // null is the empty string
			old[k] = &s
		}
		set[k] = v
	}
	meta[key] = set
	return old
}

// Unmark returns a copy of a pod without the mark that Apply set, as it was before; marked reports whether it had
// one. A value that was changed since stays. Decisions and injections are made on the unmarked pod.
func Unmark(pod map[string]any) (out map[string]any, marked bool, err error) {
	meta := mapOf(pod["metadata"])
	text, ok := mapOf(meta["annotations"])[AnnotationMark].(string)
	if !ok {
		return pod, false, nil
	}
	var kept earlierMetadata
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return nil, false, fmt.Errorf("reading the annotation %s: %w", AnnotationMark, err)
	}
	meta = maps.Clone(meta)
	restoreValues(meta, "labels", kept.Labels, kept.Empty)
	restoreValues(meta, "annotations", kept.Annotations, kept.Empty)
	restoreValues(meta, "annotations", map[string]*string{AnnotationMark: nil}, kept.Empty)
	out = maps.Clone(pod)
	out["metadata"] = meta
	return out, true, nil
}

func restoreValues(meta map[string]any, key string, old map[string]*string, empty []string) {
	if len(old) == 0 || meta[key] == nil {
		return
	}
	set := maps.Clone(mapOf(meta[key]))
	for k, v := range old {
		if k != AnnotationMark && (set[k] == nil || set[k] != markValue(k)) {
			continue
		}
		if v == nil {
			delete(set, k)
		} else {
			set[k] = *v
		}
	}
	if len(set) == 0 && !slices.Contains(empty, key) {
		delete(meta, key)
		return
	}
	meta[key] = set
}

// markValue is what a mark sets for a key; nil for a key that no mark sets.
func markValue(key string) any {
	switch key {
	case labelInject:
		return "false"
	case LabelInjected:
		return "true"
	}
	return nil
}
