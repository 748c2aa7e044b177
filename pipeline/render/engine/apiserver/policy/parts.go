// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	admissionapi "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
)

// partPatcher applies a mutation to the fields of a pod that its patch names, and leaves the others alone: the API server's own patcher
// writes and reads the whole pod for each mutation, which takes most of the time of a policy. A patch of a pod and one of a pod with nothing but
// the fields of it that the patch names have the same result in these fields.
type partPatcher struct {
	patch.Patcher // of whole objects

	evaluator cel.MutatingEvaluator
	of        func(cel.MutatingEvaluator) patch.Patcher
	// fieldsOf returns the fields that a patch names; false where they are not known.
	fieldsOf func(ref.Val) (podFields, bool)
	// withLabels returns a pod with the labels and annotations of a patch that has nothing else; nil for another patch.
	withLabels func(*corev1.Pod, ref.Val) *corev1.Pod
	fresh      *freshPod
}

// freshPod is the last pod that a patch has made. It belongs to nothing else.
type freshPod struct{ *corev1.Pod }

// newJSONPatcher returns the patcher of a JSONPatch.
func newJSONPatcher(e cel.MutatingEvaluator, fresh *freshPod) patch.Patcher {
	return &partPatcher{
		Patcher: patch.NewJSONPatcher(e), evaluator: e, of: patch.NewJSONPatcher, fieldsOf: fieldsOfJSONPatch, withLabels: addLabels, fresh: fresh,
	}
}

// newApplyPatcher returns the patcher of an ApplyConfiguration.
func newApplyPatcher(e cel.MutatingEvaluator, fresh *freshPod) patch.Patcher {
	return &partPatcher{
		Patcher: patch.NewApplyConfigurationPatcher(e), evaluator: e, of: patch.NewApplyConfigurationPatcher, fieldsOf: fieldsOfApply,
		withLabels: mergeLabels, fresh: fresh,
	}
}

// Patch applies the mutation.
func (p *partPatcher) Patch(ctx context.Context, r patch.Request, budget int64) (runtime.Object, error) {
	pod, ok := r.VersionedAttributes.VersionedObject.Object().(*corev1.Pod)
	if !ok || len(p.evaluator.CompilationErrors()) > 0 {
		return p.Patcher.Patch(ctx, r, budget)
	}
	asked := cel.CreateAdmissionRequest(r.VersionedAttributes.Attributes, metav1.GroupVersionResource(r.MatchedResource),
		metav1.GroupVersionKind(r.VersionedAttributes.VersionedKind))
	result, _, err := p.evaluator.ForInput(ctx, r.VersionedAttributes, asked, r.OptionalVariables, r.Namespace, budget)
	known := evaluated{result: result, err: err}
	if err != nil || result.Error != nil {
		return p.of(known).Patch(ctx, r, budget)
	}
	if labelled := p.withLabels(pod, result.EvalResult); labelled != nil {
		p.fresh.Pod = labelled
		return labelled, nil
	}
	named, ok := p.fieldsOf(result.EvalResult)
	if !ok {
		return p.of(known).Patch(ctx, r, budget)
	}
	part := &corev1.Pod{TypeMeta: pod.TypeMeta}
	named.copy(part, pod)
	attributes := &admission.VersionedAttributes{Attributes: r.VersionedAttributes.Attributes, VersionedKind: r.VersionedAttributes.VersionedKind}
	attributes.VersionedObject.Set(part)
	partial := r
	partial.VersionedAttributes = attributes
	changed, err := p.of(known).Patch(ctx, partial, budget)
	if err != nil {
		return nil, err
	}
	typed, err := r.ObjectInterfaces.GetObjectConvertor().ConvertToVersion(changed, r.VersionedAttributes.GetKind().GroupVersion())
	if err != nil {
		return nil, err
	}
	out := *pod
	if now, isPod := typed.(*corev1.Pod); isPod {
		named.copy(&out, now)
	}
	p.fresh.Pod = &out
	return &out, nil
}

// evaluated is the result of an evaluation.
type evaluated struct {
	result cel.EvaluationResult
	err    error
}

// ForInput returns the result.
func (e evaluated) ForInput(
	context.Context, *admission.VersionedAttributes, *admissionapi.AdmissionRequest, cel.OptionalVariableBindings, *corev1.Namespace, int64,
) (cel.EvaluationResult, int64, error) {
	return e.result, 0, e.err
}

// CompilationErrors returns none.
func (evaluated) CompilationErrors() []error { return nil }

// podFields are fields of a pod: of its metadata and of its spec, by their indexes in the types of Go.
type podFields struct{ metadata, spec []int }

var metadataFields, specFields = jsonFields[metav1.ObjectMeta](), jsonFields[corev1.PodSpec]()

// jsonFields returns the indexes of the fields of a struct by their names in JSON.
func jsonFields[T any]() map[string]int {
	out := map[string]int{}
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
			out[name] = i
		}
	}
	return out
}

