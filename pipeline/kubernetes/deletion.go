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
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
)

// Finalizer keeps a pipeline with deletionPolicy: Delete until what it has published is removed. It only makes that
// visible: pending removals are also recorded outside the cluster, and are carried out even if the finalizer is
// removed by hand.
const Finalizer = "prerig.dev/published"

// setFinalizer adds the finalizer to a pipeline that removes what it has published, and removes it from others.
func (r *Reporter) setFinalizer(ctx context.Context, object *unstructured.Unstructured,
	entry catalog.Entry) (changed bool, err error) {
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

// reportDeleted releases a deleted pipeline once its published files are dealt with, and reports until then what it
// waits for.
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
			return r.reportUnremovablePipeline(ctx, object)
		}
		err = r.patchFinalizers(ctx, object, otherFinalizers(object))
		if !apierrors.IsConflict(err) {
			r.enqueueRemovalEvent(key, object)
		}
		return err
	}
	own := conditionsOf(metav1.ConditionFalse, v1alpha1.ReasonRemoving, "what it has published is being removed",
		meta.ReconcilingCondition)
	for _, one := range r.Removals() {
		switch {
		case one.Pipeline != key:
		case one.State == prune.Held:
			text := "what it has published is not removed: " + one.Message +
				"; confirm it with prerig daemon remove, or take the finalizer " + Finalizer + " away to leave it"
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

// isLost reports whether a deleted pipeline whose files are to be removed has published something that is no longer
// on record: the daemon has a new volume.
func (r *Reporter) isLost(ctx context.Context, key string, object *unstructured.Unstructured) (bool, error) {
	policy, _, _ := unstructured.NestedString(object.Object, "spec", "deletionPolicy")
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
	if policy != string(v1alpha1.DeletionDelete) || suspended || len(statusOf(object).Published) == 0 {
		return false, nil
	}
	if err := r.Store.Sync(ctx); err != nil {
		return false, err
	}
	_, removed := removalOf(r.Store, key, object)
	return !removed, nil
}

// reportUnremovablePipeline reports what to do about a pipeline that cannot be removed.
func (r *Reporter) reportUnremovablePipeline(ctx context.Context, object *unstructured.Unstructured) error {
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
	if err == nil && !sameReady(before, after.Conditions) {
		r.enqueueEvent(object, happened{digestOf(string(object.GetUID()) + v1alpha1.ReasonRemovalHeld), corev1.EventTypeWarning, v1alpha1.ReasonRemovalHeld, text, time.Now()})
	}
	return err
}

const (
	// keepRemoved is how long it is kept at least that a pipeline was removed: what is known of its object may be late.
	keepRemoved = time.Hour
	// forgetAtOnce bounds how many are forgotten at once.
	forgetAtOnce = 200
)

// forgetRemoved forgets that pipelines were removed where no object waits for that any more.
func (r *Reporter) forgetRemoved(ctx context.Context) {
	forgotten := 0
	for _, key := range r.Store.RemovedObjects() {
		one, revision, ok := r.Store.RemovedObject(key)
		if !ok || time.Since(one.At) < keepRemoved {
			continue
		}
		if known := r.Watcher.lastSeenObject(pipelines, key); known != nil && isDeleted(known.object) && slices.Contains(known.object.GetFinalizers(), Finalizer) {
			continue
		}
		if r.Watcher.Problem() != nil || forgotten == forgetAtOnce {
			return
		}
		if err := r.Store.ForgetRemovedObject(ctx, key, revision); err != nil {
			r.Log.Debug("what is known of a removed pipeline stays for now", "pipeline", key, "error", err)
			return
		}
		forgotten++
	}
}
