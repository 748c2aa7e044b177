// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"maps"
	"strings"
)

// uncalledWebhook is a pod that no webhook of the policy's revision is called for.
type uncalledWebhook struct {
	hooks   webhookSet
	options Options
	source  string
	pod     Pod
	view    selectorView
}

// explain explains why no webhook of the policy's revision is called. It looks for the label on which
// that hangs by asking again with that label changed, so that it holds for every version's rules and for a user's own.
func (u uncalledWebhook) explain(out *Decision) {
	if len(out.Others) > 0 {
		m := out.Others[0]
		out.Code, out.Revision = CodeOtherRevision, m.Revision
		out.Reason = fmt.Sprintf("the webhook rule %s matches the pod for revision %s, and the policy injects revision %s", m, m.Revision, revisionOrDefault(u.options.Revision))
		return
	}
	p := u.pod
	ns := p.Namespace
	if value, ok := p.Labels[labelInject]; ok && u.podRefuses() {
		out.Code, out.Deciding = CodePodLabel, &Fact{Level: LevelPod, Kind: "label", Key: labelInject, Value: value,
			Source: sourceWorkload}
		out.Reason = fmt.Sprintf("the pod is labelled %s=%s", labelInject, value)
		return
	}
	for _, key := range []string{labelInjection, labelRevision, labelEnv} {
		value, ok := ns.Labels[key]
		if !ok || !ns.Known || !u.labelDecides(key) {
			continue
		}
		out.Code, out.Deciding = CodeNamespaceLabel, &Fact{Level: LevelNamespace, Kind: "label", Key: key, Value: value,
			Source: ns.Source}
		out.Reason = fmt.Sprintf("namespace %s is labelled %s=%s", ns.Name, key, value)
		if key == labelRevision {
			out.Reason += ", which is not " + u.policyRevisionNames()
		}
		return
	}
	if value, ok := p.Labels[labelRevision]; ok && u.wouldCallWithLabels(labelChanges{pod: map[string]*string{labelRevision: pointerTo(revisionOrDefault(u.options.Revision))}}) {
		out.Code, out.Deciding = CodePodLabel, &Fact{Level: LevelPod, Kind: "label", Key: labelRevision, Value: value,
			Source: sourceWorkload}
		out.Reason = fmt.Sprintf("the pod is labelled %s=%s, which is not %s", labelRevision, value,
			u.policyRevisionNames())
		return
	}
	if u.explainMissingLabel(out) {
		return
	}
	out.Code = CodeSelector
	out.Reason = "no rule of the webhooks (" + strings.Join(u.hooks.configNames(), ", ") + ", from " + u.source +
		") matches the pod"
}

// labelChanges are labels to try: a value, or nil for none.
type labelChanges struct{ namespace, pod map[string]*string }

// wouldCallWithLabels asks the webhooks again with other labels.
func (u uncalledWebhook) wouldCallWithLabels(c labelChanges) bool {
	p := u.pod
	p.Labels = withChanges(p.Labels, c.pod)
	p.Namespace.Labels = withChanges(p.Namespace.Labels, c.namespace)
	p.Namespace.Known = p.Namespace.Known || u.view.namespace.all
	return u.hooks.evaluateCall(selectorViewForPod(p), nil).answer != No
}

func withChanges(m map[string]string, change map[string]*string) map[string]string {
	if len(change) == 0 {
		return m
	}
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	for k, v := range change {
		if v == nil {
			delete(out, k)
			continue
		}
		out[k] = *v
	}
	return out
}

func pointerTo(s string) *string { return &s }

// podRefuses reports whether the pod's label sidecar.istio.io/inject keeps every webhook away, whatever the namespace.
func (u uncalledWebhook) podRefuses() bool {
	p := u.pod
	p.Namespace = Namespace{Name: p.Namespace.Name}
	if u.hooks.evaluateCall(selectorViewForPod(p), nil).answer != No {
		return false
	}
	p.Labels = withChanges(p.Labels, map[string]*string{labelInject: nil})
	return u.hooks.evaluateCall(selectorViewForPod(p), nil).answer != No
}

// labelDecides reports whether another value of a namespace's label, or its absence, would have the webhook called, if
// need be together with the policy's revision on the namespace.
func (u uncalledWebhook) labelDecides(key string) bool {
	own := pointerTo(revisionOrDefault(u.options.Revision))
	values := map[string][]*string{
		labelInjection: {pointerTo("enabled"), nil},
		labelRevision:  {own, nil},
		labelEnv:       {pointerTo(u.options.Settings.Namespace), nil},
	}[key]
	for _, value := range values {
		if u.wouldCallWithLabels(labelChanges{namespace: map[string]*string{key: value}}) ||
			key == labelInjection && u.wouldCallWithLabels(labelChanges{namespace: map[string]*string{key: value, labelRevision: own}}) {
			return true
		}
	}
	return false
}

// explainMissingLabel explains a call that fails for want of a label: it finds the one that would do.
func (u uncalledWebhook) explainMissingLabel(out *Decision) bool {
	p := u.pod
	own := revisionOrDefault(u.options.Revision)
	for _, l := range [][2]string{{labelInjection, "enabled"}, {labelRevision, own}, {labelEnv, u.options.Settings.Namespace}} {
		if u.wouldCallWithLabels(labelChanges{namespace: map[string]*string{l[0]: &l[1]}}) {
			out.Code = CodeNoLabel
			out.Deciding = &Fact{Level: LevelNamespace, Kind: "label", Key: l[0], Missing: true,
				Source: p.Namespace.Source}
			out.Reason = fmt.Sprintf("namespace %s lacks the label %s=%s, and the pod does not ask for injection by a label", p.Namespace.Name, l[0], l[1])
			if p.Namespace.Labels[labelDataplane] == ambient {
				out.Reason = fmt.Sprintf("namespace %s is labelled %s=%s and lacks the label %s=%s", p.Namespace.Name,
					labelDataplane, ambient, l[0], l[1])
			}
			return true
		}
	}
	for _, l := range [][2]string{{labelInject, "true"}, {labelRevision, own}} {
		for _, ns := range []map[string]*string{nil, {labelInjection: pointerTo("enabled")}, {labelRevision: &own}} {
			if u.wouldCallWithLabels(labelChanges{namespace: ns, pod: map[string]*string{l[0]: &l[1]}}) {
				out.Code = CodeNoLabel
				out.Deciding = &Fact{Level: LevelPod, Kind: "label", Key: l[0], Missing: true, Source: sourceWorkload}
				out.Reason = fmt.Sprintf("the pod lacks the label %s=%s, which the webhook asks for", l[0], l[1])
				return true
			}
		}
	}
	return false
}

// policyRevisionNames returns the values of istio.io/rev that mean the policy's revision.
func (u uncalledWebhook) policyRevisionNames() string {
	s := "the policy's revision " + revisionOrDefault(u.options.Revision)
	if len(u.options.RevisionTags) > 0 {
		s += " or one of its tags (" + strings.Join(u.options.RevisionTags, ", ") + ")"
	}
	return s
}

func (w webhookSet) configNames() []string {
	var names []string
	for _, h := range w {
		names = append(names, h.match.Config)
	}
	return names
}
