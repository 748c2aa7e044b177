// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// pageSize bounds how many objects an API server is asked for at once.
const pageSize = 500

// forEachListedObject calls f with all objects of a resource in a namespace, or in all where it is "". They are asked
// for in pages, so that neither side holds all of a large cluster at once; f keeps none of them whole.
func (c *Client) forEachListedObject(ctx context.Context, resource schema.GroupVersionResource, namespace string, f func(*unstructured.Unstructured) error) error {
	all := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.dynamic.Resource(resource).Namespace(namespace).List(ctx, options)
	})
	all.PageSize = pageSize
	meter := budget.NewMeter(ctx, c.host)
	defer meter.Release()
	ctx = meter.Of(ctx)
	return all.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		object, ok := o.(*unstructured.Unstructured)
		if !ok {
			return nil
		}
		return f(object)
	})
}

// isCaughtUp reports whether the objects that are known are those that the API server lists, each in the same version
// or a later one: their status may be written all the time.
func (w *Watcher) isCaughtUp(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, resource := range []schema.GroupVersionResource{pipelines, policies} {
		listed := map[string]version{}
		for _, namespace := range w.namespaces {
			err := w.client.forEachListedObject(ctx, resource, namespace, func(o *unstructured.Unstructured) error {
				listed[keyOf(o)] = versionOf(o)
				return nil
			})
			if err != nil {
				return false, w.addWatchRemedy(resource, err)
			}
		}
		if !maps.EqualFunc(w.knownObjectVersions(resource), listed, version.isSince) {
			return false, nil
		}
	}
	return true, nil
}

// knownObjectVersions returns those of the known objects.
func (w *Watcher) knownObjectVersions(resource schema.GroupVersionResource) map[string]version {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]version{}
	for key, one := range w.objects[resource] {
		out[key] = versionOf(one.object)
	}
	return out
}

// version identifies a state of an object, and distinguishes it from a recreated object of the same name.
type version struct {
	uid      types.UID
	resource string
}

func versionOf(o *unstructured.Unstructured) version {
	return version{o.GetUID(), o.GetResourceVersion()}
}

// isSince reports whether a version is the other one, or a later one of the same object. What is no number cannot be
// compared.
func (v version) isSince(other version) bool {
	if v == other {
		return true
	}
	own, err := strconv.ParseUint(v.resource, 10, 64)
	its, otherErr := strconv.ParseUint(other.resource, 10, 64)
	return v.uid == other.uid && err == nil && otherErr == nil && own > its
}
