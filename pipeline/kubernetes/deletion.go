// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/prune"
)

// Finalizer keeps a pipeline with deletionPolicy: Delete until what it has published is removed. It only makes that visible: what is to
// be removed is kept beside the cluster, too, and is removed also where somebody takes the finalizer away.
const Finalizer = "prerig.dev/published"

// reasons of the condition Ready while a pipeline is deleted.
const (
	reasonRemoving = "Removing"
	reasonHeld     = "RemovalHeld"
)

// setFinalizer adds the finalizer to a pipeline that removes what it has published, and takes it from others.
func (r *Reporter) setFinalizer(ctx context.Context, object *unstructured.Unstructured, entry catalog.Entry) (changed bool, err error) {
	if entry.Pipeline == nil {
		return false, nil
	}
	has := slices.Contains(object.GetFinalizers(), Finalizer)
	want := entry.Pipeline.Spec.DeletionPolicy == v1alpha1.DeletionDelete
	if has == want {
		return false, nil
	}
	all := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(name string) bool { return name == Finalizer })
	if want {
		all = append(all, Finalizer)
	}
	return true, r.patchFinalizers(ctx, object, all)
}

// patchFinalizers sets the finalizers, if the object is still as it was seen.
func (r *Reporter) patchFinalizers(ctx context.Context, object *unstructured.Unstructured, all []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": object.GetResourceVersion(), "finalizers": all}})
	if err != nil {
		return err
	}
	_, err = r.Client.dynamic.Resource(pipelines).Namespace(object.GetNamespace()).
		Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "prerig"})
	return err
}

// reportDeleted lets a deleted pipeline go once what it owns is dealt with, and says until then what it waits for.
func (r *Reporter) reportDeleted(ctx context.Context, key string, object *unstructured.Unstructured) error {
	if !slices.Contains(object.GetFinalizers(), Finalizer) {
		return nil
	}
	known, err := r.Store.IsKnown(ctx, key)
	if err != nil {
		return err
	}
	if !known {
		if err := r.tellRemoved(ctx, key, object); err != nil {
			return err
		}
		return r.patchFinalizers(ctx, object, slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(name string) bool { return name == Finalizer }))
	}
	own := conditionsOf(metav1.ConditionFalse, reasonRemoving, "what it has published is being removed", meta.ReconcilingCondition)
	for _, one := range r.Removals() {
		switch {
		case one.Pipeline != key:
		case one.State == prune.Held:
			text := "what it has published is not removed: " + one.Message + "; confirm it with prerig remove, or take the finalizer " + Finalizer + " away to leave it"
			own = conditionsOf(metav1.ConditionFalse, reasonHeld, text, meta.StalledCondition)
		case one.Message != "":
			own = conditionsOf(metav1.ConditionFalse, reasonRemoving, one.Message, meta.ReconcilingCondition)
		}
	}
	after := statusOf(object)
	after.ObservedGeneration = object.GetGeneration()
	after.Conditions = mergeConditions(after.Conditions, own, object.GetGeneration())
	return r.writeStatus(ctx, pipelines, object, after)
}
