// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/workload"
)

// Decision is what was decided for a pod.
type Decision struct {
	// Inject reports whether the pod gets the sidecar, and Fail whether the pod is rejected. If neither is set, the
	// pod is left alone.
	Inject, Fail bool
	// Reason is one sentence without a full stop.
	Reason string
}

// compiledSelect is SidecarSelect, compiled.
type compiledSelect struct {
	narrow workloadFilter
	rules  []*compiledRule
	inject bool
}

// workloadFilter matches the workload itself.
type workloadFilter struct {
	kinds             []string
	names, namespaces *regexp.Regexp
}

// compiledRule is SidecarRule, compiled.
type compiledRule struct {
	workloadFilter
	spec        v1alpha1.SidecarRule
	labels      labels.Selector
	annotations *v1alpha1.LabelSelector
	onNamespace bool
}

// newSelection compiles, and notes the annotations that rules read.
func newSelection(s v1alpha1.SidecarSelect, reads map[string]bool) (*compiledSelect, error) {
	out := &compiledSelect{narrow: newNarrowing(s.Kinds, s.Names, s.Namespaces),
		inject: s.Default == v1alpha1.SidecarInject}
	for i, r := range s.Rules {
		compiled := &compiledRule{workloadFilter: newNarrowing(r.Kinds, r.Names, r.Namespaces), spec: r,
			annotations: r.Annotations, onNamespace: r.On == "Namespace"}
		if r.Labels != nil {
			var err error
			if compiled.labels, err = r.Labels.Selector(); err != nil {
				return nil, fmt.Errorf("select.rules[%d].labels: %w", i, err)
			}
		}
		if r.Annotations != nil {
			for key := range r.Annotations.MatchLabels {
				reads[key] = true
			}
			for _, e := range r.Annotations.MatchExpressions {
				reads[e.Key] = true
			}
		}
		out.rules = append(out.rules, compiled)
	}
	return out, nil
}

func newNarrowing(kinds, names, namespaces []string) workloadFilter {
	return workloadFilter{kinds: kinds, names: compileWildcards(names), namespaces: compileWildcards(namespaces)}
}

// mismatchReason describes why a workload does not match, or returns "" if it does.
func (n workloadFilter) mismatchReason(req *Request) string {
	switch {
	case len(n.kinds) > 0 && !slices.Contains(n.kinds, req.Workload.Kind):
		return fmt.Sprintf("the kind %s is not selected (%s)", req.Workload.Kind, strings.Join(n.kinds, ", "))
	case n.names != nil && !n.names.MatchString(req.Workload.Name):
		return fmt.Sprintf("the name %q is not selected", req.Workload.Name)
	case n.namespaces != nil && !n.namespaces.MatchString(req.Namespace.Name):
		return fmt.Sprintf("the namespace %q is not selected", req.Namespace.Name)
	}
	return ""
}

// Decide reports whether a pod gets the sidecar, from the original's labels and annotations. An error is about one of
// them.
func (s *Sidecar) Decide(req Request) (Decision, error) {
	if why := s.selection.narrow.mismatchReason(&req); why != "" {
		return Decision{Reason: why}, nil
	}
	pod, err := newTexts(req)
	if err != nil {
		return Decision{}, err
	}
	return s.selection.decideFrom(0, &req, pod), nil
}

// podTexts are the labels and annotations that rules look at.
type podTexts struct{ labels, annotations map[string]string }

func newTexts(req Request) (podTexts, error) {
	var t podTexts
	var err error
	if t.labels, err = workload.Labels(req.Original); err != nil {
		return t, err
	}
	t.annotations, err = workload.Annotations(req.Original)
	return t, err
}

// decideFrom decides by the rules starting at from.
func (s *compiledSelect) decideFrom(from int, req *Request, pod podTexts) Decision {
	for i, r := range s.rules[from:] {
		if r.mismatchReason(req) != "" {
			continue
		}
		on := pod
		if r.onNamespace {
			if !req.Namespace.Known || req.Unknown == v1alpha1.UnknownNamespaceInject && req.Namespace.Declared && !r.isMentioned(req.Namespace) {
				return s.decideUnknown(r, s.decideFrom(from+i+1, req, pod), req)
			}
			on = podTexts{req.Namespace.Labels, req.Namespace.Annotations}
		}
		if ok, why := r.matchTexts(on); ok {
			return r.newDecision(why)
		}
	}
	if s.inject {
		return Decision{Inject: true, Reason: "no rule matches, and the default is to inject"}
	}
	return Decision{Reason: "no rule matches, and the default is to skip" + s.describeSelectRules(req)}
}

// describeSelectRules describes what on a pod would request the sidecar, or returns "" if no rule reads the pod's
// labels or annotations. Ineffective keys in the workload's own metadata come first.
func (s *compiledSelect) describeSelectRules(req *Request) string {
	for _, r := range s.rules {
		if r.onNamespace || r.spec.Action != v1alpha1.SidecarInject {
			continue
		}
		if text := exampleLabel(r.spec.Annotations); text != "" {
			return describeRequiredMetadata("annotation", text, r.spec.Annotations, req.Workload.Annotations,
				req.Workload.Kind)
		}
		if text := exampleLabel(r.spec.Labels); text != "" {
			return describeRequiredMetadata("label", text, r.spec.Labels, req.Workload.Labels, req.Workload.Kind)
		}
	}
	return ""
}

