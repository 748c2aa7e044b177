// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Furnish adds what pods may refer to and admission looks for: service accounts in the given namespaces, a class of
// priority and one of runtimes.
func (c *Cluster) Furnish(ctx context.Context, namespaces, accounts []string, class string) error {
	objects := []*unstructured.Unstructured{
		object(map[string]any{
			"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]any{"name": class}, "value": int64(1000),
		}),
		object(map[string]any{
			"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": map[string]any{"name": class}, "handler": "runc",
		}),
	}
	for _, namespace := range namespaces {
		for _, account := range accounts {
			objects = append(objects, object(map[string]any{
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

// Takes reports whether the API server takes a workload. It says nothing of Pods, which the webhook may make valid.
func (c *Cluster) Takes(ctx context.Context, workload *unstructured.Unstructured) bool {
	if workload.GetKind() == "Pod" {
		return true
	}
	_, err := c.create(ctx, workload, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err == nil
}
