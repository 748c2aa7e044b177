// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Furnish adds objects that pods may refer to and admission checks: service accounts in the specified namespaces, a
// PriorityClass and a RuntimeClass.
func (c *Cluster) Furnish(ctx context.Context, namespaces, accounts []string, class string) error {
	objects := []*unstructured.Unstructured{
		newUnstructuredObject(map[string]any{
			"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]any{"name": class}, "value": int64(1000),
		}),
		newUnstructuredObject(map[string]any{
			"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": map[string]any{"name": class}, "handler": "runc",
		}),
	}
	for _, namespace := range namespaces {
		for _, account := range accounts {
			objects = append(objects, newUnstructuredObject(map[string]any{
				"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": account, "namespace": namespace},
			}))
		}
	}
	for _, obj := range objects {
		if _, err := c.Create(ctx, obj); err != nil {
			return fmt.Errorf("adding the %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// AddLimits adds objects on which it depends what admission fills into pods before it calls the webhook: a LimitRange and
// pull secrets of service accounts in a namespace, and a class of priority for all pods that name none.
func (c *Cluster) AddLimits(ctx context.Context, namespace string, accounts ...string) error {
	class := newUnstructuredObject(map[string]any{
		"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]any{"name": "usual"},
		"value": int64(5), "globalDefault": true,
	})
	limits := newUnstructuredObject(map[string]any{
		"apiVersion": "v1", "kind": "LimitRange", "metadata": map[string]any{"name": "limits", "namespace": namespace},
		"spec": map[string]any{"limits": []any{map[string]any{
			"type":           "Container",
			"default":        map[string]any{"cpu": "3", "memory": "1024Mi"},
			"defaultRequest": map[string]any{"cpu": "50m"},
			"min":            map[string]any{"ephemeral-storage": "1Mi"},
		}}},
	})
	for _, obj := range []*unstructured.Unstructured{class, limits} {
		if _, err := c.Create(ctx, obj); err != nil {
			return fmt.Errorf("adding the %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	for _, name := range accounts {
		patch := []byte(`{"imagePullSecrets":[{"name":"of-account"}]}`)
		if _, err := c.dynamic.Resource(serviceAccounts).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("giving the service account %s pull secrets: %w", name, err)
		}
	}
	return nil
}

// Takes reports whether the API server accepts a workload with all of its fields, as kubectl requests: an older one
// drops those that it does not know before a webhook sees them. It checks no more than that for Pods, which the
// webhook may make valid.
func (c *Cluster) Takes(ctx context.Context, workload *unstructured.Unstructured) bool {
	_, err := c.Try(ctx, workload)
	if workload.GetKind() == "Pod" && err != nil {
		return !strings.Contains(err.Error(), "unknown field")
	}
	return err == nil
}
