// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// RecordPrefix begins the annotations that keep what was injected; the sidecar's name follows.
const RecordPrefix = "sidecar.prerig.dev/"

// PoliciesRecord is the name of the record of the changes of MutatingAdmissionPolicies. No sidecar has this name.
const PoliciesRecord = "MutatingAdmissionPolicy"

// Record is what one sidecar leaves in a pod, as the JSON of an annotation.
type Record struct {
	// Name of the sidecar; it is in the annotation's name.
	Name string `json:"-"`
	// Step counts the sidecars of a pod from 1, in the order in which they were injected.
	Step int `json:"step"`
	// Istio is the side of Istio's injection that the sidecar is on: Inside or Outside.
	Istio string `json:"istio"`
	// InitContainers, Containers and Volumes are the names of what was added.
	InitContainers []string `json:"initContainers,omitempty"`
	Containers     []string `json:"containers,omitempty"`
	Volumes        []string `json:"volumes,omitempty"`
	// Policies are the MutatingAdmissionPolicies whose changes these are; nil for a sidecar.
	Policies []string `json:"policies,omitempty"`
	// Undo removes the sidecar.
	podmap.Undo
}

// Outside reports whether the sidecar was injected after Istio.
func (r Record) Outside() bool { return r.Istio == v1alpha1.IstioOutside }

// NewRecord makes the record of a sidecar from the pod before it and the pod with it.
func (s *Sidecar) NewRecord(step int, before, after map[string]any) (Record, error) {
	r := Record{Name: s.Name(), Step: step, Istio: v1alpha1.IstioInside}
	if s.Outside() {
		r.Istio = v1alpha1.IstioOutside
	}
	return r.withChange(before, after)
}

// NewPoliciesRecord makes the record of the changes of MutatingAdmissionPolicies, which come before all sidecars.
func NewPoliciesRecord(policies []string, before, after map[string]any) (Record, error) {
	return Record{Name: PoliciesRecord, Step: 1, Istio: v1alpha1.IstioInside, Policies: policies}.withChange(before, after)
}

// withChange returns the record with what reverts the change.
func (r Record) withChange(before, after map[string]any) (Record, error) {
	r.InitContainers = addedNames(before, after, initContainersKey)
	r.Containers = addedNames(before, after, containersKey)
	r.Volumes = addedNames(before, after, "volumes")
	var err error
	if r.Undo, err = podmap.NewUndo(before, withoutEmpty(after)); err != nil {
		return Record{}, fmt.Errorf("recording sidecar %s: %w", r.Name, err)
	}
	return r, nil
}

func addedNames(before, after map[string]any, key string) []string {
	old := listOf(before, key)
	var out []string
	for _, e := range listOf(after, key) {
		name, _ := e["name"].(string)
		if indexOf(old, e["name"]) < 0 {
			out = append(out, name)
		}
	}
	return out
}

// withoutEmpty returns the pod without an empty annotations map, which removing records can leave.
func withoutEmpty(pod map[string]any) map[string]any {
	meta, ok := pod["metadata"].(map[string]any)
	if annotations, isMap := meta["annotations"].(map[string]any); !ok || !isMap || len(annotations) > 0 {
		return pod
	}
	pod, meta = maps.Clone(pod), maps.Clone(meta)
	delete(meta, "annotations")
	pod["metadata"] = meta
	return pod
}

// Annotate returns the pod with the records in its annotations.
func Annotate(pod map[string]any, records []Record) (map[string]any, error) {
	if len(records) == 0 {
		return pod, nil
	}
	meta, _ := pod["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	pod, meta, annotations = maps.Clone(pod), maps.Clone(meta), maps.Clone(annotations)
	if meta == nil {
		meta = map[string]any{}
	}
	if annotations == nil {
		annotations = map[string]any{}
	}
	for _, r := range records {
		text, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("recording sidecar %s: %w", r.Name, err)
		}
		annotations[RecordPrefix+r.Name] = string(text)
	}
	meta["annotations"], pod["metadata"] = annotations, meta
	return pod, nil
}

// Records removes the records from a pod. It returns them in the order in which the sidecars were injected, and the
// pod without them, which is the pod itself if it has none. An unreadable record is an *podmap.FieldError.
func Records(pod map[string]any) ([]Record, map[string]any, error) {
	meta, _ := pod["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	var records []Record
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, ok := strings.CutPrefix(key, RecordPrefix)
		if !ok {
			continue
		}
		r, err := readRecord(name, annotations[key])
		if err != nil {
			return nil, nil, &podmap.FieldError{Field: workload.FieldString([]any{"metadata", "annotations", key}),
				Err: fmt.Errorf("the record of the sidecar cannot be read, so that it cannot be taken out: %w", err)}
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		return nil, pod, nil
	}
	pod, meta, annotations = maps.Clone(pod), maps.Clone(meta), maps.Clone(annotations)
	for _, r := range records {
		delete(annotations, RecordPrefix+r.Name)
	}
	meta["annotations"], pod["metadata"] = annotations, meta
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.Step, b.Step) })
	return records, withoutEmpty(pod), nil
}

// WrittenPolicies returns the MutatingAdmissionPolicies whose changes are written into a pod with these annotations.
func WrittenPolicies(annotations map[string]string) []string {
	text, ok := annotations[RecordPrefix+PoliciesRecord]
	if !ok {
		return nil
	}
	record, err := readRecord(PoliciesRecord, text)
	if err != nil {
		return nil // what is wrong with it is reported when it is removed
	}
	return record.Policies
}

func readRecord(name string, v any) (Record, error) {
	text, ok := v.(string)
	if !ok {
		return Record{}, fmt.Errorf("it is not a string")
	}
	value, err := manifest.Decode([]byte(text))
	if err != nil {
		return Record{}, err
	}
	m, ok := value.(map[string]any)
	if !ok {
		return Record{}, fmt.Errorf("it is not a map")
	}
	r := Record{Name: name}
	step, isInt := m["step"].(int64)
	r.Step = int(step)
	r.Istio, ok = m["istio"].(string)
	if !isInt || !ok {
		return Record{}, fmt.Errorf("step or istio is missing")
	}
	for key, to := range map[string]*[]string{initContainersKey: &r.InitContainers, containersKey: &r.Containers, "volumes": &r.Volumes, "policies": &r.Policies} {
		list, _ := m[key].([]any)
		for _, e := range list {
			s, _ := e.(string)
			*to = append(*to, s)
		}
	}
	if m["patch"] == nil && m["original"] == nil {
		return r, nil
	}
	r.Undo, err = podmap.ReadUndo([]byte(text))
	return r, err
}

// Remove removes the sidecar of a record from a pod. The sidecars that were injected after it must already be
// removed.
func (r Record) Remove(pod map[string]any) (map[string]any, error) {
	if r.Patch == nil && r.Original == nil {
		return pod, nil
	}
	out, err := r.Apply(pod)
	if err != nil {
		return nil, fmt.Errorf("taking sidecar %s out: %w", r.Name, err)
	}
	if out["metadata"] == nil {
		out["metadata"] = map[string]any{}
	}
	return out, nil
}