// describeRequiredMetadata describes what to set on the pod, or that the workload's own metadata has a key of the
// selector, which is not read from it.
func describeRequiredMetadata(what, text string, s *v1alpha1.LabelSelector, own map[string]string, kind string) string {
	keys := slices.Collect(maps.Keys(s.MatchLabels))
	for _, e := range s.MatchExpressions {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if _, ok := own[key]; ok && kind != "Pod" {
			return fmt.Sprintf("; the %s %s is on the %s's own metadata, where it has no effect: it belongs in the metadata of the pod template", what, key, kind)
		}
	}
	return fmt.Sprintf("; the %s %s on the pod would ask for it", what, text)
}

// exampleLabel returns a text that a selector asks for: a key with one of the values that it may have.
func exampleLabel(s *v1alpha1.LabelSelector) string {
	if s == nil {
		return ""
	}
	for _, e := range s.MatchExpressions {
		switch {
		case e.Operator == "In" && len(e.Values) > 0:
			return e.Key + ": " + e.Values[0]
		case e.Operator == "Exists":
			return e.Key
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		return key + ": " + s.MatchLabels[key]
	}
	return ""
}

// isMentioned reports whether a namespace has any label or annotation that the rule looks at.
func (r *compiledRule) isMentioned(ns Namespace) bool {
	for _, side := range []struct {
		selector *v1alpha1.LabelSelector
		has      map[string]string
	}{{r.spec.Labels, ns.Labels}, {r.spec.Annotations, ns.Annotations}} {
		if side.selector == nil {
			continue
		}
		for key := range side.selector.MatchLabels {
			if _, ok := side.has[key]; ok {
				return true
			}
		}
		for _, e := range side.selector.MatchExpressions {
			if _, ok := side.has[e.Key]; ok {
				return true
			}
		}
	}
	return false
}

// decideUnknown decides where a rule looks at a namespace that is not known. Where the rules after it come to the same
// it does not matter.
func (s *compiledSelect) decideUnknown(r *compiledRule, otherwise Decision, req *Request) Decision {
	matched := r.newDecision("the labels or annotations of the namespace match")
	if matched.Inject == otherwise.Inject && matched.Fail == otherwise.Fail {
		return otherwise
	}
	name := fmt.Sprintf("of the namespace %q", req.Namespace.Name)
	if req.Namespace.Name == "" {
		name = "of the workload's namespace"
	}
	switch req.Unknown {
	case v1alpha1.UnknownNamespaceFail:
		return Decision{Fail: true, Reason: "the labels and annotations " + name + " decide, and they are not known; give them in spec.namespaces, " +
			"or say what to do with spec.unknownNamespace"}
	case v1alpha1.UnknownNamespaceInject:
		if matched.Inject {
			return Decision{Inject: true, Reason: "the labels and annotations " + name + " are not known, and unknownNamespace is Inject"}
		}
	}
	unread := "; the labels and annotations " + name + " are not known and were not looked at"
	if !strings.HasSuffix(otherwise.Reason, unread) { // as a later rule that looks at the namespace has added
		otherwise.Reason += unread
	}
	return otherwise
}

func (r *compiledRule) newDecision(why string) Decision {
	if r.spec.Reason != "" {
		why = r.spec.Reason
	}
	return Decision{Inject: r.spec.Action == v1alpha1.SidecarInject, Fail: r.spec.Action == v1alpha1.SidecarFail,
		Reason: why}
}

// matchTexts reports whether the rule matches, and by what.
func (r *compiledRule) matchTexts(t podTexts) (bool, string) {
	who := "the pod's"
	if r.onNamespace {
		who = "the namespace's"
	}
	var why []string
	if r.labels != nil {
		if !r.labels.Matches(labels.Set(t.labels)) {
			return false, ""
		}
		why = append(why, describeTexts(who+" label", r.spec.Labels, t.labels)...)
	}
	if r.annotations != nil {
		if !textsMatch(r.annotations, t.annotations) {
			return false, ""
		}
		why = append(why, describeTexts(who+" annotation", r.annotations, t.annotations)...)
	}
	if len(why) == 0 {
		return true, "the workload's kind, name or namespace is that of a rule"
	}
	return true, strings.Join(why, " and ")
}

// textsMatch evaluates a selector over annotations, whose values may be any text.
func textsMatch(s *v1alpha1.LabelSelector, m map[string]string) bool {
	for key, want := range s.MatchLabels {
		if v, ok := m[key]; !ok || v != want {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		v, ok := m[e.Key]
		in := ok && slices.Contains(e.Values, v)
		if e.Operator == "In" && !in || e.Operator == "NotIn" && in || e.Operator == "Exists" && !ok ||
			e.Operator == "DoesNotExist" && ok {
			return false
		}
	}
	return true
}

// describeTexts describes the values of a selector's keys.
func describeTexts(what string, s *v1alpha1.LabelSelector, m map[string]string) []string {
	var keys, out []string
	for key := range s.MatchLabels {
		keys = append(keys, key)
	}
	for _, e := range s.MatchExpressions {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if v, ok := m[key]; ok {
			out = append(out, fmt.Sprintf("%s %s is %q", what, key, v))
		} else {
			out = append(out, fmt.Sprintf("%s %s is not set", what, key))
		}
	}
	return out
}