// add adds a field, and reports whether it is known.
func (f *podFields) add(parent, name string) bool {
	known, list := metadataFields, &f.metadata
	if parent == "spec" {
		known, list = specFields, &f.spec
	}
	i, ok := known[name]
	if ok && !slices.Contains(*list, i) {
		*list = append(*list, i)
	}
	return ok && (parent == "spec" || parent == "metadata")
}

// copy sets the fields of a pod to those of another one.
func (f podFields) copy(to, from *corev1.Pod) {
	for _, i := range f.metadata {
		reflect.ValueOf(&to.ObjectMeta).Elem().Field(i).Set(reflect.ValueOf(&from.ObjectMeta).Elem().Field(i))
	}
	for _, i := range f.spec {
		reflect.ValueOf(&to.Spec).Elem().Field(i).Set(reflect.ValueOf(&from.Spec).Elem().Field(i))
	}
}

// fieldsOfJSONPatch returns the fields in which the paths of a JSONPatch are.
func fieldsOfJSONPatch(value ref.Val) (out podFields, ok bool) {
	list, ok := value.(traits.Lister)
	if !ok {
		return out, false
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		op, isOp := it.Next().(*mutation.JSONPatchVal)
		if !isOp || !out.addPath(op.Path) || op.From != "" && !out.addPath(op.From) {
			return out, false
		}
	}
	return out, true
}

// addPath adds the field of a path, and reports whether there is one.
func (f *podFields) addPath(path string) bool {
	parts := strings.SplitN(path, "/", 4)
	return len(parts) > 2 && parts[0] == "" && f.add(parts[1], parts[2])
}

// fieldsOfApply returns the fields of an ApplyConfiguration.
func fieldsOfApply(value ref.Val) (out podFields, ok bool) {
	fields, ok := fieldsOfObject(value)
	for parent, children := range fields {
		of, isObject := children.(map[string]any)
		if !isObject {
			return out, false
		}
		for name := range of {
			if !out.add(parent, name) {
				return out, false
			}
		}
	}
	return out, ok
}

// fieldsOfObject returns the value of an Object.
func fieldsOfObject(value ref.Val) (map[string]any, bool) {
	object, ok := value.(*dynamic.ObjectVal)
	if !ok {
		return nil, false
	}
	fields, ok := object.Value().(map[string]any)
	return fields, ok
}

// mergeLabels merges labels and annotations by their keys, as the API server does with an ApplyConfiguration.
func mergeLabels(pod *corev1.Pod, value ref.Val) *corev1.Pod {
	fields, ok := fieldsOfObject(value)
	metadata, isObject := fields["metadata"].(map[string]any)
	if !ok || len(fields) != 1 || !isObject || value.(*dynamic.ObjectVal).CheckTypeNamesMatchFieldPathNames() != nil {
		return nil
	}
	out := *pod
	for name, children := range metadata {
		list, isMap := children.(map[string]any)
		of := textsOf(&out, name)
		if of == nil || !isMap {
			return nil
		}
		merged := maps.Clone(*of)
		if merged == nil {
			merged = map[string]string{}
		}
		for key, value := range list {
			if merged[key], ok = value.(string); !ok {
				return nil
			}
		}
		*of = merged
	}
	return &out
}

// textsOf returns the labels or annotations of a pod; nil for another field of its metadata.
func textsOf(pod *corev1.Pod, name string) *map[string]string {
	switch name {
	case "labels":
		return &pod.Labels
	case "annotations":
		return &pod.Annotations
	}
	return nil
}

// addLabels adds labels and annotations to those that a pod has, as the API server does with a JSONPatch.
func addLabels(pod *corev1.Pod, value ref.Val) *corev1.Pod {
	list, ok := value.(traits.Lister)
	if !ok {
		return nil
	}
	out := *pod
	out.Labels, out.Annotations = maps.Clone(pod.Labels), maps.Clone(pod.Annotations)
	for it := list.Iterator(); it.HasNext() == types.True; {
		op, isOp := it.Next().(*mutation.JSONPatchVal)
		if !isOp || op.Op != "add" || op.From != "" || !isPlainPath(op.Path) {
			return nil
		}
		parts := strings.Split(op.Path, "/")
		text, isText := op.Val.(types.String)
		if len(parts) != 4 || parts[0] != "" || parts[1] != "metadata" || parts[3] == "" || !isText {
			return nil
		}
		of := textsOf(&out, parts[2])
		if of == nil || len(*of) == 0 {
			return nil
		}
		(*of)[strings.ReplaceAll(strings.ReplaceAll(parts[3], "~1", "/"), "~0", "~")] = string(text)
	}
	return &out
}

// isPlainPath reports whether a path is the same text in Go and in JSON.
func isPlainPath(path string) bool {
	return !strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' })
}
