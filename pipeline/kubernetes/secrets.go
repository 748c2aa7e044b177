// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/base64"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/pipeline/secret"
)

// Secrets reads the Secrets of the cluster for pipelines that are objects of it, each by its name and when it is
// needed. Pipelines of other places have theirs in Otherwise.
type Secrets struct {
	Client *Client
	// FromCluster reports whether pipelines of a namespace are objects of the cluster.
	FromCluster func(namespace string) bool
	// Otherwise reads the secrets of other pipelines.
	Otherwise secret.Reader
	// RequireHosts rejects secrets that do not list the servers they are for.
	RequireHosts bool
}

// Secret implements secret.Reader.
func (s Secrets) Secret(ctx context.Context, namespace, name string,
	purpose secret.Purpose) (map[string][]byte, error) {
	if namespace == "" || !s.FromCluster(namespace) {
		return s.Otherwise.Secret(ctx, namespace, name, purpose)
	}
	at := namespace + "/" + name
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, err := s.Client.dynamic.Resource(secrets).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no secret %s in the cluster", at)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("secret %s may not be read: bind the ClusterRole prerig-secrets to prerig's ServiceAccount with a RoleBinding in %s", at, namespace)
	case err != nil:
		return nil, fmt.Errorf("the API server does not give secret %s: %s", at, apierrors.ReasonForError(err))
	}
	keys, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("secret %s has keys that are no texts", at)
	}
	values := make(map[string][]byte, len(keys))
	for key, text := range keys {
		if values[key], err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, fmt.Errorf("key %s of secret %s is not in base64", key, at)
		}
	}
	return secret.Release(at, values, purpose, s.RequireHosts)
}
