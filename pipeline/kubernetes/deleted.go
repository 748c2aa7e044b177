// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// deletedObject is the text of an object whose deletion was observed, and the time since when it no longer exists.
type deletedObject struct {
	text []byte
	at   time.Time
}

// keepGone is how long that is kept: it is noted within seconds in what is stored of the pipeline.
const keepGone = 24 * time.Hour

// forgetDeletedObject drops an object that no longer exists. An object that is only missing from a list does not count
// as observed deletion, unless it was being deleted.
func (w *Watcher) forgetDeletedObject(resource schema.GroupVersionResource, o any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return
	}
	_, missing := o.(cache.DeletedFinalStateUnknown)
	if !missing {
		w.storeObject(resource, o) // as it was in the end
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.objects[resource][key]; resource == pipelines && last != nil && (!missing || isDeleted(last.object)) {
		maps.DeleteFunc(w.deleted, func(_ string, old deletedObject) bool { return time.Since(old.at) > keepGone })
		w.deleted[key] = deletedObject{last.text, time.Now()}
	}
	delete(w.objects[resource], key)
	w.markObjectChanged(resource, key)
}

// IsDeleted implements catalog.Objects.
func (w *Watcher) IsDeleted(key string) bool {
	one := w.lastSeenObject(pipelines, key)
	return one != nil && isDeleted(one.object)
}

// LastText implements catalog.Objects.
func (w *Watcher) LastText(key string) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.objects[pipelines][key]; one != nil {
		if isDeleted(one.object) {
			return one.text
		}
		return nil
	}
	return w.deleted[key].text
}
