// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// processUnit injects into the pod templates of one object. Failures become results, and the object stays unchanged.
func (in *Injector) processUnit(u *documentUnit, plans []*compiledPolicy, s *cluster, shapes *shapeRun) {
	if u.broken || u.elements != nil || in.asIs && !isKeptKind(u.meta) {
		return
	}
	if _, ok := in.registry.Lookup(u.meta.APIVersion, u.meta.Kind); !ok {
		in.reportSuspectWorkflow(u)
		return
	}
	defer func() {
		// A defect in one object's way through must not take the others' results away.
		if p := recover(); p != nil {
			if difference, ok := p.(shapeDiffers); ok {
				panic(difference)
			}
			u.outcomes = append(u.outcomes, in.newOutcome(u, "", Failed, "the injector has a defect"))
			u.addError("", fmt.Errorf("injecting: the injector has a defect, please report it: %v at %s", p, codePlace(debug.Stack())))
			u.changed = nil
		}
	}()
	full := func(u *documentUnit) { in.injectUnit(u, plans, s) }
	if shapes == nil {
		full(u)
		return
	}
	shapes.process(u, full)
}

// injectUnit injects into the pod templates of one object by itself.
func (in *Injector) injectUnit(u *documentUnit, plans []*compiledPolicy, s *cluster) {
	obj, err := u.open()
	defer u.close()
	if err != nil {
		u.setFailed(in, "", err)
		return
	}
	u.meta = metaOf(obj)
	u.readOrigin(obj)
	if field, err := checkNames(obj); err != nil {
		u.setFailed(in, field, err)
		return
	}
	if original, wanted, ok := in.injectTemplates(u, obj, plans, s); ok {
		in.writeUnit(u, obj, original, wanted)
	}
}

// injectTemplates injects into each pod template of an object, and returns the object without any injection and the one that is wanted. It
// returns false where something went wrong, which the unit has then.
func (in *Injector) injectTemplates(u *documentUnit, obj map[string]any, plans []*compiledPolicy, s *cluster) (original, wanted map[string]any, ok bool) {
	rest, record, err := splitUndoRecord(obj)
	if err != nil {
		u.reportMissingTemplate(in, err)
		return nil, nil, false
	}
	templates, err := in.registry.Templates(rest)
	if err != nil {
		u.reportMissingTemplate(in, err)
		return nil, nil, false
	}
	original, wanted = rest, rest
	becomes := workloadRecord{pods: map[string]*podmap.Undo{}, images: pinnedImages{}}
	for _, t := range templates {
		written := t
		unpinned := in.removePinnedDigests(&t, record.images)
		before, after, ok := in.injectTemplate(u, t, written, rest, record, plans, s)
		if !ok {
			return nil, nil, false
		}
		if unpinned {
			u.reportUnpinned(t.Field)
		}
		if in.asIs {
			wanted = t.Write(wanted, u.podToWrite(written, record, before, after, &becomes))
			continue
		}
		pod, err := in.finishTemplate(u, t, rest, before, after, plans, &becomes)
		if err != nil {
			u.setFailed(in, t.Field, fmt.Errorf("recording the original pod: %w", err))
			return nil, nil, false
		}
		original, wanted = t.Write(original, before), t.Write(wanted, pod)
	}
	if in.asIs && u.kept == nil {
		return obj, obj, true
	}
	if wanted, err = withUndoRecord(wanted, becomes); err != nil {
		u.setFailed(in, "", fmt.Errorf("recording the original pod: %w", err))
		return nil, nil, false
	}
	return original, wanted, true
}

// podToWrite returns the pod to write: the kept one if the unit is kept, otherwise the pod as written. The images of
// a Pod's own containers stay pinned as they were.
func (u *documentUnit) podToWrite(written workload.Template, record workloadRecord, before, after map[string]any, becomes *workloadRecord) map[string]any {
	switch {
	case u.kept == nil:
		return written.Pod
	case len(written.Path) > 0:
		return u.kept.record.mergeIntoRecord(becomes, u.kept.pod)
	}
	pinned := pin.Images(written.Pod)
	maps.DeleteFunc(pinned, func(name, _ string) bool { return !slices.Contains(pin.Own(before, after), name) })
	return record.mergeIntoRecord(becomes, withContainerImages(after, pinned))
}

// finishTemplate pins the images of a pod's own containers, and notes what the record needs of the pod. It returns the pod to write.
func (in *Injector) finishTemplate(u *documentUnit, t workload.Template, obj, before, after map[string]any, plans []*compiledPolicy, record *workloadRecord) (map[string]any, error) {
	if u.kept != nil && len(t.Path) > 0 {
		return u.kept.record.mergeIntoRecord(record, u.kept.pod), nil
	}
	pod := in.pinOwn(u, t, before, after, plans)
	if !anyPolicyRecords(plans) {
		return pod, nil
	}
	if o := pin.Originals(after, pod); o != nil {
		record.images[t.Field] = o
	}
	undo, err := in.newWorkloadRecord(t, plans, before, after)
	if undo != nil {
		record.pods[t.Field] = undo
	}
	injected := u.outcomes[len(u.outcomes)-1].Action == Injected
	if err == nil && injected && isKeptTemplate(u, t) && len(t.Path) > 0 && !MayBeReplaced(obj) {
		var back map[string]any
		// What is found of the original the next time is what counts.
		if _, back, err = restorePod(after, t.Owner, undo, restoreOptions{names: containerNamePredicate(plans)}); err == nil {
			record.own, err = jobDigest(obj, back)
		}
	}
	return pod, err
}

