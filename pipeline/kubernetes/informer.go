// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// newInformer returns an informer of the objects of a resource in a namespace, "" for all. It is what package
// dynamicinformer of client-go makes (dynamicinformer/informer.go of v0.37), which links the informers and clients of
// every type.
func newInformer(client dynamic.Interface, resource schema.GroupVersionResource,
	namespace string) cache.SharedIndexInformer {
	objects := client.Resource(resource).Namespace(namespace)
	list := &boundedList{objects: objects}
	listWatch := &cache.ListWatch{
		ListWithContextFunc: list.readPage,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, options)
		},
	}
	return cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(listWatch, client), &unstructured.Unstructured{},
		cache.SharedIndexInformerOptions{ObjectDescription: resource.String()},
	)
}

// maxPages is how many pages of a list are read: a million objects.
const maxPages = 2000

// boundedList reads the pages of lists, one list after the other. An informer keeps all of them until the last.
type boundedList struct {
	objects dynamic.ResourceInterface
	pages   int
	meter   *budget.Meter // nil between two lists
}

// readPage reads a page, the first of a list where options name no other.
func (l *boundedList) readPage(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Continue == "" {
		l.end()
	}
	if l.meter == nil {
		l.meter = budget.NewMeter(ctx, "the API server")
	}
	if l.pages++; l.pages > maxPages {
		l.end()
		return nil, fmt.Errorf("the cluster's list has more than %d pages", maxPages)
	}
	found, err := l.objects.List(l.meter.Of(ctx), options)
	if err != nil || found.GetContinue() == "" {
		l.end()
	}
	return found, err
}

func (l *boundedList) end() {
	if l.meter != nil {
		l.meter.Release()
	}
	l.meter, l.pages = nil, 0
}
