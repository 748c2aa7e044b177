// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"

	"github.com/prerig/prerig/fn/podmap"
)

// RecordAnnotation holds what is needed to restore a pod to its state before injection.
const RecordAnnotation = "prerig.dev/original"

// RecordOriginal returns the injected pod with the record of the original in an annotation. Neither argument is changed.
func RecordOriginal(original, injected map[string]any) (map[string]any, error) {
	text, err := marshalUndoRecord(original, injected)
	if err != nil {
		return nil, fmt.Errorf("recording the original pod: %w", err)
	}
	p, err := newPod(injected)
	if err != nil {
		return nil, err
	}
	p.setMetadataValue("annotations", RecordAnnotation, text)
	return p.toPodObject(), nil
}

// marshalUndoRecord is the value of the annotation: the JSON of a podmap.Undo.
func marshalUndoRecord(original, injected map[string]any) (string, error) {
	undo, err := podmap.NewUndo(original, injected)
	if err != nil {
		return "", err
	}
	kept, _, err := KeepEdits(undo, injected, nil)
	if err != nil {
		return "", err
	}
	back, err := kept.Apply(injected)
	undo.Exact = err != nil || !podmap.Equal(back, podmap.PodPart(original))
	text, err := json.Marshal(undo)
	return string(text), err
}

// restoreRecord returns the pod back from its record, if it has one.
func restoreRecord(p *pod) (Removed, bool, error) {
	text, ok := p.annotation(RecordAnnotation)
	if !ok {
		return Removed{}, false, nil
	}
	fail := func(err error) (Removed, bool, error) {
		return Removed{}, true, &podmap.FieldError{Field: "metadata.annotations[" + RecordAnnotation + "]", Err: err}
	}
	undo, err := podmap.ReadUndo([]byte(text))
	if err != nil {
		return fail(err)
	}
	p.removeMetadataValue("annotations", RecordAnnotation)
	injected := p.toPodObject()
	if undo, _, err = KeepEdits(undo, injected, nil); err != nil {
		return fail(err)
	}
	back, err := undo.Apply(injected)
	if err != nil {
		return fail(err)
	}
	return Removed{Pod: back, Injected: true, Exact: true, Unknown: LeftAtAgent(back)}, true, nil
}
