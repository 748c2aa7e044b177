// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

var serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

// client speaks with an API server about objects of any kind.
type client struct {
	discovery *discovery.DiscoveryClient
	dynamic   *dynamic.DynamicClient

	lock   sync.Mutex
	mapper meta.RESTMapper // nil until it is asked for, and after new kinds have come
}

func newClient(config *rest.Config) (*client, error) {
	config.WarningHandler = rest.NoWarnings{}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &client{discovery: d, dynamic: objects}, nil
}

// newUnstructuredObject makes an object of its content.
func newUnstructuredObject(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

// Create creates an object and returns it as it was stored. The error is the API server's own.
func (c *client) Create(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return c.create(ctx, obj, metav1.CreateOptions{})
}

// Try asks the API server whether it would store an object, strictly, and returns it as it would be stored.
func (c *client) Try(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return c.create(ctx, obj, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
}

func (c *client) create(ctx context.Context, obj *unstructured.Unstructured, options metav1.CreateOptions) (*unstructured.Unstructured, error) {
	resource, err := c.resourceInterfaceFor(obj)
	if err != nil {
		return nil, err
	}
	return resource.Create(ctx, obj.DeepCopy(), options)
}

// Delete removes an object, and what it owns a little later.
func (c *client) Delete(ctx context.Context, obj *unstructured.Unstructured) error {
	resource, err := c.resourceInterfaceFor(obj)
	if err != nil {
		return err
	}
	later, now := metav1.DeletePropagationBackground, int64(0)
	return resource.Delete(ctx, obj.GetName(), metav1.DeleteOptions{PropagationPolicy: &later, GracePeriodSeconds: &now})
}

// resourceInterfaceFor returns where objects of the kind and namespace of this one are.
func (c *client) resourceInterfaceFor(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapper, err := c.discoverRESTMapper()
	if err != nil {
		return nil, err
	}
	kind := obj.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	all := c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return all, nil
	}
	namespace := obj.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return all.Namespace(namespace), nil
}

// discoverRESTMapper returns what kinds the API server knows.
func (c *client) discoverRESTMapper() (meta.RESTMapper, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.mapper == nil {
		groups, err := restmapper.GetAPIGroupResources(c.discovery)
		if err != nil {
			return nil, fmt.Errorf("asking for the API server's kinds: %w", err)
		}
		c.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	}
	return c.mapper, nil
}

// forgetKinds has the kinds asked for again.
func (c *client) forgetKinds() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.mapper = nil
}