// checkNames refuses a name or namespace that is no string, as the API server does. A namespace n, which YAML reads as no,
// must not count as none at all.
func checkNames(obj map[string]any) (field string, err error) {
	meta, _ := obj["metadata"].(map[string]any)
	for _, key := range []string{"name", "namespace"} {
		switch v := meta[key].(type) {
		case nil, string:
		case bool:
			return "metadata." + key, fmt.Errorf("it has to be a string and is the bool %t; put it in quotes", v)
		case map[string]any, []any:
			return "metadata." + key, errors.New("it has to be a string")
		default:
			return "metadata." + key, fmt.Errorf("it has to be a string and is the number %v; put it in quotes", v)
		}
	}
	return "", nil
}

// reportSuspectWorkflow reports an object of an unknown kind that looks as if pods are made of it, so that no workload
// is silently skipped. Only documents with the words of a pod template are read.
func (in *Injector) reportSuspectWorkflow(u *documentUnit) {
	if in.mode == v1alpha1.ModeRemove || !workload.MayMakePods(u.meta.APIVersion) && !workload.MayBeMisplaced(u.meta.APIVersion, u.meta.Kind) {
		return
	}
	for _, hint := range workload.Hints {
		if !u.doc.Contains(hint) {
			return
		}
	}
	obj, err := u.objectWithListType()
	if err != nil {
		return // it passes through as it is
	}
	found := workload.Suspicious(obj)
	if found == nil {
		return
	}
	u.meta = metaOf(obj)
	reason := found.Reason
	if found.Path != "" {
		reason += fmt.Sprintf("; to inject it, add {apiVersion: %s, kind: %s, podTemplate: %s} to the policy's spec.workloads", u.meta.APIVersion, u.meta.Kind, found.Path)
	}
	outcome := in.newOutcome(u, found.Field, Skipped, reason)
	outcome.UnknownKind, outcome.WrongKind = true, found.Wrong
	u.outcomes = append(u.outcomes, outcome)
	severity := result.Info
	if found.Wrong {
		severity = result.Warning
	}
	u.addResult(severity, found.Field, "not injected: "+reason)
}

// writeUnit edits the document to match wanted. An earlier injection is removed from the text first, so that the
// bytes too depend on the original alone.
func (in *Injector) writeUnit(u *documentUnit, obj, original, wanted map[string]any) {
	if podmap.Equal(obj, wanted) {
		return
	}
	from := u.doc
	if !podmap.Equal(obj, original) {
		if restored, err := u.rewriteDocument(u.doc, original); err == nil {
			from = restored
		}
	}
	changed, err := u.rewriteDocument(from, wanted)
	if err != nil {
		u.setFailed(in, "", fmt.Errorf("writing the injection: %w", err))
		return
	}
	if bytes.Equal(changed.Raw(), u.doc.Raw()) {
		return
	}
	for i := range u.outcomes {
		u.outcomes[i].Changed = true
	}
	if in.mode == v1alpha1.ModeCheck {
		field := firstDifference(withoutUndoRecord(obj), withoutUndoRecord(wanted))
		if field == "" {
			field = firstDifference(obj, wanted)
		}
		u.addResult(result.Error, field, "this is not what the injection would give; run the injection and commit its output")
		return
	}
	u.changed = changed
}

// reportMissingTemplate reports why a workload has no pod template here.
func (u *documentUnit) reportMissingTemplate(in *Injector, err error) {
	var elsewhere *workload.ElsewhereError
	if errors.As(err, &elsewhere) {
		u.outcomes = append(u.outcomes, in.newOutcome(u, elsewhere.Field, Skipped, elsewhere.Error()))
		u.addResult(result.Info, elsewhere.Field, "nothing is injected here: "+elsewhere.Error())
		return
	}
	field := ""
	var at *workload.FieldError
	if errors.As(err, &at) {
		field, err = at.Field, at.Err
	}
	u.setFailed(in, field, err)
}

// setFailed records the error and the outcome.
func (u *documentUnit) setFailed(in *Injector, field string, err error) {
	u.outcomes = []Outcome{in.newOutcome(u, field, Failed, err.Error())}
	u.addError(field, err)
}

func (in *Injector) newOutcome(u *documentUnit, field string, action Action, reason string) Outcome {
	o := Outcome{Ref: u.namedReference(), Field: field, Action: action, Reason: reason}
	if f := u.fileLocation(); f != nil {
		o.File = *f
	}
	return o
}

// codePlace returns the first line of a stack that is in this module.
func codePlace(stack []byte) string {
	for _, line := range strings.Split(string(stack), "\n") {
		if i := strings.Index(line, "/fn/"); i >= 0 && strings.Contains(line, ".go:") && !strings.Contains(line, "fn/engine/work.go") {
			return strings.TrimSpace(line[i+1:])
		}
	}
	return "an unknown place"
}

// firstDifference returns the path of a field in which the objects differ.
func firstDifference(a, b any) string {
	switch a := a.(type) {
	case map[string]any:
		m, ok := b.(map[string]any)
		if !ok {
			return ""
		}
		for _, k := range unionKeys(a, m) {
			if !podmap.Equal(a[k], m[k]) {
				return joinField(workload.FieldString([]any{k}), firstDifference(a[k], m[k]))
			}
		}
	case []any:
		l, ok := b.([]any)
		for i := range a {
			if ok && i < len(l) && !podmap.Equal(a[i], l[i]) {
				return joinField(workload.FieldString([]any{i}), firstDifference(a[i], l[i]))
			}
		}
	}
	return ""
}
