// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnknownNamespaceIsNamedOnce although several rules look at it.
func TestUnknownNamespaceIsNamedOnce(t *testing.T) {
	s := compiled(t, `{select: {rules: [{'on': Namespace, labels: {matchLabels: {a: 'on'}}, action: Inject}, {'on': Namespace, annotations: {matchLabels: {b: 'on'}}, action: Inject}, `+
		`{'on': Namespace, annotations: {matchLabels: {c: 'on'}}, action: Inject}]}}`)
	req := request(t, `{metadata: {}, spec: {containers: []}}`)
	req.Namespace = Namespace{Name: "shop"}
	got, err := s.Decide(req)
	if err != nil || strings.Count(got.Reason, "are not known and were not looked at") != 1 {
		t.Errorf("%v, %q", err, got.Reason)
	}
}

// TestWhatWouldAskForASidecar is what the pod could have, or what its workload's own metadata has in vain.
func TestWhatWouldAskForASidecar(t *testing.T) {
	for _, tc := range []struct{ rule, kind, annotation, label, want string }{
		{"annotations: {matchLabels: {gate: 'on'}}", "Deployment", "", "", "; the annotation gate: on on the pod would ask for it"},
		{"labels: {matchExpressions: [{key: gate, operator: In, values: [a, b]}]}", "Deployment", "", "", "; the label gate: a on the pod would ask for it"},
		{
			"annotations: {matchLabels: {gate: 'on'}}", "StatefulSet", "gate", "",
			"; the annotation gate is on the StatefulSet's own metadata, where it has no effect: it belongs in the metadata of the pod template",
		},
		{"labels: {matchLabels: {gate: 'on'}}", "Job", "", "gate", "; the label gate is on the Job's own metadata, where it has no effect"},
		{"annotations: {matchLabels: {gate: 'on'}}", "Pod", "gate", "", "; the annotation gate: on on the pod would ask for it"},
	} {
		s := compiled(t, "{select: {rules: [{"+tc.rule+", action: Inject}]}}")
		req := request(t, `{metadata: {}, spec: {containers: []}}`)
		req.Workload.Kind = tc.kind
		req.Workload.Annotations, req.Workload.Labels = map[string]string{tc.annotation: "on"}, map[string]string{tc.label: "on"}
		if got, err := s.Decide(req); err != nil || !strings.Contains(got.Reason, tc.want) {
			t.Errorf("%s of a %s: %v, %q, want %q", tc.rule, tc.kind, err, got.Reason, tc.want)
		}
	}
}

// TestMisplaced has what a sidecar reads on pods and finds on the workload's own metadata.
func TestMisplaced(t *testing.T) {
	const gate = `{select: {rules: [{annotations: {matchLabels: {gate: 'on'}}, action: Inject}, {labels: {matchLabels: {gated: 'yes'}}, action: Inject}]}, ` +
		`parameters: [{name: level, annotation: gate-level, default: info}]}`
	on := map[string]string{"gate": "on"}
	for _, tc := range []struct {
		name, kind, pod     string
		annotations, labels map[string]string
		want                []Misplaced
	}{
		{name: "asks", kind: "Deployment", pod: `{}`, annotations: on, want: []Misplaced{{Key: "gate"}}},
		{name: "asks by a label", kind: "Deployment", pod: `{}`, labels: map[string]string{"gated": "yes"}, want: []Misplaced{{Key: "gated", Label: true}}},
		{name: "does not ask", kind: "Deployment", pod: `{}`, annotations: map[string]string{"gate": "off", "other": "on"}},
		{
			name: "with a parameter", kind: "Deployment", pod: `{}`, annotations: map[string]string{"gate": "on", "gate-level": "debug"},
			want: []Misplaced{{Key: "gate"}, {Key: "gate-level"}},
		},
		{
			name: "a parameter alone, of a pod that is injected", kind: "Deployment", pod: `{annotations: {gate: "on"}}`, annotations: map[string]string{"gate-level": "debug"},
			want: []Misplaced{{Key: "gate-level"}},
		},
		{name: "a parameter of a pod that is not injected", kind: "Deployment", pod: `{}`, annotations: map[string]string{"gate-level": "debug"}},
		{name: "on the pod too", kind: "Deployment", pod: `{annotations: {gate: "on"}}`, annotations: on},
		{name: "a Pod has no other metadata", kind: "Pod", pod: `{annotations: {gate: "on"}}`, annotations: on},
	} {
		req := request(t, "{metadata: "+tc.pod+", spec: {containers: []}}")
		req.Workload.Kind, req.Workload.Annotations, req.Workload.Labels = tc.kind, tc.annotations, tc.labels
		if diff := cmp.Diff(tc.want, compiled(t, gate).Misplaced(req)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
