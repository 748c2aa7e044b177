// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// newInformer returns an informer of the objects of a resource in a namespace, "" for all. It is what package
// dynamicinformer of client-go makes (dynamicinformer/informer.go of v0.37), which links the informers and clients of
// every type.
func newInformer(client dynamic.Interface, resource schema.GroupVersionResource,
	namespace string) cache.SharedIndexInformer {
	objects := client.Resource(resource).Namespace(namespace)
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, options)
		},
	}
	return cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(listWatch, client), &unstructured.Unstructured{},
		cache.SharedIndexInformerOptions{ObjectDescription: resource.String()},
	)
}
