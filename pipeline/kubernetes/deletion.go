// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	all := otherFinalizers(object)
	if want {
		all = append(all, Finalizer)
	}
	return true, r.patchFinalizers(ctx, object, all)
}

// otherFinalizers returns the finalizers of an object that are not this one.
func otherFinalizers(object *unstructured.Unstructured) []string {
	return slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(name string) bool { return name == Finalizer })
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
		lost, err := r.isLost(ctx, key, object)
		if err != nil {
			return err
		}
		if lost {
			return r.holdLost(ctx, object)
		}
		err = r.patchFinalizers(ctx, object, otherFinalizers(object))
		if !apierrors.IsConflict(err) {
			r.tellRemoved(key, object)
		}
		return err
	}
	r.noteKnown(key, object)
	own := conditionsOf(metav1.ConditionFalse, v1alpha1.ReasonRemoving, "what it has published is being removed", meta.ReconcilingCondition)
	for _, one := range r.Removals() {
		switch {
		case one.Pipeline != key:
		case one.State == prune.Held:
			text := "what it has published is not removed: " + one.Message + "; confirm it with prerig remove, or take the finalizer " + Finalizer + " away to leave it"
			own = conditionsOf(metav1.ConditionFalse, v1alpha1.ReasonRemovalHeld, text, meta.StalledCondition)
		case one.Message != "":
			own = conditionsOf(metav1.ConditionFalse, v1alpha1.ReasonRemoving, one.Message, meta.ReconcilingCondition)
		}
	}
	after := statusOf(object)
	after.ObservedGeneration = object.GetGeneration()
	after.Conditions = mergeConditions(after.Conditions, own, object.GetGeneration())
	return r.writeStatus(ctx, pipelines, object, after)
}

// noteKnown remembers that something was stored of a pipeline: what is not any more was removed.
func (r *Reporter) noteKnown(key string, object *unstructured.Unstructured) {
	r.known.Store(key, object.GetUID())
}

// isLost reports whether a deleted pipeline whose files are to be removed has published something that nobody knows of any more: the
// daemon has a new volume.
func (r *Reporter) isLost(ctx context.Context, key string, object *unstructured.Unstructured) (bool, error) {
	policy, _, _ := unstructured.NestedString(object.Object, "spec", "deletionPolicy")
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
	if policy != string(v1alpha1.DeletionDelete) || suspended || len(statusOf(object).Published) == 0 {
		return false, nil
	}
	if uid, ok := r.known.Load(key); ok && uid == object.GetUID() {
		return false, nil
	}
	if err := r.Store.Sync(ctx); err != nil {
		return false, err
	}
	_, removed := r.removalOf(key, object)
	return !removed, nil
}

// holdLost says of a pipeline that cannot be removed what to do.
func (r *Reporter) holdLost(ctx context.Context, object *unstructured.Unstructured) error {
	after := statusOf(object)
	before := after.Conditions
	var targets []string
	for _, one := range after.Published {
		targets = append(targets, one.Target)
	}
	text := "what it has published is not removed, as the daemon has lost what it knew of it: to remove it, take the finalizer " + Finalizer +
		" away, apply the pipeline again, and delete it once it is ready; to leave it, only take the finalizer away. It is left at " + strings.Join(targets, ", ")
	own := conditionsOf(metav1.ConditionFalse, v1alpha1.ReasonRemovalHeld, text, meta.StalledCondition)
	after.ObservedGeneration = object.GetGeneration()
	after.Conditions = mergeConditions(before, own, object.GetGeneration())
	err := r.writeStatus(ctx, pipelines, object, after)
	if !apierrors.IsConflict(err) && !sameReady(before, after.Conditions) {
		r.tell(object, happened{digestOf(string(object.GetUID()) + v1alpha1.ReasonRemovalHeld), corev1.EventTypeWarning, v1alpha1.ReasonRemovalHeld, text, time.Now()})
	}
	return err
}
