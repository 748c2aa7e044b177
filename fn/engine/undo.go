// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// undoAnnotation is on the workload itself, not on its pods. It holds what the injected pod does not reveal about
// the original pod, and is written only if such information exists; a Job's has the digest of its own immutable
// fields.
const undoAnnotation = "prerig.dev/undo"

// emptyAnnotations is the key of the record under which the workload's annotations are, where they were an empty map or null.
// The other keys are the paths of the pod templates.
const emptyAnnotations = "metadata.annotations"

// ownMetadata is the key under which it is recorded that the workload had no metadata (false), or metadata without a value (null).
const ownMetadata = "metadata"

// ownTemplate is the key of a Job's record under which the digest of its own immutable fields is (jobDigest). It is no path.
const ownTemplate = "(own)"

// workloadRecord is what a workload's annotation records of its pods before injection.
type workloadRecord struct {
	// pods are the records of the pods, by the paths of their templates.
	pods map[string]*podmap.Undo
	// images are the images of the pods' own containers before they were pinned.
	images pinnedImages
	// own is the digest of a Job's own immutable fields, or "" if none exists.
	own string
}

// mergeIntoRecord adds a record to another, and returns the pod that it is about.
func (r workloadRecord) mergeIntoRecord(other *workloadRecord, pod map[string]any) map[string]any {
	maps.Copy(other.pods, r.pods)
	maps.Copy(other.images, r.images)
	other.own = r.own
	return pod
}

// splitUndoRecord returns the object without its record, and the record.
func splitUndoRecord(obj map[string]any) (rest map[string]any, found workloadRecord, err error) {
	meta, _ := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	text, ok := annotations[undoAnnotation].(string)
	if !ok {
		return obj, found, nil
	}
	fail := func(err error) (map[string]any, workloadRecord, error) {
		return nil, found, &workload.FieldError{Field: "metadata.annotations[" + undoAnnotation + "]", Err: fmt.Errorf("reading what was recorded of the pods before injection: %w", err)}
	}
	var record map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return fail(err)
	}
	empty, wasEmpty := record[emptyAnnotations]
	delete(record, emptyAnnotations)
	bare, wasBare := record[ownMetadata]
	delete(record, ownMetadata)
	for key, into := range map[string]any{pinnedKey: &found.images, ownTemplate: &found.own} {
		if text, ok := record[key]; ok {
			if err := json.Unmarshal(text, into); err != nil {
				return fail(err)
			}
			delete(record, key)
		}
	}
	found.pods = map[string]*podmap.Undo{}
	for field, text := range record {
		undo, err := podmap.ReadUndo(text)
		if err != nil {
			return fail(err)
		}
		found.pods[field] = &undo
	}
	annotations = maps.Clone(annotations)
	delete(annotations, undoAnnotation)
	var left any = annotations
	if len(annotations) == 0 && wasEmpty {
		if err := json.Unmarshal(empty, &left); err != nil {
			return fail(err)
		}
	}
	rest = withAnnotations(obj, left, len(annotations) > 0 || wasEmpty)
	if meta, _ := rest["metadata"].(map[string]any); len(meta) == 0 && wasBare {
		if delete(rest, "metadata"); string(bare) == "null" {
			rest["metadata"] = nil
		}
	}
	return rest, found, nil
}

// withAnnotations returns the object with other annotations, or without any.
func withAnnotations(obj map[string]any, annotations any, there bool) map[string]any {
	meta, _ := obj["metadata"].(map[string]any)
	if meta = maps.Clone(meta); meta == nil { // the workload has no metadata
		meta = map[string]any{}
	}
	if there {
		meta["annotations"] = annotations
	} else {
		delete(meta, "annotations")
	}
	out := maps.Clone(obj)
	out["metadata"] = meta
	return out
}

// newWorkloadRecord returns the record of a template that was injected. A Pod gets none: the Pod itself must not differ
// from the webhook's output.
func (in *Injector) newWorkloadRecord(t workload.Template, plans []*compiledPolicy, original, injected map[string]any) (*podmap.Undo, error) {
	if in.mode == v1alpha1.ModeRemove || !anyPolicyRecords(plans) || len(t.Path) == 0 {
		return nil, nil
	}
	return computeUndo(t, original, injected)
}

// anyPolicyRecords reports whether any policy wants to record what injected pods do not reveal.
func anyPolicyRecords(plans []*compiledPolicy) bool {
	return slices.ContainsFunc(plans, func(pl *compiledPolicy) bool { return pl.policy.Spec.Record != v1alpha1.RecordNone })
}

// computeUndo returns what reverts the rest of an injection: the difference between the original and the part of it
// found in the injected pod. It returns nil if they are equal.
func computeUndo(t workload.Template, original, injected map[string]any) (*podmap.Undo, error) {
	_, found, err := restorePod(injected, t.Owner, nil, restoreOptions{})
	if err != nil {
		return nil, err
	}
	if podmap.Equal(found, original) {
		return nil, nil
	}
	undo, err := podmap.NewUndo(original, found)
	if err != nil {
		return nil, err
	}
	_, back, err := restorePod(injected, t.Owner, &undo, restoreOptions{})
	if err != nil {
		return nil, err
	}
	undo.Exact = !podmap.Equal(back, original)
	return &undo, nil
}

// withUndoRecord returns the object with the record of its pods.
func withUndoRecord(obj map[string]any, of workloadRecord) (map[string]any, error) {
	if len(of.pods)+len(of.images) == 0 && of.own == "" {
		return obj, nil
	}
	record := map[string]any{}
	for field, undo := range of.pods {
		record[field] = undo
	}
	if len(of.images) > 0 {
		record[pinnedKey] = of.images
	}
	if of.own != "" {
		record[ownTemplate] = of.own
	}
	meta, _ := obj["metadata"].(map[string]any)
	if value, there := obj["metadata"]; !there {
		record[ownMetadata] = false
	} else if value == nil {
		record[ownMetadata] = nil
	}
	before, there := meta["annotations"]
	annotations, _ := before.(map[string]any)
	if there && len(annotations) == 0 {
		record[emptyAnnotations] = before
	}
	text, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[undoAnnotation] = string(text)
	return withAnnotations(obj, annotations, true), nil
}

// withoutUndoRecord returns the object without its record, to compare it with another.
func withoutUndoRecord(obj map[string]any) map[string]any {
	if rest, _, err := splitUndoRecord(obj); err == nil {
		return rest
	}
	return obj
}
