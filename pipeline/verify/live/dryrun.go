// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// DryRuns asks an API server which pods it would store, without storing them.
type DryRuns struct {
	pods dynamic.NamespaceableResourceInterface
}

// NewDryRuns returns the dry runs of a cluster.
func NewDryRuns(config *rest.Config) (*DryRuns, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w", err)
	}
	return &DryRuns{pods: objects.Resource(versionOneResource("", "pods"))}, nil
}

// Answer is what an API server makes of a pod.
type Answer struct {
	// Pod is the pod that it would store.
	Pod map[string]any
	// Rejected is the reason for which it would not store it.
	Rejected string
	// Unanswered is the reason for which it does not say what it would store.
	Unanswered string
}

// Create asks what the creation of a pod would store. The error is about the connection.
func (d *DryRuns) Create(ctx context.Context, pod map[string]any) (Answer, error) {
	object := (&unstructured.Unstructured{Object: pod}).DeepCopy()
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	var status apierrors.APIStatus
	stored, err := d.pods.Namespace(namespace).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		return Answer{Pod: stored.Object}, nil
	case strings.Contains(err.Error(), `cannot create resource "pods"`):
		return Answer{Unanswered: "it needs the permission to create pods in namespace " + namespace + ": " + err.Error()}, nil
	case strings.Contains(err.Error(), "does not support dry run"):
		return Answer{Unanswered: "a webhook has side effects, so that the API server refuses dry runs: " + err.Error()}, nil
	case !errors.As(err, &status), apierrors.IsUnauthorized(err): // a webhook's rejection may have no reason, but has a status
		return Answer{}, fmt.Errorf("asking the cluster: %w", err)
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err):
		return Answer{Unanswered: err.Error()}, nil
	}
	return Answer{Rejected: err.Error()}, nil
}
