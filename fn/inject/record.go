// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/prerig/prerig/fn/manifest"
)

// RecordAnnotation keeps what is needed to give a pod back as it was before it was injected.
const RecordAnnotation = "prerig.dev/original"

// record is the value of the annotation, as JSON: a strategic merge patch from the injected pod to the original, or where
// such a patch does not give it back exactly the original itself. The patch goes by names, so that later edits of the
// injected pod stay.
type record struct {
	Patch    map[string]any `json:"patch,omitempty"`
	Original map[string]any `json:"original,omitempty"`
}

// RecordOriginal gives the injected pod with the record of the original in an annotation. Neither argument is changed.
func RecordOriginal(original, injected map[string]any) (map[string]any, error) {
	text, err := recordOf(original, injected)
	if err != nil {
		return nil, fmt.Errorf("recording the original pod: %w", err)
	}
	p, err := newPod(injected)
	if err != nil {
		return nil, err
	}
	p.set("annotations", RecordAnnotation, text)
	return p.object(), nil
}

func recordOf(original, injected map[string]any) (string, error) {
	from, to := podPart(injected), podPart(original)
	patch, err := strategicpatch.CreateTwoWayMergeMapPatchUsingLookupPatchMeta(copyMap(from), copyMap(to), podSchema())
	if err == nil {
		back, applyErr := applyRecord(record{Patch: copyMap(patch)}, from)
		if applyErr == nil && reflect.DeepEqual(back, to) {
			text, err := json.Marshal(record{Patch: patch})
			return string(text), err
		}
	}
	text, err := json.Marshal(record{Original: to})
	return string(text), err
}

// podPart is the part of a pod that injection changes, as a copy.
func podPart(obj map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"metadata", "spec"} {
		if m, ok := obj[key].(map[string]any); ok {
			out[key] = copyMap(m)
		}
	}
	return out
}

// applyRecord gives the original of a pod without its record.
func applyRecord(rec record, injected map[string]any) (map[string]any, error) {
	if rec.Original != nil {
		return copyMap(rec.Original), nil
	}
	return strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(copyMap(injected), copyMap(rec.Patch), podSchema())
}

// restoreRecord gives the pod back from its record, if it has one.
func restoreRecord(p *pod) (Removed, bool, error) {
	text, ok := p.annotation(RecordAnnotation)
	if !ok {
		return Removed{}, false, nil
	}
	fail := func(err error) (Removed, bool, error) {
		return Removed{}, true, &FieldError{Field: "metadata.annotations[" + RecordAnnotation + "]", Err: err}
	}
	v, err := manifest.Decode([]byte(text))
	if err != nil {
		return fail(err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fail(errNotMap)
	}
	var rec record
	rec.Patch, _ = m["patch"].(map[string]any)
	rec.Original, _ = m["original"].(map[string]any)
	if rec.Patch == nil && rec.Original == nil {
		return fail(errors.New("it has neither patch nor original"))
	}
	p.unset("annotations", RecordAnnotation)
	back, err := applyRecord(rec, map[string]any{"metadata": p.meta, "spec": p.spec})
	if err != nil {
		return fail(fmt.Errorf("restoring the original: %w", err))
	}
	for key, value := range p.extra {
		back[key] = value
	}
	return Removed{Pod: back, Injected: true, Exact: true}, true, nil
}
