// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

func inGeneration(o *unstructured.Unstructured, generation int64) *unstructured.Unstructured {
	o.SetGeneration(generation)
	return o
}

// TestConfirm asks for a pipeline that this process knows in its second generation.
func TestConfirm(t *testing.T) {
	for name, tc := range map[string]struct {
		now     []runtime.Object
		problem error
		want    bool
	}{
		"it is as it was":   {now: []runtime.Object{inGeneration(newPipeline("web", "Orphan", false), 2)}, want: true},
		"it was changed":    {now: []runtime.Object{inGeneration(newPipeline("web", "Orphan", false), 3)}},
		"it was made anew":  {now: []runtime.Object{madeBefore(inGeneration(newPipeline("web", "Orphan", false), 2))}},
		"it is deleted":     {now: []runtime.Object{inGeneration(newPipeline("web", "Orphan", true), 2)}},
		"it is gone":        {},
		"objects are stale": {now: []runtime.Object{inGeneration(newPipeline("web", "Orphan", false), 2)}, problem: errors.New("connection refused")},
	} {
		r, _ := newTestReporter(tc.now...)
		w := r.Watcher
		w.client, w.namespaces = r.Client, []string{metav1.NamespaceAll}
		w.setProblem(tc.problem)
		err := w.Confirm(t.Context(), "shop/web", queue.ObjectVersion{UID: "uid-of-web", Generation: 2})
		if (err == nil) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnObjectThatWasMadeAnewIsAnotherOne has one replaced by one that says the same, which a list may show as a change.
func TestAnObjectThatWasMadeAnewIsAnotherOne(t *testing.T) {
	w := newTestWatcher()
	w.storeObject(pipelines, newPipeline("web", "Orphan", false))
	w.touched = map[string]bool{}
	w.storeObject(pipelines, madeBefore(newPipeline("web", "Orphan", false)))
	all, err := w.Pipelines()
	if err != nil || len(all) != 1 || all[0].Version.UID != "of-before" || !w.touched["shop/web"] {
		t.Errorf("%+v, %v; noticed: %v", all, err, w.touched)
	}
}
