// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/policy"
)

// Cause is what has changed a field.
type Cause struct {
	// Step is the plugin or webhook.
	Step string `json:"step"`
	// Object is the object that decided it, such as LimitRange shop/limits, and Path the field of it, if known.
	Object string `json:"object,omitempty"`
	Path   []any  `json:"path,omitempty"`
	// Detail is the annotation or value that decided it.
	Detail string `json:"detail,omitempty"`
	// Round is 2 in the second round.
	Round int `json:"round,omitempty"`
}

// Change is a field that a step has changed.
type Change struct {
	// Path of the field, with the names of list elements: spec.containers[web].image.
	Path string
	// Before and After are the values; nil for none.
	Before, After any
	Cause         Cause
}

// Trace records the changes of a pod. A nil Trace records nothing.
type Trace struct {
	Changes []Change
	current *Cause
	second  bool
}

// begin notes the pod, and returns what records its changes.
func (t *Trace) begin(a *Admission, cause Cause) func() {
	if t == nil {
		return func() {}
	}
	before := a.Pod.DeepCopy()
	outer := t.current
	t.current = &cause
	recorded := len(t.Changes)
	return func() {
		if len(t.Changes) == recorded { // otherwise a part of the step has recorded them
			t.record(before, a.Pod, *t.current)
		}
		t.current = outer
	}
}

// cause names what decides the changes of the current step.
func (t *Trace) cause(cause Cause) {
	if t != nil && t.current != nil {
		*t.current = cause
	}
}

func (t *Trace) round(n int) {
	if t != nil {
		t.second = n > 1
	}
}

// policy records what a mutation of a policy has changed.
func (t *Trace) policy(by policy.By, before, after *corev1.Pod) {
	detail := "binding " + by.Binding
	if by.Param != "" {
		detail += ", parameter " + by.Param
	}
	t.record(before, after, Cause{
		Step: "MutatingAdmissionPolicy", Object: "MutatingAdmissionPolicy " + by.Policy, Path: []any{"spec", "mutations", by.Mutation}, Detail: detail,
	})
}

func (t *Trace) record(before, after *corev1.Pod, cause Cause) {
	if !equality.Semantic.DeepEqual(before, after) {
		t.Record(Map(before), Map(after), cause)
	}
}

// Record records in what two states of a pod differ.
func (t *Trace) Record(before, after map[string]any, cause Cause) {
	if t == nil {
		return
	}
	if t.second {
		cause.Round = 2
	}
	for _, c := range Differences(before, after) {
		c.Cause = cause
		t.Changes = append(t.Changes, c)
	}
}

// Reasons returns the fields in which the stored pod differs from the one of the file, each with the last change of it.
// A field that no step has changed has no cause, which would be a defect.
func (t *Trace) Reasons(file, stored map[string]any) []Change {
	last := map[string]Change{}
	for _, c := range t.Changes {
		last[c.Path] = c
	}
	out := Differences(file, stored)
	for i, c := range out {
		out[i].Cause = last[c.Path].Cause
	}
	return out
}

// Differences returns the fields in which two pods differ, in their order.
func Differences(before, after map[string]any) []Change {
	old, now := map[string]any{}, map[string]any{}
	flatten(old, "", before)
	flatten(now, "", after)
	var out []Change
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if was, ok := old[path]; !ok || !reflect.DeepEqual(was, now[path]) {
			out = append(out, Change{Path: path, Before: was, After: now[path]})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(old)) {
		if _, ok := now[path]; !ok {
			out = append(out, Change{Path: path, Before: old[path]})
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// identities are the fields that tell the elements of lists apart, by the name of the list.
var identities = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "ephemeralContainers": {"name"}, "volumes": {"name"}, "env": {"name"},
	"volumeMounts": {"mountPath"}, "volumeDevices": {"devicePath"}, "ports": {"containerPort", "protocol"}, "imagePullSecrets": {"name"},
	"hostAliases": {"ip"}, "topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"}, "readinessGates": {"conditionType"},
	"schedulingGates": {"name"}, "resourceClaims": {"name"}, "sysctls": {"name"}, "resizePolicy": {"resourceName"},
	"tolerations": {"key", "operator", "value", "effect"}, "ownerReferences": {"kind", "name"},
}

// flatten notes the leaves of a value by their paths.
func flatten(out map[string]any, path string, value any) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		if len(v) == 0 && path != "" {
			out[path] = v
		}
		for key, child := range v {
			flatten(out, joinPath(path, key), child)
		}
	case []any:
		flattenList(out, path, v)
	default:
		out[path] = v
	}
}

func flattenList(out map[string]any, path string, list []any) {
	keys := identities[path[strings.LastIndexByte(path, '.')+1:]]
	seen := map[string]int{}
	for i, child := range list {
		name := fmt.Sprint(i)
		if fields, ok := child.(map[string]any); ok && len(keys) > 0 {
			var parts []string
			for _, key := range keys {
				switch {
				case fields[key] != nil:
					parts = append(parts, fmt.Sprint(fields[key]))
				case key == "protocol":
					parts = append(parts, string(corev1.ProtocolTCP)) // its default, so that a defaulted port is the same element
				}
			}
			name = strings.Join(parts, "/")
			if seen[name]++; seen[name] > 1 {
				name += fmt.Sprintf("#%d", seen[name])
			}
		}
		flatten(out, path+"["+name+"]", child)
	}
}

func joinPath(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]"):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	}
	return path + "." + key
}
