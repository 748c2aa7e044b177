// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"maps"
	"strings"
)

// notCalled explains why no webhook of the policy's revision is called. It looks for the label on which that hangs by
// asking again with that label changed, so that it holds for every version's rules and for a user's own.
func (d *Decider) notCalled(out *Decision, v view) {
	if len(out.Others) > 0 {
		m := out.Others[0]
		out.Code, out.Revision = CodeOtherRevision, m.Revision
		out.Reason = fmt.Sprintf("the webhook rule %s takes the pod for revision %s, and the policy injects revision %s", m, m.Revision, orDefault(d.options.Revision))
		return
	}
	p := v.pod
	ns := p.Namespace
	value, onPod := p.Labels[labelInject]
	if onPod && d.wouldCall(p, v, changed{pod: map[string]*string{labelInject: nil}}) {
		out.Code, out.Deciding = CodePodLabel, &Fact{Level: LevelPod, Kind: "label", Key: labelInject, Value: value, Source: sourceWorkload}
		out.Reason = fmt.Sprintf("the pod is labelled %s=%s", labelInject, value)
		return
	}
	for _, key := range []string{labelInjection, labelRevision, labelEnv} {
		value, ok := ns.Labels[key]
		if !ok || !ns.Known || !d.labelDecides(p, v, key) {
			continue
		}
		out.Code, out.Deciding = CodeNamespaceLabel, &Fact{Level: LevelNamespace, Kind: "label", Key: key, Value: value, Source: ns.Source}
		out.Reason = fmt.Sprintf("namespace %s is labelled %s=%s", ns.Name, key, value)
		if key == labelRevision {
			out.Reason += ", which is not " + d.names()
		}
		return
	}
	if value, ok := p.Labels[labelRevision]; ok && d.wouldCall(p, v, changed{pod: map[string]*string{labelRevision: ptr(orDefault(d.options.Revision))}}) {
		out.Code, out.Deciding = CodePodLabel, &Fact{Level: LevelPod, Kind: "label", Key: labelRevision, Value: value, Source: sourceWorkload}
		out.Reason = fmt.Sprintf("the pod is labelled %s=%s, which is not %s", labelRevision, value, d.names())
		return
	}
	if ask := d.asksFor(p, v); ask != "" {
		out.Code = CodeNoLabel
		key, _, _ := strings.Cut(ask, "=")
		out.Deciding = &Fact{Level: LevelNamespace, Kind: "label", Key: key, Missing: true, Source: ns.Source}
		out.Reason = fmt.Sprintf("namespace %s has not the label %s, and the pod does not ask for injection by a label", ns.Name, ask)
		return
	}
	out.Code = CodeSelector
	out.Reason = "no rule of the webhooks (" + strings.Join(d.configNames(), ", ") + ", from " + d.source + ") takes the pod"
}

// changed are labels to try: a value, or nil for none.
type changed struct{ namespace, pod map[string]*string }

// wouldCall asks the webhooks again with other labels.
func (d *Decider) wouldCall(p Pod, v view, c changed) bool {
	p.Labels = with(p.Labels, c.pod)
	p.Namespace.Labels = with(p.Namespace.Labels, c.namespace)
	p.Namespace.Known = p.Namespace.Known || v.namespace.all
	return d.call(d.view(p), nil).answer != No
}

func with(m map[string]string, change map[string]*string) map[string]string {
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

func ptr(s string) *string { return &s }

// labelDecides says whether another value of a namespace's label, or its absence, would have the webhook called.
func (d *Decider) labelDecides(p Pod, v view, key string) bool {
	values := map[string][]*string{
		labelInjection: {ptr("enabled"), nil},
		labelRevision:  {ptr(orDefault(d.options.Revision)), nil},
		labelEnv:       {ptr(d.options.Settings.Namespace), nil},
	}[key]
	for _, value := range values {
		if d.wouldCall(p, v, changed{namespace: map[string]*string{key: value}}) {
			return true
		}
	}
	return false
}

// asksFor gives the label on the namespace that would have the webhook called.
func (d *Decider) asksFor(p Pod, v view) string {
	for _, l := range [][2]string{{labelInjection, "enabled"}, {labelRevision, orDefault(d.options.Revision)}} {
		if d.wouldCall(p, v, changed{namespace: map[string]*string{l[0]: &l[1]}}) {
			return l[0] + "=" + l[1]
		}
	}
	return ""
}

// names are the values of istio.io/rev that mean the policy's revision.
func (d *Decider) names() string {
	s := "the policy's revision " + orDefault(d.options.Revision)
	if len(d.options.RevisionTags) > 0 {
		s += " or one of its tags (" + strings.Join(d.options.RevisionTags, ", ") + ")"
	}
	return s
}

func (d *Decider) configNames() []string {
	var names []string
	for _, h := range d.hooks {
		names = append(names, h.match.Config)
	}
	return names
}
