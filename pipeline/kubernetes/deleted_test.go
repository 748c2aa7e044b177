// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

func newPipeline(name, policy string, deleted bool) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "prerig.dev/v1alpha1", "kind": "RenderPipeline", "metadata": map[string]any{"name": name, "namespace": "shop", "uid": "uid-of-" + name},
		"spec": map[string]any{"deletionPolicy": policy},
	}}
	if deleted {
		now := metav1.Now()
		o.SetDeletionTimestamp(&now)
		o.SetFinalizers([]string{Finalizer})
	}
	return o
}

func newTestWatcher() *Watcher {
	return newWatcher(nil, []string{metav1.NamespaceAll}, slog.New(slog.DiscardHandler))
}

// TestLastText tells pipelines that were deleted from those that are only missing in a list.
func TestLastText(t *testing.T) {
	w := newTestWatcher()
	for _, name := range []string{"deleted", "at-once", "missing", "missing-deleted", "back", "going", "there"} {
		w.storeObject(pipelines, newPipeline(name, "Delete", false))
	}
	for _, name := range []string{"deleted", "missing-deleted", "back", "going"} {
		w.storeObject(pipelines, newPipeline(name, "Orphan", true))
	}
	w.forgetDeletedObject(pipelines, newPipeline("deleted", "Orphan", true))
	w.forgetDeletedObject(pipelines, newPipeline("back", "Orphan", true))
	w.forgetDeletedObject(pipelines, newPipeline("at-once", "Orphan", false)) // it had no finalizer, and was changed and deleted
	for _, name := range []string{"missing", "missing-deleted"} {
		key := "shop/" + name
		w.forgetDeletedObject(pipelines, cache.DeletedFinalStateUnknown{Key: key, Obj: w.objects[pipelines][key].object})
	}
	w.storeObject(pipelines, newPipeline("back", "Delete", false))
	for name, want := range map[string]bool{
		"deleted": true, "at-once": true, "missing": false, "missing-deleted": true, "back": false, "going": true, "there": false, "never": false,
	} {
		got := string(w.LastText("shop/" + name))
		if want != strings.Contains(got, `"deletionPolicy":"Orphan"`) || !want && got != "" {
			t.Errorf("%s: %q", name, got)
		}
		if w.IsDeleted("shop/"+name) != (name == "going") {
			t.Errorf("%s is being deleted: %v", name, w.IsDeleted("shop/"+name))
		}
	}
	w.deleted["shop/deleted"] = deletedObject{at: time.Now().Add(-2 * keepGone)}
	w.forgetDeletedObject(pipelines, newPipeline("there", "Delete", false))
	if _, ok := w.deleted["shop/deleted"]; ok {
		t.Error("what is gone is kept for ever")
	}
}
